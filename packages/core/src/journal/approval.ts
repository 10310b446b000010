// `Approval`, `AnswerShape`: the shapes of a person's answer to a question.

/** A yes or no with a reason, as `holdfast approve` gives it. */
export interface Approval {
  readonly approved: boolean;
  /** Why, in the words of the person. */
  readonly reason?: string;
  /** Absent for an answer that counts once. Only questions about permissions can keep an answer as a rule. */
  readonly remember?: Remember;
  /** With `approved`: the input that the call gets in place of its own. Only questions that say so take one. */
  readonly input?: Readonly<Record<string, unknown>>;
}

/** How long an answer counts as a rule, and for which calls. */
export interface Remember {
  /** `project` is for later sessions of the same project and user, too. */
  readonly scope: "session" | "project";
  /** The pattern for the call's main argument, such as `git diff:*`. Without one the rule is for this exact argument. */
  readonly pattern?: string;
}

/**
 * The answers that a question accepts: an `Approval`, or any JSON, which the asking agent may check by a
 * schema.
 */
export type AnswerShape = "approval" | "any";

export function isApproval(value: unknown): value is Approval {
  if (typeof value !== "object" || value === null) return false;
  const { approved, reason, remember, input, ...others } = value as Readonly<Record<string, unknown>>;
  return (
    typeof approved === "boolean" &&
    (reason === undefined || typeof reason === "string") &&
    (remember === undefined || isRemember(remember)) &&
    (input === undefined || isEditedInput(input, approved, remember)) &&
    Object.keys(others).length === 0
  );
}

/** `y` or `n`, and perhaps a reason, as everybody types it. */
export function readApproval(line: string): Approval | undefined {
  const [, word, reason] = /^\s*(y|yes|n|no)\b[\s,:;.-]*(.*?)\s*$/i.exec(line) ?? [];
  if (word === undefined) return undefined;
  return { approved: /^y/i.test(word), ...(reason === undefined || reason === "" ? {} : { reason }) };
}

/** A rule is for the call as it was asked, so an answer with another input makes none. */
function isEditedInput(input: unknown, approved: boolean, remember: unknown): boolean {
  return (
    approved && remember === undefined && typeof input === "object" && input !== null && !Array.isArray(input)
  );
}

function isRemember(value: unknown): value is Remember {
  if (typeof value !== "object" || value === null) return false;
  const { scope, pattern, ...others } = value as Readonly<Record<string, unknown>>;
  return (
    (scope === "session" || scope === "project") &&
    (pattern === undefined || (typeof pattern === "string" && pattern.trim() !== "")) &&
    Object.keys(others).length === 0
  );
}
