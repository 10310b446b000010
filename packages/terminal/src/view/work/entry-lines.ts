// `entryLines`: an entry of a conversation for people who watch the work. Edits are coloured lines, and output
// is folded. The text of the agent itself is the caller's to show, since it may have been streamed.

import { stripVTControlCharacters } from "node:util";
import {
  type CallView,
  CUT_OFF_RESULT,
  deliveryOf,
  foldChange,
  foldOutput,
  isWrittenByAdapter,
  planOf,
  type ReplyParts,
  replyOf,
  resultOf,
  stepText,
  subAgentCallOf,
  viewCall,
  viewResult,
} from "@holdfast/proto/view";
import type { Look } from "../../frame/command.ts";
import { count, plainLine } from "../../frame/plain-text.ts";
import { questionLine } from "../describe-session.ts";
import { entryText } from "../event-line.ts";
import { cutPath, type OpenCalls } from "./shown-path.ts";

const LINE_CHARS = 200;
const COMMAND_CHARS = 1_000;
/** A path beside other things in one line. */
const PATH_CHARS = 32;
/** The call of a result among others. */
const CALL_CHARS = 40;

const REQUEST_CHARS = 500;

/** @param open the calls without a result, which the entry adds to and takes from. */
export function entryLines(role: string, content: unknown, open: OpenCalls, look: Look): readonly string[] {
  const { paint, symbols } = look;
  const by = subAgentCallOf(content) === undefined ? "" : paint.dim("sub-agent: ");
  const plan = planOf(role, content);
  if (plan !== undefined) return plan.map((step) => paint.dim(`  ${by}${line(stepText(step), look)}`));
  switch (role) {
    case "assistant": {
      const { text, toolCalls } = replyOf(content);
      const said = by === "" || text === "" ? [] : [`${by}${paint.dim(line(text, look))}`];
      return [...said, ...toolCalls.flatMap((call) => callLines(call, open, by, look))];
    }
    case "user": {
      const delivery = deliveryOf(content);
      return delivery === undefined ? [] : [paint.dim(`  ${symbols.done} ${DELIVERED[delivery]}`)];
    }
    case "tool":
      return resultLines(content, open, by, look);
    default:
      return [];
  }
}

/** A request of the user, or what the adapter of an external agent has written in its place. */
export function requestLine(content: unknown, { paint }: Look): string {
  const text = plainLine(entryText("user", content), REQUEST_CHARS);
  if (!isWrittenByAdapter(text)) return `${paint.cyan(">")} ${text}`;
  return paint.dim(text.startsWith("(") ? `  ${text}` : `  told the agent: ${text}`);
}

/** The receipts of messages that were sent while the agent worked. */
const DELIVERED = {
  steer: "your message reached the agent in the middle of its work",
  queue: "your message waited for the answer, and is the request now",
} as const;

/** A call in one line without colours. */
export function callText(call: CallView, charsMax: number, cutMark: string): string {
  const { verb, subject } = call;
  if (subject === "") return questionLine(verb, charsMax);
  const shown = call.isPath === true ? cutPath(subject, PATH_CHARS, cutMark) : subject;
  return questionLine(`${verb} ${shown}`, charsMax);
}

function callLines(
  { id, name, input }: ReplyParts["toolCalls"][number],
  open: OpenCalls,
  by: string,
  look: Look,
): readonly string[] {
  const { paint, symbols } = look;
  const view = viewCall(name, input, open.folder);
  if (id !== undefined) open.set(id, view);
  const { change = [], steps = [] } = view;
  const marks = change.length === 0 ? "" : `  ${changeMarks(change, look)}`;
  const head = `${by}${paint.dim(symbols.begin)} ${paint.bold(line(view.verb, look))}`;
  // The end of a command may be the part that matters.
  const subjectChars = view.verb === "Run" ? COMMAND_CHARS : widthOf(look);
  const path = view.isPath === true ? cutPath(view.subject, subjectChars, symbols.cut) : view.subject;
  const subject = view.subject === "" ? "" : ` ${questionLine(path, subjectChars)}`;
  return [
    `${head}${subject}${marks}`,
    ...changeLines(change, look),
    ...steps.map((step) => paint.dim(`  ${by}${line(stepText(step), look)}`)),
  ];
}

const CUT_OFF_CALL = "cut off before it ended; it may have taken effect";

type Change = NonNullable<CallView["change"]>;

function changeMarks(change: Change, { paint }: Look): string {
  const added = change.filter(({ type }) => type === "added").length;
  const deleted = change.length - added;
  return [
    ...(added > 0 ? [paint.green(`+${added}`)] : []),
    ...(deleted > 0 ? [paint.red(`-${deleted}`)] : []),
  ].join(" ");
}

function changeLines(change: Change, look: Look): readonly string[] {
  const { paint, symbols } = look;
  const shown = foldChange(change);
  const more = change.length - shown.length;
  return [
    ...shown.map(({ type, text }) =>
      type === "added"
        ? paint.green(`    + ${codeLine(text, look)}`)
        : paint.red(`    - ${codeLine(text, look)}`),
    ),
    ...(more > 0 ? [paint.dim(`    ${symbols.cut} ${count(more, "more line")}`)] : []),
  ];
}

function resultLines(content: unknown, open: OpenCalls, by: string, look: Look): readonly string[] {
  const { paint, symbols } = look;
  const { callId } = resultOf(content);
  const call = open.get(callId);
  // With several calls at once a result says which is its own.
  const of =
    call === undefined || open.size === 1 ? "" : paint.dim(`${callText(call, CALL_CHARS, symbols.cut)}: `);
  open.delete(callId);
  const viewed = viewResult(call, content);
  // A command may have written colours.
  const result = { ...viewed, output: viewed.output.map((one) => stripVTControlCharacters(one)) };
  const { hasFailed, output, change } = result;
  if (output.join("\n") === CUT_OFF_RESULT)
    return [`  ${by}${paint.yellow(symbols.again)} ${of}${paint.dim(CUT_OFF_CALL)}`];
  const mark = hasFailed ? paint.red(symbols.failed) : paint.green(symbols.done);
  if (change !== undefined)
    return [`  ${by}${mark} ${of}${changeMarks(change, look)}`, ...changeLines(change, look)];
  const shown = foldOutput(call, result);
  const [first = "", ...others] = shown;
  const more = output.length - shown.length;
  const fold = more > 0 ? paint.dim(`  (${count(output.length, "line")})`) : "";
  return [
    `  ${by}${mark} ${of}${paint.dim(line(first, look))}${fold}`,
    ...others.map((other) => paint.dim(`    ${codeLine(other, look)}`)),
  ];
}

function line(text: string, look: Look): string {
  return questionLine(text, widthOf(look));
}

/** A line of code. Its indentation is kept, and what would not be seen of it is named. */
function codeLine(text: string, look: Look): string {
  const [, indent = ""] = /^([ \t]*)/.exec(text) ?? [];
  return indent.replaceAll("\t", "  ") + line(text, look);
}

function widthOf({ columns }: Look): number {
  return Math.max(20, Math.min(LINE_CHARS, columns - 12));
}
