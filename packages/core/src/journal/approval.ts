// What a person answers: yes or no, with a reason, or anything else.

/** The answer to a question that asks for one, as `holdfast approve` gives it. */
export interface Approval {
  readonly approved: boolean;
  readonly reason?: string;
}

/** What a question takes for an answer: an `Approval`, or any JSON, which its asker may check by a schema. */
export type AnswerShape = "approval" | "any";

export function isApproval(value: unknown): value is Approval {
  if (typeof value !== "object" || value === null) return false;
  const { approved, reason, ...others } = value as Readonly<Record<string, unknown>>;
  return (
    typeof approved === "boolean" &&
    (reason === undefined || typeof reason === "string") &&
    Object.keys(others).length === 0
  );
}
