/** The statuses of sessions as the API names them, in the order in which a session meets them. */
export const STATUSES = [
  "submitted",
  "working",
  "waiting",
  "input_required",
  "paused",
  "cancelling",
  "completed",
  "failed",
  "cancelled",
] as const;

export type Status = (typeof STATUSES)[number];
