/** Where a setting was given. */
export type Origin = "flag" | "environment" | "project_file" | "user_file" | "default";
