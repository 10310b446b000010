// The answer of a person to a question, in words (`givenAnswerText`). Parts of it are untrusted.

/** The fields of an approval. An answer with others is shown as it is. */
const APPROVAL: ReadonlySet<string> = new Set(["approved", "reason", "remember", "input"]);

interface Approval {
  readonly approved: boolean;
  readonly reason?: unknown;
  readonly remember?: { readonly scope?: unknown; readonly pattern?: unknown };
  readonly input?: unknown;
}

export function givenAnswerText(answer: unknown): string {
  if (typeof answer === "string") return answer;
  if (!isApproval(answer)) return JSON.stringify(answer) ?? "";
  const { approved, reason, remember, input } = answer;
  const { scope, pattern } = remember ?? {};
  const calls = typeof pattern === "string" ? `calls like ${pattern}` : "this call";
  const lasts = scope === "session" || scope === "project" ? `, and ${calls} in this ${scope}` : "";
  const changed = input === undefined ? "" : `, with another input: ${JSON.stringify(input)}`;
  const why = typeof reason === "string" && reason !== "" ? `: ${reason}` : "";
  return `${approved ? "allowed" : "refused"}${lasts}${changed}${why}`;
}

function isApproval(answer: unknown): answer is Approval {
  return (
    typeof answer === "object" &&
    answer !== null &&
    "approved" in answer &&
    typeof answer.approved === "boolean" &&
    Object.keys(answer).every((field) => APPROVAL.has(field))
  );
}
