// `InboxItem`, `inInboxOrder`: one thing that waits for a person, as the command and a page show it.

import type { QuestionView } from "./question.ts";

/** The most characters of a call in the prompt of its permission (`agents/permissions/ask-permission.ts`). */
const PROMPT_CHARS = 200;

export interface InboxItem {
  /** The position of the question, or the id of the session: the same after any crash. */
  readonly id: string;
  /** `answered`: the question has an answer that no process has taken yet. */
  readonly kind: QuestionView["kind"] | "pause" | "answered";
  readonly sessionId: string;
  /** The title of the session. */
  readonly title?: string;
  /** The names of the agents from the root of the tree down to the one that waits. */
  readonly path: readonly string[];
  /** The question, or the reason of the pause. */
  readonly what: string;
  /** The pause's reason as a word. */
  readonly pauseReason?: string;
  readonly tool?: string;
  readonly action?: string;
  /** The arguments of its call, where an answer may have others in their place. */
  readonly editable?: QuestionView["editable"];
  /** The lines that its call would remove and add. */
  readonly change?: QuestionView["change"];
  /** The arguments that its change does not say. */
  readonly beside?: QuestionView["beside"];
  readonly folder?: string;
  /** The rule that an answer can keep for the session or the project. */
  readonly lastingRule?: string;
  /** The rule because of which a person is asked. */
  readonly askedBy?: string;
  readonly details?: unknown;
  /** Epoch milliseconds since which the session waits. */
  readonly since: number;
  /** When the question ends without an answer. Epoch milliseconds. */
  readonly until?: number;
  /** The people who may answer. */
  readonly principal: string;
  /** The commands that answer it. */
  readonly commands: readonly string[];
}

/** Whether the text of the item says no more than its tool and its action. */
export function repeatsAction({ what, tool, action }: Pick<InboxItem, "what" | "tool" | "action">): boolean {
  return tool !== undefined && what === `Allow ${`${tool}: ${action}`.slice(0, PROMPT_CHARS)}?`;
}

/** Uncertain effects first, then as they come. */
export function inInboxOrder(items: readonly InboxItem[]): readonly InboxItem[] {
  const isFirst = ({ kind }: InboxItem): boolean => kind === "uncertain_effect";
  return [...items.filter(isFirst), ...items.filter((item) => !isFirst(item))];
}

/** The principals that may answer for a session at a coordinator, or in a database of this machine. */
export function principalOf(owner: string | undefined, isCoordinator: boolean): string {
  if (!isCoordinator) return "anybody who may write the database";
  return owner === undefined ? "an admin" : `${owner} or an admin`;
}
