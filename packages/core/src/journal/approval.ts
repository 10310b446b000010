// `Approval`, `AnswerShape`: the shapes of a person's answer to a question.

/** A yes or no with a reason, as `holdfast approve` gives it. */
export interface Approval {
  readonly approved: boolean;
  readonly reason?: string;
}

/**
 * The answers that a question accepts: an `Approval`, or any JSON, which the asking agent may check by a
 * schema.
 */
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
