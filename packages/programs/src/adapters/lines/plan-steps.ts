// `planStepsOf`: a plan or a todo list of another program, in which nothing is certain. Pure.

import type { PlanStep } from "../../session/external-agent-protocol.ts";
import { listOf, textOr } from "../../session/fields.ts";

/**
 * A step has its text in the field of this name. A status that is not known counts as `pending`.
 *
 * @returns `undefined` for a value that is no list.
 */
export function planStepsOf(list: unknown, textField: string): readonly PlanStep[] | undefined {
  if (!Array.isArray(list)) return undefined;
  return listOf(list).map(({ [textField]: text, status }) => ({
    text: textOr(text, ""),
    status: STATUSES[textOr(status, "")] ?? "pending",
  }));
}

/** The statuses as programs name them. */
const STATUSES: Readonly<Record<string, PlanStep["status"]>> = {
  in_progress: "in_progress",
  inProgress: "in_progress",
  completed: "completed",
};
