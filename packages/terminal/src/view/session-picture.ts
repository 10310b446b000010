// Everything there is to know of one session, read from its journal: for `show`.

import { defined, isEnded, type RecordedError, type Session, type StorageReader } from "@holdfast/core";
import { endsAttempt, type Cost } from "@holdfast/proto/view";
import type { Io } from "../frame/command.ts";
import { callbackJson, kinJson, readBelow, ReceivedCallbacks, walk, type KinNode } from "./session-tree.ts";
import { continuesWith, describeWaits, type DescribedWait } from "./describe-session.ts";
import { JournalTail, type JournalEvent } from "./journal-events.ts";
import { pauseAdvice, type PauseAdvice } from "./pause-advice.ts";
import { watchElsewhere } from "./moved-session.ts";
import type { RunJson } from "./run-json.ts";
import { runnerAdvice } from "./runner-advice.ts";
import { CostReader } from "./session-cost.ts";
import { sessionJson } from "./session-json.ts";
import { adviceBelow, type PausedAdvice } from "./stuck-tree.ts";

export interface TaskPicture {
  /** The number of the command that asked for the task. */
  readonly id: number;
  readonly taskId: string;
  readonly kind: string;
  readonly effect: unknown;
  /** `kept`: it has an outcome, and the agent has not heard it. */
  status: "open" | "kept" | "completed" | "failed" | "withdrawn";
  /** How many attempts were begun. */
  attempts: number;
  askedAt: number | undefined;
  durationMs: number | undefined;
  error: RecordedError | undefined;
  /** Not recorded when it is large. */
  readonly input: unknown;
  output: unknown;
}

export interface EntryPicture {
  readonly entryId: string;
  readonly role: string;
  readonly content: unknown;
}

export interface QuestionPicture {
  /** The number of the question for `holdfast answer`. */
  readonly id: number;
  readonly prompt: string;
  readonly details: unknown;
}

/** An answer that the session has taken. */
export interface AnswerPicture {
  readonly id: number;
  readonly prompt: string;
  readonly answer: unknown;
  /** The person who gave it, where that is recorded here. */
  readonly by?: string;
}

export interface Picture {
  readonly session: Session;
  readonly waits: readonly DescribedWait[];
  /** The questions that are open, by their numbers. */
  readonly questions: ReadonlyMap<number, QuestionPicture>;
  readonly answers: readonly AnswerPicture[];
  /** The command that resumes the session, if a person has to call it. */
  readonly resume: string | undefined;
  /** The command that follows it where it lives now, if that is not here. */
  readonly elsewhere: string | undefined;
  /** The commands of which one continues a session that no runner matches. */
  readonly starts: readonly string[];
  readonly paused: PauseAdvice | undefined;
  /** By which act it became persistent, of one that was started as minimal. */
  readonly persistedBy: string | undefined;
  readonly children: readonly KinNode[];
  /** Children that have ended, and whose callback the session has not received. */
  readonly callbacks: readonly Session[];
  /** Those below it that are paused, unless it is paused itself or has ended. */
  readonly pausedBelow: readonly PausedAdvice[];
  readonly tasks: readonly TaskPicture[];
  readonly entries: readonly EntryPicture[];
  /** The cost of its own calls so far, also of a turn at work. `undefined` where none is recorded. */
  readonly cost: Cost | undefined;
  /** Names of the signals that were not taken yet. */
  readonly pending: readonly string[];
  /** It is a coordinator's, whose runners see to it. */
  readonly isElsewhere: boolean;
  /**
   * The run at the coordinator, with its runner or the reason why none has it. Nothing when the session has
   * nothing to do.
   */
  readonly run: RunJson | undefined;
  /** The process that owns the database, where a process may be running the session. */
  readonly ownerPid: number | undefined;
}

/** The facts about a session that only the place of its storage knows. */
export interface SessionPlace {
  /** It is a coordinator's, whose runners see to it. */
  readonly isElsewhere: boolean;
  /** The person who gave an answer, by the id of its signal. Only where the journal does not say it. */
  principalOf?(signalId: string): Promise<string | undefined>;
  /** The run that a coordinator has for it. */
  run(): Promise<RunJson | undefined>;
  /** The process that owns the database, where a process may be running the session. */
  ownerPid(session: Session): Promise<number | undefined>;
}

export async function readPicture(
  reader: StorageReader,
  sessionId: string,
  place: SessionPlace,
  io: Io,
): Promise<Picture> {
  const tasks = new Map<string, TaskPicture>();
  const entries: EntryPicture[] = [];
  const questions = new Map<number, QuestionPicture>();
  const received = new ReceivedCallbacks();
  let lastAt: number | undefined;
  let persistedBy: string | undefined;
  const answers: AnswerPicture[] = [];
  await new JournalTail(reader, sessionId, 0, place.principalOf).advance((event) => {
    lastAt = event.at ?? lastAt;
    noteTask(tasks, event, lastAt);
    received.note(event);
    persistedBy ??= persistingAct(event);
    const { type, id, entryId, role, content, prompt, details } = event;
    if (type === "append_entry") entries.push({ entryId: String(entryId), role: String(role), content });
    if (type === "signal_received" && prompt !== undefined) answers.push(answerOf(event, prompt));
    if (type === "request_input" && id !== undefined)
      questions.set(id, { id, prompt: prompt ?? "", details });
  });
  // After the journal: then it knows of every record that was read.
  const session = (await reader.session(sessionId))!;
  if (isEnded(session.status)) for (const task of tasks.values()) noteCutOff(task);
  const pending = (await reader.pendingSignals(sessionId)).map(({ name }) => name);
  for (const id of questions.keys()) if (!session.waits.some((wait) => wait.id === id)) questions.delete(id);
  const waits = describeWaits(session, { io, now: Date.now(), pending: new Set(pending) });
  const { isElsewhere } = place;
  const run = isEnded(session.status) ? undefined : await place.run();
  const children = await readBelow(reader, session);
  const [cost] = await new CostReader().costs([{ session, reader }]);
  const paused = [...walk(children)].map((node) => node.session).filter(({ status }) => status === "paused");
  const isAbovePaused = !isEnded(session.status) && session.status !== "paused";
  return {
    session,
    waits,
    questions,
    answers,
    resume: isElsewhere
      ? undefined
      : isAbovePaused && paused.length > 0
        ? io.call(`resume ${sessionId}`)
        : continuesWith(session, waits, io),
    elsewhere: watchElsewhere(session, io),
    starts: run?.blockedUntil === undefined ? [] : runnerAdvice(session, io),
    paused: pauseAdvice(session, io, isElsewhere),
    persistedBy,
    children,
    callbacks: received.missing(children),
    pausedBelow: isAbovePaused ? adviceBelow(paused, io, isElsewhere) : [],
    tasks: [...tasks.values()],
    entries,
    cost,
    pending,
    isElsewhere,
    run,
    ownerPid: isEnded(session.status) ? undefined : await place.ownerPid(session),
  };
}

function answerOf(event: JournalEvent, prompt: string): AnswerPicture {
  const { payload: answer, by, wait } = event;
  return { id: Number(wait), prompt, answer, ...(typeof by === "string" ? { by } : {}) };
}

function persistingAct({
  type,
  persists,
  handOff,
  childId,
  name,
  pattern,
}: JournalEvent): string | undefined {
  if (persists !== true) return undefined;
  if (type === "wait_signal") return `it waited for signal "${name}"`;
  if (type === "take_signals") return `it took signals "${String(pattern)}"`;
  if (type === "request_parent") return `it asked its parent for "${name}"`;
  return handOff === true ? "it handed over" : `it asked for child ${String(childId)}`;
}

function noteTask(tasks: Map<string, TaskPicture>, event: JournalEvent, at: number | undefined): void {
  const { type, id, taskId, kind = "", attempt, durationMs } = event;
  if (type === "schedule_task" && taskId !== undefined && id !== undefined) {
    const task = {
      status: "open",
      attempts: 1,
      askedAt: at,
      durationMs: undefined,
      error: undefined,
      effect: event["effect"],
      input: event.input,
      output: undefined,
    } as const;
    tasks.set(taskId, { id, taskId, kind, ...task });
  }
  if (type === "withdraw") {
    const withdrawn = event.targets ?? [];
    for (const task of tasks.values()) if (withdrawn.includes(task.id)) task.status = "withdrawn";
  }
  const task = taskId === undefined ? undefined : tasks.get(taskId);
  if (task === undefined || attempt === undefined) return;
  task.attempts = Math.max(task.attempts, endsAttempt(event) ? attempt + 1 : attempt);
  if (type === "outcome_kept") {
    task.status = "kept";
    if (event["outcome"] === "task_failed") task.error = event["kept"] as RecordedError;
    else task.output = event["kept"];
  }
  if (type !== "task_completed" && type !== "task_failed") return;
  task.output = event.output;
  task.status = type === "task_completed" ? "completed" : "failed";
  task.durationMs = durationMs;
  task.error = event.error;
}

/**
 * The session has ended without its agent, as after the grace of a cancel. An effect that happens once may
 * have happened.
 */
function noteCutOff(task: TaskPicture): void {
  if (task.status !== "open" || task.effect !== "once" || isTurn(task)) return;
  const message = `attempt ${task.attempts} was cut off by the end of its session, and nobody knows whether its effect has happened`;
  task.error = { name: UNCERTAIN_EFFECT, message, code: "task_failed" };
}

/** Whether nobody knows if the task's effect, which happens once, has happened. */
export function isUncertain(task: TaskPicture): boolean {
  return task.error?.name === UNCERTAIN_EFFECT && !isTurn(task);
}

/** A turn of a coding agent or an executor. The program is told that a turn was cut off, and looks for itself. */
function isTurn({ kind }: TaskPicture): boolean {
  return kind.endsWith(":turn") || kind.startsWith("executor:");
}

const UNCERTAIN_EFFECT = "UncertainEffectError";

export function pictureJson(picture: Picture, now: number): object {
  const { session, waits, questions, resume, paused, children, tasks, entries, pending, ownerPid } = picture;
  const { run, starts, elsewhere, pausedBelow, persistedBy, callbacks, answers } = picture;
  const uncertain = tasks.filter(isUncertain);
  return {
    ...sessionJson(session),
    ...(uncertain.length === 0 ? {} : { uncertain }),
    waitsFor: waits,
    ...(questions.size === 0 ? {} : { questions: [...questions.values()] }),
    ...(answers.length === 0 ? {} : { answers }),
    ...defined({ resume, run }),
    ...(starts.length === 0 ? {} : { starts }),
    ...defined({ elsewhere, paused }),
    ...(pausedBelow.length === 0 ? {} : { pausedBelow }),
    ...defined({ persistedBy }),
    ...(children.length === 0 ? {} : { tree: children.map(treeJson) }),
    ...(callbacks.length === 0 ? {} : { callbacksNotReceived: callbacks.map(callbackJson) }),
    ...defined({ ownerPid }),
    tasks,
    entries,
    pendingSignals: pending,
    durationMs: (session.endedAt ?? now) - session.createdAt,
  };
}

function treeJson({ session, children }: KinNode): object {
  const { sessionId, status, agent } = session;
  const below = children.length === 0 ? {} : { tree: children.map(treeJson) };
  return { sessionId, agent: agent.name, status, ...kinJson(session), ...below };
}
