// `subAgentCallOf`, `planOf`: the author of an entry of a conversation, and its plan. Pure, over plain JSON.

/**
 * The call of a tool that started a sub-agent inside of the program of an external agent.
 *
 * @returns `undefined` for an entry of the session's own agent.
 */
export function subAgentCallOf(content: unknown): string | undefined {
  if (typeof content !== "object" || content === null || !("parentCallId" in content)) return undefined;
  return typeof content.parentCallId === "string" ? content.parentCallId : undefined;
}

/** One step of a plan or todo list. */
export interface PlanStepView {
  readonly text: string;
  readonly status: string;
}

/** @returns `undefined` for an entry that is no plan. */
export function planOf(role: string, content: unknown): readonly PlanStepView[] | undefined {
  if (role !== "plan" || typeof content !== "object" || content === null) return undefined;
  const { steps } = content as { readonly steps?: unknown };
  return Array.isArray(steps) ? steps.filter(isStep) : undefined;
}

export function isStep(step: unknown): step is PlanStepView {
  const { text, status } = (step ?? {}) as Partial<PlanStepView>;
  return typeof text === "string" && typeof status === "string";
}

/** `[x]` for a step that is done, `[>]` for one that is being done. */
export function stepText({ text, status }: PlanStepView): string {
  return `${MARKS[status] ?? "[ ]"} ${text}`;
}

const MARKS: Readonly<Record<string, string>> = { completed: "[x]", done: "[x]", in_progress: "[>]" };

/** Without the plans that a later plan of the same author has replaced. */
export function withoutReplacedPlans<Item extends { readonly role: string; readonly content?: unknown }>(
  entries: readonly Item[],
): readonly Item[] {
  const last = new Map<string | undefined, Item>();
  for (const entry of entries)
    if (planOf(entry.role, entry.content) !== undefined) last.set(subAgentCallOf(entry.content), entry);
  return entries.filter(
    (entry) =>
      planOf(entry.role, entry.content) === undefined || last.get(subAgentCallOf(entry.content)) === entry,
  );
}

/** How a message that was sent while the agent worked has reached it. */
export function deliveryOf(content: unknown): "steer" | "queue" | undefined {
  if (typeof content !== "object" || content === null || !("delivery" in content)) return undefined;
  const { delivery } = content;
  return delivery === "steer" || delivery === "queue" ? delivery : undefined;
}
