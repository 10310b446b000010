// `answerByKey`: a question of a session answered by keys. `a` approves and `d` denies, each with a reason if
// the person types one. `s` and `p` keep the answer as a rule, and `e` writes an answer. Nothing is sent
// before Enter, and Escape leaves.

import { HoldfastError, type Approval } from "@holdfast/core";
import type { InboxItem } from "@holdfast/proto/view";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { errorText, shownError } from "@holdfast/terminal/frame/command-error";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { typed, type TerminalScreen } from "@holdfast/terminal/frame/terminal-screen";
import { questionLine } from "@holdfast/terminal/view/describe-session";
import { answerQuestion } from "../sessions/answer-question.ts";

const MESSAGE_CHARS = 400;
const RULE_CHARS = 200;
const ENTER = "Enter sends, Escape leaves";

export interface TypedText {
  readonly label: string;
  readonly text: string;
}

/** A line that a person types. @returns `undefined` when they leave it. */
export async function typeLine(
  screen: Pick<TerminalScreen, "key" | "stopExit">,
  label: string,
  draw: (typing: TypedText | undefined) => void,
  initial = "",
): Promise<string | undefined> {
  for (let text = initial; ;) {
    draw({ label, text });
    const key = await screen.key();
    if (key === undefined && screen.stopExit === undefined) continue; // Something else has changed meanwhile.
    if (key === undefined || key.name === "escape" || key.name === "end" || key.name === "return") {
      draw(undefined);
      return key?.name === "return" ? text : undefined;
    }
    text = typed(text, key);
  }
}

/** Does something whose notes and errors are one line of a screen. @returns that line. */
export async function quietly(io: Io, work: (quiet: Io) => Promise<unknown>): Promise<string> {
  const said: string[] = [];
  const show = (_value: unknown, text: string): void => void (text === "" || said.push(text));
  try {
    await work({ ...io, isJson: false, result: show, show, note: (line) => void said.push(line) });
    return plainLine(said.join("; "), MESSAGE_CHARS);
  } catch (error) {
    if (!HoldfastError.is(error)) throw error;
    return plainLine(errorText(shownError(error), false), MESSAGE_CHARS);
  }
}

export type AnswerKey = "a" | "d" | "s" | "p" | "e";

export function isAnswerKey(name: string): name is AnswerKey {
  return ["a", "d", "s", "p", "e"].includes(name);
}

/** The keys that answer an item, for people. */
export function answerKeys(item: InboxItem): readonly string[] {
  if (questionNumber(item) === undefined || item.kind === "answered") return [];
  if (item.kind === "question") return ["e answer"];
  return [
    "a approve",
    "d deny",
    ...(item.lastingRule === undefined ? [] : ["s/p always in session/project"]),
  ];
}

/**
 * @param isSeen whether the whole question was on the screen. An approval needs that.
 * @param type asks for a line.
 * @returns what came of it, for people.
 */
export async function answerByKey(
  key: AnswerKey,
  { item, isSeen }: { readonly item: InboxItem; readonly isSeen: boolean },
  type: (label: string) => Promise<string | undefined>,
  args: Arguments,
  io: Io,
): Promise<string> {
  const question = questionNumber(item);
  if (question === undefined || item.kind === "answered")
    return "this is answered by the command that it shows";
  const isYes = key === "a" || key === "s" || key === "p";
  // A question that was never shown cannot be approved.
  if (isYes && !isSeen) return "see the rest first: space";
  if ((key === "s" || key === "p") && item.lastingRule === undefined)
    return "no rule can be kept of this call";
  const text = await type(labelOf(key, item));
  if (text === undefined) return "not answered";
  const { sessionId } = item;
  const answer = answerOf(key, text.trim());
  return quietly(io, (quiet) =>
    answerQuestion(args, quiet, { id: sessionId, question: { id: question }, ...answer }),
  );
}

function labelOf(key: AnswerKey, { lastingRule = "" }: InboxItem): string {
  const rule = questionLine(lastingRule, RULE_CHARS);
  if (key === "a") return `approve, with a reason if you like (${ENTER})`;
  if (key === "d") return `deny, with a reason (${ENTER})`;
  if (key === "e") return `answer as JSON (${ENTER})`;
  return `allow ${rule} in this ${key === "s" ? "session" : "project"} from now on (${ENTER})`;
}

function answerOf(key: AnswerKey, text: string) {
  if (key === "e") return { payload: jsonOrText(text), isApproval: false, said: "answered" };
  const reason = text === "" ? {} : { reason: text };
  if (key === "d")
    return { payload: { approved: false, ...reason }, isApproval: true, isNo: true, said: "denied" };
  if (key === "a") return { payload: { approved: true, ...reason }, isApproval: true, said: "approved" };
  const scope = key === "s" ? "session" : "project";
  const payload: Approval = { approved: true, remember: { scope }, ...reason };
  return { payload, isApproval: true, isRule: true, keepsRule: true, said: `approved for the ${scope}` };
}

/** The number of the question of an item; `undefined` for a pause and for a session that has failed. */
function questionNumber({ id, sessionId }: InboxItem): number | undefined {
  const [, digits] = /^-(\d+)$/.exec(id.slice(sessionId.length)) ?? [];
  return digits === undefined || !id.startsWith(sessionId) ? undefined : Number(digits);
}

/** JSON as its value, and any other text as a text. */
function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
