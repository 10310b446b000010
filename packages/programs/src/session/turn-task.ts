// The durable task that carries out one turn of an external agent (`turnTask`).
//
//   turn-task-1. A turn happens once: neither a crash nor an orderly stop runs it again. The agent decides what follows one that was cut off.
//   turn-task-2. An event is a signal of the session before the turn ends. The output says how many reports there are.
//   turn-task-3. A session has at most one process of its agent on a machine: what an earlier process of ours has left is ended first.
//   turn-task-4. A turn whose question waits for longer than `keepAliveMs` is ended. The question stays, and its answer begins the next turn.
//   turn-task-5. Usage is charged with the report that tells of it, and the answer says what other sessions have left of the budget. A turn
//       that finds it used up is ended, also one that waits. Silence is reported and never a failure.
//   turn-task-6. A turn that has used four fifths of the rest of its budget is told so once, where its agent takes a message.
//   turn-task-7. A resume with a restore receipt begins when nothing is lost. A loss ends the task before a process starts.
//   turn-task-8. All that an agent says has limits (`bounded-events.ts`).
//   turn-task-9. The program and the rights of a turn are the choice of this machine and not of the record (`own-intent.ts`).
//   turn-task-10. Keys that the gateway of the turn can hold are not given to the program (`program-keys.ts`). The gateway ends with the turn.
//   turn-task-11. The gateway sends a request only while the account of the tree has something left. The program's own reports are the only source of
//       its usage.
//   turn-task-12. A turn in order that has reported no usage has an unknown one, and not none. That of a turn which was cut off is counted
//       afterwards (`recorded-usage.ts`).

import { join } from "node:path";
import { HoldfastError, toError } from "@holdfast/core";
import { defineTask, type TaskContext } from "@holdfast/runtime";
import { isUrgentAbort } from "@holdfast/system";

import type {
  ExternalAgent,
  ExternalAgentProtocol,
  ExternalEnd,
  ExternalEvent,
  ExternalIntent,
  PermissionAnswer,
} from "./external-agent-protocol.ts";
import { boundedEnd, boundedEvent } from "./bounded-events.ts";
import { PendingCalls, type SessionCallEvent } from "./way-back/pending-calls.ts";
import { openWayBack, type CallResult } from "./way-back/way-back.ts";
import { isQuestion, wayBackTools } from "./way-back/way-back-tools.ts";
import { BudgetFence, priced } from "./limits/budget-fence.ts";
import { limitOf, type AgentLimit } from "./limits/agent-limit.ts";
import { CUT_OFF_ENDS, UNKNOWN_USAGE } from "./limits/recorded-usage.ts";
import { turnCost } from "./limits/turn-cost.ts";
import { takeOwnIntent, type OwnPlace, type OwnRights } from "./intent/own-intent.ts";
import { openEnclosure } from "./enclosure/enclosure.ts";
import { openModelGateway } from "./keys/model-gateway.ts";
import type { KeyReach } from "./keys/program-keys.ts";
import { OWN_ID, pruneRawLines, RawLines, type RawReference } from "./raw/raw-lines.ts";
import { checkBeforeTurn, takeReceipt, type ReceiptPlace } from "./receipt/read-receipt.ts";
import type { RestoreReceipt } from "./receipt/restore-receipt.ts";

/** The name of the signals with events. */
export const REPORT_SIGNAL = "external_agent.report";

/** The payload of a signal. */
export interface StoredReport {
  readonly events: readonly RecordedEvent[];
  /** The usage among the events was charged with the signal. */
  readonly isCharged: true;
}

export type RecordedEvent = Exclude<ExternalEvent, { type: "text_delta" }> | SessionCallEvent;

export interface TurnRequest {
  readonly intent: ExternalIntent;
  readonly boundId: string | null;
  /** The member of the port that begins the turn. */
  readonly mode: "start" | "sendMessage" | "resume";
  readonly prompt: string;
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
  /** turn-task-4. */
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
  /** turn-task-9. How a session with losses continues. */
  readonly rights?: OwnRights;
  /** turn-task-10. Absent for an agent that is no program of this machine. */
  readonly keys?: KeyReach;
}

const SILENCE_MS = 60_000;
/** How often a turn looks at a limited budget, which others may use up while it waits for an answer. */
const BUDGET_LOOK_MS = 5_000;
/** Events that wait to be stored. */
const PENDING_CHARS_MAX = 32 * 1024 * 1024;
/** The events of one signal. A single event may be larger. */
const REPORT_CHARS = 256 * 1024;

/** The turns at work in this process, by session. */
export type LiveTurns = Map<string, LiveTurn>;

/** The receipt for a message to a turn at work. A message that is not in it is `queued`: with the program, or in the session. */
export type MessageReceipt = "injected" | "restarted" | "queued";

/** A turn at work. It ends itself when a question waits for too long (turn-task-4). */
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
   * @param restarts whether a turn that does not take it is interrupted. A program that has opened no session yet is left alone.
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
  /** How long a program may write nothing before that is reported. A minute by default. */
  readonly silenceMs?: number | undefined;
}

/** @param place `mirrors` is the folder for copies of session files. */
export function turnTask(place: TurnPlace) {
  const { protocol } = place;
  return defineTask<TurnRequest, TurnOutput>({
    name: `${protocol.name}:turn`,
    description: `One turn of ${protocol.name}.`,
    effect: "once", // turn-task-1.
    cost: (request) => turnCost(protocol, request),
    run: (request, task) => carryOut(place, request, task),
    endLost: (request) => protocol.endLost(tagOf((request as TurnRequest).intent)),
  });
}

/** The id of the agent's session and not of ours, which a user may choose twice. */
export function tagOf({ agentSessionId }: ExternalIntent): string {
  return `external:${agentSessionId}`;
}

async function carryOut(place: TurnPlace, request: TurnRequest, task: TaskContext): Promise<TurnOutput> {
  const { sessionId, signal } = task;
  const { protocol, live, startsAgents, deletesSessions, silenceMs = SILENCE_MS } = place;
  // turn-task-3.
  await live.get(sessionId)?.agent.abort();
  const { boundId, mode } = request;
  const tag = tagOf(request.intent);
  await protocol.endLost(tag);
  const own = takeOwnIntent(place, request.intent); // turn-task-9.
  const { intent } = own;
  const checked = await checkBeforeTurn(place, { ...request, intent });
  const losses = [...own.losses, ...(checked.losses ?? [])];
  if (losses.length > 0)
    return {
      end: { type: "unknown_session" },
      losses,
      ...(checked.isRestorable === true ? { isRestorable: true } : {}),
      rights: own.rights,
      isOverBudget: false,
      isSuspended: false,
      reports: 0,
    };
  const enclose = await openEnclosure(protocol, intent);
  const calls = new PendingCalls();
  const wayBack = await openWayBack(
    (call, gone) => calls.carryOut(call, gone),
    wayBackTools({ startsAgents: startsAgents(intent), deletesSessions: deletesSessions(intent) }),
  );
  const access = protocol.keyAccess?.(intent.profile);
  const atWork: { agent?: ExternalAgent } = {};
  const abort = (): void => void atWork.agent?.abort(isUrgentAbort(signal));
  const wrapUp = async (): Promise<void> => {
    if ((await atWork.agent?.steer(WRAP_UP)) === "injected")
      task.progress({ notice: "the agent was told that its budget is nearly used up" });
  };
  const fence = new BudgetFence(request, { onNear: () => void wrapUp(), onReached: abort });
  const unspent = (): ReturnType<TaskContext["remainingBudget"]> => task.remainingBudget();
  const admit = (): Promise<void> => fence.admit(unspent);
  const gateway = access && (await openModelGateway(access, { sessionId, runId: task.taskId }, admit));
  const keys = access && { held: access.held, readable: access.readable };
  const lines = openRawLines(place.mirrors, request);
  const listening = lines === undefined ? {} : { onLine: (line: string) => lines.add(line) };
  const { costMicroUsdLeft } = request;
  const fenced = costMicroUsdLeft === null ? {} : { costMicroUsdMax: costMicroUsdLeft };
  const turn = {
    intent,
    boundId,
    prompt: checked.prompt,
    tag,
    wayBack,
    ...fenced,
    ...listening,
    ...(enclose && { enclose }),
    ...(gateway && { gateway }),
  };
  const agent = await protocol[mode](turn).catch(async (error: unknown) => {
    wayBack.close();
    await gateway?.close();
    throw error;
  });
  const turnAtWork = new LiveTurn(agent, request.keepAliveMs, calls);
  live.set(sessionId, turnAtWork);
  atWork.agent = agent;
  const reports = new Reports(task, fence, abort);
  let bound = boundId;
  let isCounted = false;
  if (checked.notice !== undefined) reports.add({ type: "notice", text: checked.notice });
  const silence = setInterval(
    () => task.progress({ unresponsive: `no output for ${silenceMs / 1_000} s` }),
    silenceMs,
  );
  const look = setInterval(() => void fence.look(unspent), BUDGET_LOOK_MS);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted || fence.isReached) abort();
  try {
    calls.subscribe((call) => {
      const event = { type: "session_call", ...call } as const;
      turnAtWork.note(event);
      reports.add(event);
    });
    agent.subscribe((given) => {
      silence.refresh();
      const bounded = boundedEvent(given); // turn-task-8.
      if (typeof bounded === "string") return reports.refuse(bounded);
      const event = bounded.type === "usage" ? { ...bounded, usage: priced(bounded.usage) } : bounded;
      turnAtWork.note(event);
      if (event.type === "session_started") bound = event.boundId ?? bound;
      if (event.type === "text_delta") return task.streamToken(event.text);
      if (event.type === "usage") {
        isCounted = true;
        task.reportUsage({ ...event.usage, isCharged: true });
        fence.use(event.usage);
      }
      reports.add(event);
    });
    const end = boundedEnd(await agent.ended);
    const count = await reports.end();
    signal.throwIfAborted();
    const limit = limitOf(end, Date.now());
    const raw = lines?.end();
    const turnOutput = {
      end,
      isOverBudget: fence.isReached,
      isSuspended: turnAtWork.isSuspended,
      reports: count,
      ...(limit === undefined ? {} : { limit }),
      ...(raw === undefined ? {} : { raw }),
      ...(keys === undefined ? {} : { keys }),
    };
    if (!IN_ORDER.includes(end.type)) return turnOutput;
    // turn-task-12.
    if (!isCounted && limit === undefined && !CUT_OFF_ENDS.includes(end.type))
      task.reportUsage(UNKNOWN_USAGE);
    const receipt = await takeReceipt(place, { intent, boundId: bound }, request.receipt ?? null);
    return { ...turnOutput, receipt };
  } finally {
    clearInterval(silence);
    clearInterval(look);
    signal.removeEventListener("abort", abort);
    turnAtWork.end();
    wayBack.close();
    await gateway?.close();
    if (live.get(sessionId) === turnAtWork) live.delete(sessionId);
  }
}

function openRawLines(mirrors: string | undefined, { intent, mode }: TurnRequest): RawLines | undefined {
  const folder = rawLinesFolder(mirrors);
  if (folder === undefined || !OWN_ID.test(intent.agentSessionId)) return undefined;
  if (mode === "start") pruneRawLines(folder);
  return new RawLines(folder, intent.agentSessionId);
}

/** The folder for the lines of programs, beside the copies of their session files. */
export function rawLinesFolder(mirrors: string | undefined): string | undefined {
  return mirrors === undefined ? undefined : join(mirrors, "raw");
}

/** Ends after which the program had time to store its session. */
const IN_ORDER: readonly ExternalEnd["type"][] = ["answered", "aborted", "error"];

const WRAP_UP =
  "The budget of this session is nearly used up. Finish the step that you are in, leave the work in order, and answer with what is done and what is left.";
/** turn-task-2. Stores events in their order, several in one signal while the storage is busy. */
class Reports {
  readonly #task: TaskContext;
  readonly #fence: BudgetFence;
  readonly #onError: () => void;
  #pending: RecordedEvent[] = [];
  #pendingChars = 0;
  #stored = 0;
  #storing: Promise<void> | undefined;
  #error: Error | undefined;

  constructor(task: TaskContext, fence: BudgetFence, onError: () => void) {
    this.#task = task;
    this.#fence = fence;
    this.#onError = onError;
  }

  add(event: RecordedEvent): void {
    if (this.#error !== undefined) return;
    this.#pending.push(event);
    this.#pendingChars += sizeOf(event);
    if (this.#pendingChars > PENDING_CHARS_MAX)
      this.#fail(
        new HoldfastError(
          "external_agent_failed",
          "the agent reports events faster than they can be stored",
          {
            expected: `at most ${PENDING_CHARS_MAX} characters of events that wait`,
          },
        ),
      );
    this.#storing ??= this.#store().finally(() => (this.#storing = undefined));
  }

  /** Ends the turn: an event cannot be recorded. */
  refuse(reason: string): void {
    this.#fail(new HoldfastError("external_agent_failed", reason));
  }

  /** @returns the number of reports. @throws what prevented one. */
  async end(): Promise<number> {
    while (this.#storing !== undefined) await this.#storing;
    if (this.#error !== undefined) throw this.#error;
    return this.#stored;
  }

  async #store(): Promise<void> {
    await Promise.resolve(); // Events of the same moment share a signal.
    while (this.#pending.length > 0 && this.#error === undefined) {
      const events = this.#next();
      const dedupKey = `${this.#task.taskId}/${this.#task.attempt}/${this.#stored}`;
      try {
        const report: StoredReport = { events, isCharged: true };
        const spends = events.flatMap((event) => (event.type === "usage" ? event.usage : []));
        const unspent = await this.#task.signalSession(REPORT_SIGNAL, report, { dedupKey, spends });
        this.#stored++;
        this.#fence.charged(spends, unspent);
      } catch (error) {
        this.#fail(error);
      }
    }
  }

  #next(): readonly RecordedEvent[] {
    let count = 0;
    let chars = 0;
    do chars += sizeOf(this.#pending[count++]!);
    while (count < this.#pending.length && chars + sizeOf(this.#pending[count]!) <= REPORT_CHARS);
    this.#pendingChars -= chars;
    return this.#pending.splice(0, count);
  }

  #fail(error: unknown): void {
    this.#error ??= toError(error);
    this.#pending = [];
    this.#pendingChars = 0;
    this.#onError();
  }
}

function sizeOf(event: RecordedEvent): number {
  return JSON.stringify(event).length;
}
