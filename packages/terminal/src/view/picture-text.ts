// The text that `show` prints for people.

import { decodeJson, defined, isEnded, isLost, isReservedName } from "@holdfast/core";
import {
  answerText,
  costText,
  isWhyOfCause,
  nodeFacts,
  uncountedText,
  viewQuestion,
  withoutReplacedPlans,
} from "@holdfast/proto/view";
import { isKeyReach, keyReachText } from "./key-reach-text.ts";
import type { Look } from "../frame/command.ts";
import {
  beforeResume,
  errorLines,
  moment,
  paintStatus,
  askedLines,
  currentError,
  isByCancel,
  ruleAdvice,
} from "./describe-session.ts";
import { entryText, roleText } from "./event-line.ts";
import { callbackRows, kinFacts, shownIds, walk } from "./session-tree.ts";
import { count, duration, jsonText, plain, plainLine, table } from "../frame/plain-text.ts";
import {
  isUncertain,
  type AnswerPicture,
  type EntryPicture,
  type Picture,
  type TaskPicture,
} from "./session-picture.ts";

/** The most tasks that are shown; `--json` has all. */
const TASKS_SHOWN = 40;
const ENTRIES_SHOWN = 20;
const ANSWERS_SHOWN = 20;
const CHILDREN_SHOWN = 200;
const CHILD_TITLE_CHARS = 40;
const LABEL_CHARS = 14;
const LINE_CHARS = 160;

export function pictureText(picture: Picture, look: Look, now: number): string {
  const { session, tasks, entries, pending } = picture;
  const error = isSaidByPause(session) || isByCancel(session) ? undefined : currentError(session);
  const lines = [look.paint.bold(session.sessionId), ...facts(picture, look, now)];
  if (error !== undefined)
    lines.push("", look.paint.bold("Error"), ...errorLines(error).map((line) => `  ${look.paint.red(line)}`));
  const uncertain = tasks.filter(isUncertain);
  if (uncertain.length > 0)
    lines.push(
      "",
      look.paint.bold("Uncertain effects"),
      ...taskLines(uncertain, look).map((line) => `  ${line}`),
      "  Look whether each has happened before you do it again.",
    );
  lines.push(...waiting(picture, look), ...childLines(picture, look), ...callbackLines(picture, look));
  // Signals of children are for the agent only, and the children's own lines show them.
  const unread = pending.filter((name) => !isReservedName(name));
  if (unread.length > 0)
    lines.push(
      "",
      `${count(unread.length, "signal")} not taken yet: ${cut([...new Set(unread)].join(", "), look)}`,
    );
  lines.push(
    ...section("Answers", picture.answers, ANSWERS_SHOWN, (shown) => answerLines(shown, look), look),
  );
  const others = tasks.filter((task) => !isUncertain(task));
  lines.push(...section("Tasks", others, TASKS_SHOWN, (shown) => taskLines(shown, look), look));
  const entryLine = ({ role, content }: EntryPicture): string => {
    return `${look.paint.bold(`${roleText(role, content)}:`)} ${cut(entryText(role, content), look)}`;
  };
  const current = withoutReplacedPlans(entries);
  lines.push(...section("Conversation", current, ENTRIES_SHOWN, (shown) => shown.map(entryLine), look));
  return lines.join("\n");
}

/** Whether the section about the pause has the whole error of the session. */
function isSaidByPause({ status, pauseReason, error }: Picture["session"]): boolean {
  return isWhyOfCause({ status, ...defined({ pauseReason, error }) });
}

function answerLines(answers: readonly AnswerPicture[], look: Look): string[] {
  return answers.map(({ id, prompt, answer, by }) => {
    const person = by === undefined ? "" : ` by ${plainLine(by, LINE_CHARS)}`;
    return `${id}${person}: ${cut(`${prompt} ${answerText(answer)}`, look)}`;
  });
}

function facts(picture: Picture, look: Look, now: number): string[] {
  const { session } = picture;
  const { title, agent, input, output, createdAt, updatedAt, endedAt, turn, persistence } = session;
  const { persistedBy } = picture;
  const known: (readonly [string, string | undefined])[] = [
    ["title", title],
    ["status", paintStatus(session, look) + runBy(picture, look)],
    ...placeFacts(picture, now),
    ["agent", `${agent.name}, version ${agent.version}`],
    ["file", agent.file],
    [
      "persistence",
      persistedBy === undefined
        ? persistence
        : plainLine(`full: it was minimal until ${persistedBy}`, LINE_CHARS),
    ],
    ["keys", keysFact(picture)],
    ["started", moment(createdAt, now)],
    endedAt === undefined
      ? ["last change", moment(updatedAt, now)]
      : ["ended", `${moment(endedAt, now)}, after ${duration(endedAt - createdAt)}`],
    ["turns", turn === 0 ? undefined : String(turn)],
    ["usage", picture.cost && uncountedText(picture.cost)],
    ["cost", picture.cost === undefined || picture.cost.calls === 0 ? undefined : costText(picture.cost)],
    ["input", input],
    ["output", output],
    ...kinFacts(session, now),
  ];
  const rows = known.flatMap(([name, value]) => {
    if (value === undefined) return [];
    // The status has colours of ours; a path is for copying, and a reason for reading.
    const text = WHOLE.has(name) ? value : cut(value, look);
    return [[`  ${look.paint.dim(name)}`, text]];
  });
  return table(rows);
}

/** Whether the shell of an external agent can read its keys, as the last turn or the preparation recorded it. */
function keysFact({ tasks }: Picture): string | undefined {
  const last = tasks.findLast(({ kind, output }) => {
    return isOfProgram(kind) && isKeyReach(keysIn(output));
  });
  const keys = keysIn(last?.output);
  return isKeyReach(keys) ? keyReachText(keys) : undefined;
}

/** The tasks of an external agent that know its program: each turn, and the preparation. */
function isOfProgram(kind: string): boolean {
  return kind.endsWith(":turn") || kind.endsWith("prepare");
}

function keysIn(output: unknown): unknown {
  return typeof output === "object" && output !== null
    ? (output as { readonly keys?: unknown }).keys
    : undefined;
}

const WHOLE = new Set(["status", "held by", "not taken", "file"]);

/** The runner that has the session at its coordinator, or the reason why none has. */
function placeFacts({ session, run }: Picture, now: number): (readonly [string, string | undefined])[] {
  if (run === undefined) return [];
  const { holder, runnerName, leaseUntil, blocked, blockedUntil } = run;
  if (holder === undefined) {
    const end = session.status === "submitted" && session.nextSeq === 0 ? "fails" : "is paused";
    const until =
      blockedUntil === undefined ? "" : `; it ${end} at ${moment(blockedUntil, now)} unless one comes`;
    return [["not taken", plainLine(`${blocked ?? "no runner has it"}${until}`, Infinity)]];
  }
  const name = runnerName === undefined ? holder : `${runnerName} (${holder})`;
  const lease =
    leaseUntil === undefined ? "" : `, for ${duration(Math.max(0, leaseUntil - now))} unless renewed`;
  const why = blocked === undefined ? "" : `; ${blocked}`;
  return [["held by", plainLine(name + lease + why, Infinity)]];
}

/** All below it, each indented under its parent. */
function childLines({ children }: Picture, look: Look): string[] {
  const nodes = [...walk(children)];
  const ids = shownIds(
    nodes.map(({ session }) => session),
    look,
  );
  const rows = nodes.map(({ session, depth }) => [
    "  ".repeat(depth) + ids(session.sessionId),
    paintStatus(session, look),
    plainLine(session.agent.name, 40),
    plainLine(session.title ?? "", CHILD_TITLE_CHARS, look.symbols.cut),
    plainLine(nodeFacts({ ...session, progress: decodeJson(session.progress) }).join(", "), 100),
  ]);
  return section("Children", rows, CHILDREN_SHOWN, table, look);
}

/** Callbacks that came too late for a session that has ended, or that an active one takes with its next turn. */
function callbackLines({ session, callbacks }: Picture, look: Look): string[] {
  const title = `Callbacks ${isEnded(session.status) ? "that it did not receive" : "not received yet"}`;
  return section(title, callbacks, CHILDREN_SHOWN, (shown) => callbackRows(shown, look), look);
}

function waiting(picture: Picture, look: Look): string[] {
  const { session, waits, questions, resume, elsewhere, starts, paused, pausedBelow, ownerPid } = picture;
  const { paint } = look;
  if (elsewhere !== undefined)
    return ["", paint.bold("Watch it where it is now"), `  ${paint.cyan(elsewhere)}`];
  if (starts.length > 0)
    return ["", paint.bold("Continue with one of"), ...starts.map((command) => `  ${paint.cyan(command)}`)];
  if (paused !== undefined) {
    const commands = paused.commands.map((command) => `      ${paint.cyan(command)}`);
    return ["", paint.bold("Paused"), `  ${paused.why}`, ...commands];
  }
  if (isGone(picture))
    return [
      "",
      `It was ephemeral, and was lost with its process${paint.dim("; resume records that as its end")}`,
    ];
  if (waits.length === 0 && resume === undefined) return [];
  const label = `${ownerPid === undefined ? "" : `if process ${ownerPid} does not run it, `}${beforeResume(session)}`;
  const lines = [
    "",
    paint.bold(waits.length > 0 ? "Waits for" : `${label[0]!.toUpperCase()}${label.slice(1)}`),
  ];
  for (const { id, what, until, commands, hasArrived } of waits) {
    const question = questions.get(id);
    const view = question && viewQuestion(question, undefined);
    const [first = "", ...others] = view === undefined ? [] : askedLines(view);
    const text =
      question === undefined ? what + until : `an answer to question ${question.id}${until}: ${first}`;
    lines.push(
      `  ${text}${hasArrived ? paint.green("  (has arrived)") : ""}`,
      ...others.map((line) => `    ${line}`),
    );
    lines.push(...commands.map((command) => `      ${paint.cyan(command)}`));
    if (view?.lastingRule !== undefined && commands.length > 0)
      lines.push(`      ${paint.dim(ruleAdvice(view.lastingRule))}`);
  }
  if (pausedBelow.length > 0) {
    lines.push("", paint.bold("Paused below it"));
    for (const { sessionId, why, commands } of pausedBelow.slice(0, CHILDREN_SHOWN))
      lines.push(`  ${sessionId}: ${why}`, ...commands.map((command) => `      ${paint.cyan(command)}`));
    if (resume !== undefined) lines.push(`  and then: ${paint.cyan(resume)}`);
    return lines;
  }
  if (resume !== undefined) lines.push(`  ${waits.length > 0 ? `and ${label}: ` : ""}${paint.cyan(resume)}`);
  return lines;
}

function section<T>(
  title: string,
  items: readonly T[],
  shownMax: number,
  render: (shown: readonly T[]) => readonly string[],
  { paint }: Look,
): string[] {
  if (items.length === 0) return [];
  const some = items.length > shownMax ? `, the last ${shownMax}; \`logs\` has all` : "";
  return [
    "",
    `${paint.bold(title)} ${paint.dim(`(${items.length}${some})`)}`,
    ...render(items.slice(-shownMax)).map((row) => `  ${row}`),
  ];
}

/** A row for each, and below it the error in full. */
function taskLines(tasks: readonly TaskPicture[], look: Look): string[] {
  const rows = table(tasks.map((task) => taskRow(task, look)));
  return tasks.flatMap(({ error }, i) => [
    rows[i]!,
    ...(error === undefined ? [] : errorLines(error).map((line) => `       ${look.paint.red(line)}`)),
  ]);
}

function taskRow(
  { id, kind, status, attempts, durationMs, error }: TaskPicture,
  { paint, symbols }: Look,
): string[] {
  const marks = {
    open: symbols.begin,
    completed: paint.green(symbols.done),
    failed: paint.red(symbols.failed),
    kept: symbols.done,
    withdrawn: symbols.again,
  };
  return [
    paint.dim(`#${id}`.padStart(4)),
    marks[status],
    plainLine(kind, 60),
    status === "kept" ? `${error === undefined ? "completed" : "failed"} (not delivered yet)` : status,
    durationMs === undefined ? "" : duration(durationMs),
    attempts === 1 ? "" : count(attempts, "attempt"),
  ];
}

/** One task in full; lines of text are cut nowhere. */
export function taskText(task: TaskPicture, look: Look): string {
  const { status, input, output, error } = task;
  const part = (title: string, value: unknown): string[] =>
    value === undefined
      ? []
      : ["", look.paint.bold(title), typeof value === "string" ? plain(value) : jsonText(value)];
  return [
    table([taskRow(task, look)]).join(""),
    ...part("Input", input ?? "none, or too large to be kept in the journal"),
    ...(status === "open" || status === "withdrawn" || error !== undefined
      ? []
      : part("Output", output ?? "none")),
    ...(error === undefined ? [] : ["", look.paint.bold("Error"), ...errorLines(error)]),
  ].join("\n");
}

/** The session can be neither continued nor answered. */
function isGone({ session, ownerPid, isElsewhere }: Picture): boolean {
  return isLost(session) && ownerPid === undefined && !isElsewhere;
}

/** The process that may be running the session. */
function runBy({ session, ownerPid, isElsewhere }: Picture, { paint }: Look): string {
  if (isEnded(session.status) || session.move !== undefined || isElsewhere) return "";
  if (ownerPid !== undefined) return paint.dim(`  (process ${ownerPid} has the database open)`);
  const text = "no process is running it";
  return session.status === "working" ? paint.yellow(`  (interrupted: ${text})`) : paint.dim(`  (${text})`);
}

function cut(text: string, { columns, symbols }: Look): string {
  return plainLine(text, Math.max(20, Math.min(columns, LINE_CHARS) - LABEL_CHARS), symbols.cut);
}
