// The durable task that carries out one turn of an external agent (`turnTask`).
//
//   - A turn happens once: neither a crash nor an orderly stop runs it again. The agent decides what follows
//     one that was cut off.
//   turn-task-2. An event is a signal of the session before the turn ends. The output says how many reports
//       there are.
//   - A session has at most one process of its agent on a machine: what an earlier process of ours has left
//     is ended first.
//   - A turn whose question waits for longer than `keepAliveMs` is ended. The question stays, and its answer
//     begins the next turn.
//   turn-task-5. Usage is charged with the report that tells of it, and the answer says what other sessions
//       have left of the budget. A turn that finds it used up is ended, also one that waits. Silence is
//       reported and never a failure.
//   turn-task-6. A turn that has used four fifths of the rest of its budget is told so once, where its agent
//       takes a message.
//   turn-task-7. A resume with a restore receipt begins when nothing is lost. A loss ends the task before a
//       process starts.
//   turn-task-8. All that an agent says has limits (`bounded-events.ts`).
//   - The program and the rights of a turn are the choice of this machine and not of the record
//     (`own-intent.ts`).
//   - Keys that the gateway of the turn can hold are not given to the program (`program-keys.ts`). The
//     gateway ends with the program.
//   - The program of a conversation may be kept for its next turn, for `keepAliveMs`. A turn that begins
//     otherwise than with it ends it first.
//   - The gateway sends a request only while the account of the tree has something left. The program's own
//     reports are the only source of its usage.
//   - A turn in order that has reported no usage has an unknown one, and not none. That of a turn which was
//     cut off is counted afterwards (`recorded-usage.ts`).

import { clearInterval, clearTimeout, setInterval, setTimeout } from "node:timers";
import { defined } from "@holdfast/core";
import { defineTask, type TaskContext } from "@holdfast/runtime";
import { isUrgentAbort } from "@holdfast/system";

import type {
  Enclose,
  ExternalAgent,
  ExternalAgentProtocol,
  ExternalEnd,
  ExternalEvent,
  ExternalIntent,
  ExternalTurn,
  PermissionAnswer,
} from "./external-agent-protocol.ts";
import { boundedEnd } from "./bounded-events.ts";
import { PendingCalls, type SessionCallEvent } from "./way-back/pending-calls.ts";
import type { CallResult } from "./way-back/way-back.ts";
import { isQuestion } from "./way-back/way-back-tools.ts";
import { BudgetFence } from "./limits/budget-fence.ts";
import { limitOf, type AgentLimit } from "./limits/agent-limit.ts";
import { CUT_OFF_ENDS, UNKNOWN_USAGE } from "./limits/recorded-usage.ts";
import { turnCost } from "./limits/turn-cost.ts";
import { takeOwnIntent, type OwnIntent, type OwnPlace, type OwnRights } from "./intent/own-intent.ts";
import { openEnclosure } from "./enclosure/enclosure.ts";
import type { KeyReach } from "./keys/program-keys.ts";
import type { Connections, KeptConnections } from "./program/connections.ts";
import { OWN_ID, pruneRawLines, RawLines, rawLinesFolder, type RawReference } from "./raw/raw-lines.ts";
import { checkBeforeTurn, takeReceipt, type CheckedTurn, type ReceiptPlace } from "./receipt/read-receipt.ts";
import type { RestoreReceipt } from "./receipt/restore-receipt.ts";
import { TurnEvents } from "./turn-reports.ts";

export interface TurnRequest extends Pick<
  ExternalTurn,
  "intent" | "boundId" | "prompt" | "isCommand" | "parameters"
> {
  /** The member of the port that begins the turn. */
  readonly mode: "start" | "sendMessage" | "resume";
  /** The number of the turn, from 1. */
  readonly turn: number;
  readonly keepAliveMs: number;
  /** The rest of the budget; `null` without a limit. */
  readonly tokensLeft: number | null;
  readonly costMicroUsdLeft: number | null;
  /** turn-task-7. Absent where nothing is checked. */
  readonly receipt?: RestoreReceipt;
  /** A person has chosen that a damaged session file is replaced by its copy. */
  readonly restores?: boolean;
}

export interface TurnOutput {
  readonly end: ExternalEnd;
  readonly isOverBudget: boolean;
  readonly isSuspended: boolean;
  readonly reports: number;
  /** The lines of the program, which are kept on the machine of the turn. */
  readonly raw?: RawReference;
  /** Taken where the turn ended in order. */
  readonly receipt?: RestoreReceipt;
  /** The turn ended by a limit of the agent's account. */
  readonly limit?: AgentLimit;
  /** turn-task-7. The turn did not begin. */
  readonly losses?: readonly string[];
  /** A loss that the copy of the session file can repair. */
  readonly isRestorable?: boolean;
  /** How a session with losses continues. */
  readonly rights?: OwnRights;
  /** Absent for an agent that is no program of this machine. */
  readonly keys?: KeyReach;
}

const SILENCE_MS = 60_000;
/** How often a turn looks at a limited budget, which others may use up while it waits for an answer. */
const BUDGET_LOOK_MS = 5_000;
/** The turns at work in this process, by session. */
export type LiveTurns = Map<string, LiveTurn>;

/**
 * The receipt for a message to a turn at work. A message that is not in it is `queued`: with the program, or
 * in the session.
 */
export type MessageReceipt = "injected" | "restarted" | "queued";

/** A turn at work. It ends itself when a question waits for too long. */
export class LiveTurn {
  readonly agent: ExternalAgent;
  isSuspended = false;
  readonly #keepAliveMs: number;
  readonly #calls: PendingCalls;
  #hasStarted = false;
  readonly #open = new Map<string, NodeJS.Timeout>();

  constructor(agent: ExternalAgent, keepAliveMs: number, calls: PendingCalls) {
    this.agent = agent;
    this.#keepAliveMs = keepAliveMs;
    this.#calls = calls;
  }

  note(event: ExternalEvent | SessionCallEvent): void {
    if (event.type === "session_started") this.#hasStarted = true;
    if (event.type === "permission_withdrawn") this.#forget(event.requestId);
    if (event.type === "permission_request") this.#await(event.request.requestId);
    if (event.type === "session_call" && isQuestion(event.call)) this.#await(`call ${event.callId}`);
  }

  /**
   * Gives a message to the agent.
   *
   * @param restarts whether a turn that does not take it is interrupted. A program that has opened no session
   *   yet is left alone.
   */
  async steer(text: string, restarts: boolean): Promise<MessageReceipt> {
    if ((await this.agent.steer(text)) === "injected") return "injected";
    if (!restarts || !this.#hasStarted || this.isSuspended) return "queued";
    return (await this.agent.abort()).type === "aborted" ? "restarted" : "queued";
  }

  /** @returns whether the answer reached the agent. */
  async answer(requestId: string, answer: PermissionAnswer): Promise<boolean> {
    if (this.isSuspended) return false;
    this.#forget(requestId);
    return this.agent.answerPermission(requestId, answer);
  }

  /** @returns whether the result reached the agent. */
  answerCall(callId: number, result: CallResult): boolean {
    if (this.isSuspended) return false;
    this.#forget(`call ${callId}`);
    return this.#calls.answer(callId, result);
  }

  end(): void {
    for (const timer of this.#open.values()) clearTimeout(timer);
    this.#open.clear();
  }

  #await(question: string): void {
    const suspend = (): void => {
      this.isSuspended = true;
      void this.agent.abort();
    };
    this.#open.set(question, setTimeout(suspend, this.#keepAliveMs));
  }

  #forget(requestId: string): void {
    clearTimeout(this.#open.get(requestId));
    this.#open.delete(requestId);
  }
}

/** The surroundings of the turns of one external agent. */
interface TurnPlace extends ReceiptPlace, OwnPlace {
  readonly protocol: ExternalAgentProtocol;
  readonly live: LiveTurns;
  /** Whether the agent may start others in this session. */
  readonly startsAgents: (intent: ExternalIntent) => boolean;
  readonly deletesSessions: (intent: ExternalIntent) => boolean;
  /** Whether the program of a conversation is kept for the next turn. */
  readonly keepsPrograms: boolean;
  /** The sessions of this process whose present turn is followed by another one after its answer. */
  readonly conversations: Set<string>;
  readonly connections: KeptConnections;
  /** How long a program may write nothing before that is reported. A minute by default. */
  readonly silenceMs?: number | undefined;
}

/** @param place `mirrors` is the folder for copies of session files. */
export function turnTask(place: TurnPlace) {
  const { protocol } = place;
  return defineTask<TurnRequest, TurnOutput>({
    name: `${protocol.name}:turn`,
    description: `One turn of ${protocol.name}.`,
    effect: "once", // The agent decides what follows a turn that was cut off.
    ...defined({ secrets: protocol.secrets }),
    cost: (request) => turnCost(protocol, request),
    run: (request, task) => carryOut(place, request, task),
    endLost: (request) => protocol.endLost(tagOf((request as TurnRequest).intent)),
  });
}

/** The id of the agent's session and not of ours, which a user may choose twice. */
export function tagOf({ agentSessionId }: ExternalIntent): string {
  return `external:${agentSessionId}`;
}

/** The steps of a turn, in the order that the rules need. */
async function carryOut(place: TurnPlace, request: TurnRequest, task: TaskContext): Promise<TurnOutput> {
  await endEarlier(place, request, task);
  // The program and the rights are the choice of this machine.
  const own = takeOwnIntent(place, request.intent);
  const taken = { ...request, intent: own.intent };
  const checked = await checkBeforeTurn(place, taken);
  const losses = [...own.losses, ...(checked.losses ?? [])];
  if (losses.length > 0) {
    await place.protocol.endWaiting?.(tagOf(request.intent));
    return outputOfLosses(losses, checked, own);
  }
  const limits = new TurnLimits(request, task);
  const parts = await openParts(place, taken, task, limits);
  const { fence, abort: onError } = limits;
  const { turn, boundId } = request;
  const note = (event: ExternalEvent | SessionCallEvent): void => live.note(event);
  const events = new TurnEvents({ task, turn, fence, boundId, note, onError });
  const session = { task, stored: () => events.stored() };
  // Between the start of the agent and the first look at its events nothing is awaited.
  const agent = await startAgent(place.protocol, { ...taken, prompt: checked.prompt }, parts, session);
  const live = new LiveTurn(agent, request.keepAliveMs, parts.calls);
  place.live.set(task.sessionId, live);
  limits.agent = agent;
  if (checked.notice !== undefined) events.addNotice(checked.notice);
  const watch = watchTurn(task, limits, place.silenceMs);
  try {
    parts.calls.subscribe((call) => events.addCall(call));
    agent.subscribe((event) => {
      watch.noteOutput();
      events.add(event);
    });
    return await awaitEnd(place, taken, task, { parts, limits, live, events });
  } finally {
    watch.stop();
    live.end();
    await parts.close(agent.left);
    if (place.live.get(task.sessionId) === live) place.live.delete(task.sessionId);
  }
}

async function endEarlier(
  { protocol, live }: TurnPlace,
  { intent }: TurnRequest,
  { sessionId }: TaskContext,
): Promise<void> {
  await live.get(sessionId)?.agent.abort();
  await protocol.endLost(tagOf(intent));
}

/** turn-task-7. The output of a turn that does not begin. */
function outputOfLosses(
  losses: readonly string[],
  { isRestorable }: CheckedTurn,
  { rights }: OwnIntent,
): TurnOutput {
  return {
    end: { type: "unknown_session" },
    losses,
    ...(isRestorable === true ? { isRestorable: true } : {}),
    rights,
    isOverBudget: false,
    isSuspended: false,
    reports: 0,
  };
}

/** The limits of a turn over its agent, which may not have started yet. */
class TurnLimits {
  agent: ExternalAgent | undefined;
  readonly fence: BudgetFence;
  readonly #task: TaskContext;

  constructor(request: TurnRequest, task: TaskContext) {
    this.#task = task;
    this.fence = new BudgetFence(request, { onNear: () => void this.#wrapUp(), onReached: this.abort });
  }

  readonly abort = (): void => void this.agent?.abort(isUrgentAbort(this.#task.signal));

  admit(): Promise<void> {
    return this.fence.admit(() => this.#task.remainingBudget());
  }

  /** turn-task-5. */
  look(): Promise<void> {
    return this.fence.look(() => this.#task.remainingBudget());
  }

  /** turn-task-6. */
  async #wrapUp(): Promise<void> {
    if ((await this.agent?.steer(WRAP_UP)) === "injected")
      this.#task.progress({ notice: "the agent was told that its budget is nearly used up" });
  }
}

/** The parts of a turn that are open before its agent starts, and are closed after its end. */
interface TurnParts {
  readonly calls: PendingCalls;
  readonly connections: Connections;
  readonly enclose: Enclose | undefined;
  readonly keys: KeyReach | undefined;
  readonly lines: RawLines | undefined;
  readonly keepMs: number;
  /** @param left of the agent, whose program may be kept. */
  close(left?: Promise<unknown>): Promise<void>;
}

async function openParts(
  place: TurnPlace,
  request: TurnRequest,
  { sessionId, taskId }: TaskContext,
  limits: TurnLimits,
): Promise<TurnParts> {
  const { protocol, mirrors, keepsPrograms, conversations } = place;
  const { intent, keepAliveMs } = request;
  const tag = tagOf(intent);
  const enclose = await openEnclosure(protocol, intent);
  const calls = new PendingCalls();
  const access = protocol.keyAccess?.(intent.profile);
  const offered = {
    startsAgents: place.startsAgents(intent),
    deletesSessions: place.deletesSessions(intent),
  };
  const wanted = { intent, offered, access };
  const run = { sessionId, runId: taskId };
  const turn = { calls, admit: () => limits.admit() };
  const connections = await place.connections.open(tag, wanted, run, turn);
  const isConversation = conversations.delete(sessionId);
  return {
    calls,
    connections,
    enclose,
    keys: access && { held: access.held, readable: access.readable },
    lines: openRawLines(mirrors, request),
    keepMs: keepsPrograms && isConversation ? keepAliveMs : 0,
    close: (left) => place.connections.leave(tag, connections, left),
  };
}

function startAgent(
  protocol: ExternalAgentProtocol,
  { intent, boundId, mode, prompt, isCommand, parameters, costMicroUsdLeft }: TurnRequest,
  { connections: { wayBack, gateway }, enclose, lines, keepMs, close }: TurnParts,
  own: Pick<ExternalTurn, "task" | "stored">,
): Promise<ExternalAgent> {
  const turn = {
    intent,
    boundId,
    prompt,
    ...own,
    tag: tagOf(intent),
    wayBack,
    ...defined({ isCommand, parameters }),
    ...(costMicroUsdLeft === null ? {} : { costMicroUsdMax: costMicroUsdLeft }),
    ...(lines && { onLine: (line: string) => lines.add(line) }),
    ...(enclose && { enclose }),
    ...(gateway && { gateway }),
    ...(keepMs > 0 ? { keepMs } : {}),
  };
  return protocol[mode](turn).catch(async (error: unknown) => {
    await close();
    throw error;
  });
}

/** Reports silence, and ends the agent when the task is aborted or the budget is used up. */
function watchTurn(task: TaskContext, limits: TurnLimits, silenceMs = SILENCE_MS) {
  const { signal } = task;
  const silence = setInterval(
    () => task.progress({ unresponsive: `no output for ${silenceMs / 1_000} s` }),
    silenceMs,
  );
  const look = setInterval(() => void limits.look(), BUDGET_LOOK_MS);
  signal.addEventListener("abort", limits.abort, { once: true });
  if (signal.aborted || limits.fence.isReached) limits.abort();
  return {
    noteOutput: () => void silence.refresh(),
    stop: () => {
      clearInterval(silence);
      clearInterval(look);
      signal.removeEventListener("abort", limits.abort);
    },
  };
}

interface TurnAtWork {
  readonly parts: TurnParts;
  readonly limits: TurnLimits;
  readonly live: LiveTurn;
  readonly events: TurnEvents;
}

/** Waits until the agent has ended and its events are stored (turn-task-2). */
async function awaitEnd(
  place: TurnPlace,
  { intent, receipt: last }: TurnRequest,
  task: TaskContext,
  { parts, limits, live, events }: TurnAtWork,
): Promise<TurnOutput> {
  const end = boundedEnd(await live.agent.ended);
  const reports = await events.end();
  task.signal.throwIfAborted();
  const limit = limitOf(end, Date.now());
  const raw = parts.lines?.end();
  const output = {
    end,
    isOverBudget: limits.fence.isReached,
    isSuspended: live.isSuspended,
    reports,
    ...defined({ limit, raw, keys: parts.keys }),
  };
  if (!IN_ORDER.includes(end.type)) return output;
  // A turn in order without a usage has an unknown one, and not none.
  if (!events.isCounted && limit === undefined && !CUT_OFF_ENDS.includes(end.type))
    task.reportUsage(UNKNOWN_USAGE);
  if (place.protocol.capabilities(intent.profile).receipts === "none") return output;
  const receipt = await takeReceipt(place, { intent, boundId: events.boundId }, last ?? null);
  return { ...output, receipt };
}

function openRawLines(mirrors: string | undefined, { intent, mode }: TurnRequest): RawLines | undefined {
  const folder = rawLinesFolder(mirrors);
  if (folder === undefined || !OWN_ID.test(intent.agentSessionId)) return undefined;
  if (mode === "start") pruneRawLines(folder);
  return new RawLines(folder, intent.agentSessionId);
}

/** Ends after which the program had time to store its session. */
const IN_ORDER: readonly ExternalEnd["type"][] = ["answered", "aborted", "error"];

const WRAP_UP =
  "The budget of this session is nearly used up. Finish the step that you are in, leave the work in order, and answer with what is done and what is left.";
