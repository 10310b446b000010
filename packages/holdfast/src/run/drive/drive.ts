// The common part of `run` and `resume` (`drive`): one session runs to its end in this process.
//
//   - The command ends when the session ends, when the session waits and `--park` was given, or when a person
//     stops it. In the last two cases the session stays as its last commit left it, and the command to
//     continue is shown.
//   - At a coordinator other runners may run the session as well, before this process or after. This process
//     follows the session to its end. If no runner has it any more although it has something to do, this
//     process claims it.
//   - A session that runs here runs with all its children, whatever labels they demand, because only runners
//     have labels. A note says so.
//   - The command does not park while sessions below are running here. The work that their tasks have begun
//     would be lost, and paid for again.
//   - The command also ends when sessions below are paused and nothing else in the tree can continue, as if
//     the session itself were paused.
// When the owner of the database changes, its storage sees to that, and nothing here notices.

import { clearInterval, setInterval } from "node:timers";
import { setTimeout as delay } from "node:timers/promises";
import {
  type AgentStorage,
  type AgentTracer,
  defined,
  HoldfastError,
  isEnded,
  type Prices,
  repeat,
  type Session,
  STOP_GRACE_MS,
  UnavailableError,
} from "@holdfast/core";
import {
  type Agent,
  compositeTracer,
  createRuntime,
  limitProcessMemory,
  MemoryStorage,
  type Runtime,
  type RuntimeOptions,
  type SessionHandle,
  type Settled,
  systemClock,
  Watchdog,
} from "@holdfast/runtime";
import type { Io, StopSignal } from "@holdfast/terminal/frame/command";
import { withOwnStorage } from "@holdfast/place/own-database";
import { leaseOf, suspectsFile, type Database } from "@holdfast/place/project";
import { recordingAnswers } from "@holdfast/place/answer-principals";
import { keepingShown, ShownQuestions } from "../typing/shown-questions.ts";
import { StdinListener } from "../typing/stdin-listener.ts";
import { isDebugged, StoppableWork, stopper } from "../typing/stopper.ts";
import { BelowView, mayNeedSomebody } from "@holdfast/terminal/view/below-view";
import { JournalTail } from "@holdfast/terminal/view/journal-events";
import { liveView, type LiveView } from "@holdfast/terminal/view/work/live-view";
import { findPausedBelow, type PausedBelow } from "@holdfast/terminal/view/stuck-tree";
import { declaresCost } from "../../agents/agent-tree.ts";
import { DraftPieces } from "./draft-pieces.ts";
import { reportsTaken } from "./reports-taken.ts";
import { reportOutcome, type Outcome } from "./report-outcome.ts";
import { LOOK_MS, lookOn } from "./look-on.ts";
import { skipPast } from "./skip-past.ts";
import { isQuiescent, treeCleansUp } from "./tree-rest.ts";
import { noteUnheeded } from "./unheeded-demands.ts";
import { modelPrices } from "@holdfast/agents/prices";

export interface DriveOptions {
  /** Without one it is run elsewhere, and followed from here. */
  readonly agent: Agent | undefined;
  readonly sessionId: string;
  /** Without one the session lives and ends in memory. */
  readonly database: Database | undefined;
  /** Start the session or take it up, as it is needed; answers nothing when it is run elsewhere. */
  readonly begin: (runtime: Runtime) => Promise<SessionHandle | undefined>;
  /** Whether it is started with a budget. */
  readonly isBudgeted?: boolean;
  readonly runtime?: Pick<RuntimeOptions, "secrets">;
  /** Leave when it waits, or only when it has answered. */
  readonly parks: boolean | "answered";
  /** How long running steps may take to end when somebody stops the command. */
  readonly graceMs?: number;
  /** The tracer that also receives the session's events. */
  readonly tracer: AgentTracer | undefined;
  /** Whether lines of standard input are signals to the session. */
  readonly readsStdin: boolean;
  /** Whether every recorded event is shown, and whether the last of those before this call is. */
  readonly isVerbose: boolean;
  readonly showsPast?: boolean;
  /** Shows the session and reads lines in place of the defaults. */
  readonly chat?: DriveChat;
}

/** A conversation in the terminal. */
export interface DriveChat extends SessionInput, LiveView {
  /** Resolves when the person leaves; the session stays. */
  readonly left: Promise<Outcome>;
  readonly isLeft: boolean;
  onStop(signal: StopSignal): void;
  /** The command that continues it, after `holdfast`. */
  readonly command: string;
}

/** Reads what a person types, and sends it to the session while that is there. */
type SessionInput = Pick<StdinListener, "attach" | "detach" | "close">;

const followCall = () => import("./follow-session.ts");
/** How often it is looked whether somebody still runs what runs elsewhere. */
const TAKE_MS = 1_000;
/** @returns the exit code. */
export async function drive(options: DriveOptions, io: Io): Promise<number> {
  limitProcessMemory(2_000); // The modules of the start come first.
  const { chat, database, sessionId } = options;
  const stopped = Promise.withResolvers<Outcome>();
  const kept =
    options.agent === undefined ? "the session goes on where it runs" : "the session can be resumed";
  const after = database === undefined ? "the session is ephemeral and will be lost" : kept;
  void chat?.left.then((outcome) => stopped.resolve(outcome));
  // Nothing of an ephemeral session is kept.
  const work = new StoppableWork(io, options.graceMs ?? (database === undefined ? 0 : STOP_GRACE_MS));
  const stop = stopper(io, after, (signal) => stopped.resolve({ type: "stopped", signal }), work);
  const release = io.onStop((signal) => (chat?.isLeft === false ? chat.onStop(signal) : stop(signal)));
  const reads = chat === undefined && options.readsStdin;
  const questions = reads && io.stdin.isTTY === true ? new ShownQuestions(io) : undefined;
  const stdin = chat ?? (reads ? new StdinListener(sessionId, io, questions) : undefined);
  const shown = { io, questions, isDurable: database !== undefined, ...options };
  const view = keepingShown(chat ?? liveView(shown), sessionId, questions);
  const common = {
    options,
    io,
    view,
    questions,
    stdin,
    stopped: stopped.promise,
    startedAt: performance.now(),
    work,
    after,
  };
  // A session that waits holds nothing that would keep the process alive.
  const alive = setInterval(() => {}, 60_000);
  try {
    if (database === undefined)
      return await new StorageRun({ ...common, storage: new MemoryStorage() }).run();
    return await withOwnStorage(database, io, ({ storage }) => new StorageRun({ ...common, storage }).run());
  } finally {
    clearInterval(alive);
    io.status(undefined);
    await stdin?.close();
    io.lastWords(undefined);
    release();
  }
}

interface RunParts {
  readonly options: DriveOptions;
  readonly io: Io;
  readonly view: LiveView;
  /** The questions that a person who types has seen. */
  readonly questions: ShownQuestions | undefined;
  readonly stdin: SessionInput | undefined;
  readonly stopped: Promise<Outcome>;
  readonly startedAt: number;
  readonly work: StoppableWork;
  /** The session's fate after a stop. */
  readonly after: string;
  readonly storage: AgentStorage;
}

/** The session over one storage, from opening it to its end. */
class StorageRun {
  readonly #parts: RunParts;
  readonly #tail: JournalTail;
  readonly #below: BelowView;
  /** Nothing is shown before it was said which session it is of. */
  readonly #begun = Promise.withResolvers<void>();
  #pumping: Promise<void> = this.#begun.promise;
  #isRunHere = false;
  readonly #drafts = new DraftPieces();

  constructor(parts: RunParts) {
    this.#parts = parts;
    const { reader } = parts.storage;
    const { sessionId, database } = parts.options;
    this.#tail = new JournalTail(reader, sessionId);
    this.#below = new BelowView({
      reader,
      io: parts.io,
      isDurable: database !== undefined,
      isElsewhere: database?.coordinator !== undefined,
      ...defined({ questions: parts.questions }),
    });
  }

  /** @returns the exit code. */
  async run(): Promise<number> {
    const { storage, options, view, stdin, io, startedAt } = this.#parts;
    const before = await this.#session();
    const pending = before === undefined ? [] : await storage.reader.pendingSignals(before.sessionId);
    const asked = before === undefined ? new Map() : await skipPast(before, this.#tail, options, io);
    const path = options.database === undefined ? undefined : suspectsFile(options.database);
    const watchdog = isDebugged() ? undefined : new Watchdog(path === undefined ? {} : { path });
    const prices = await this.#prices(before);
    const runtime = this.#makeRuntime(watchdog, prices);
    this.#parts.work.begins(runtime);
    let outcome: Outcome | undefined;
    try {
      const settled = await this.#begin(runtime);
      const session = (await this.#session())!;
      if (!isEnded(session.status)) {
        view.began(session, before !== undefined, new Set(pending.map(({ name }) => name)), asked);
        if (before !== undefined) this.#inLine(() => this.#below.lookBelow(session));
      }
      this.#begun.resolve();
      this.#isRunHere = settled !== undefined;
      io.lastWords(this.#resumeHint());
      await stdin?.attach({ runtime, storage });
      outcome = await this.#outcome(runtime, settled, before);
      if (outcome.type === "settled") await treeCleansUp(storage.reader, options.sessionId);
    } finally {
      this.#begun.resolve();
      stdin?.detach();
      await this.#close(runtime, outcome);
      await watchdog?.close();
    }
    this.#tail.unwatch();
    this.#pump();
    await this.#pumping;
    const session = await this.#session();
    const hint = this.#resumeHint();
    return reportOutcome(outcome, { session, before, options, hint, io, startedAt, view });
  }

  /** A command that a person stops gives running steps its grace. At another end nothing is left to wait for. */
  #close(runtime: Runtime, outcome: Outcome | undefined): Promise<void> {
    const { work, after } = this.#parts;
    const isStopped = outcome?.type === "stopped" || outcome?.type === "left";
    if (isStopped && work.isRunning) work.stop(after);
    return runtime.close({ graceMs: isStopped ? work.graceMs : 0 });
  }

  /** How it comes to an end here; nothing when it is another process that runs it. */
  async #begin(runtime: Runtime): Promise<RunHere | undefined> {
    const { options } = this.#parts;
    try {
      const handle = await options.begin(runtime);
      return handle && { promise: handle.settled() };
    } catch (error) {
      const isClaimed = HoldfastError.is(error) && error.code === "session_claimed";
      if (options.database?.coordinator === undefined || !isClaimed) throw error;
      return undefined;
    }
  }

  /** Where it runs, as far as that can be told, or why nobody takes it. Never rejects. */
  async #sayElsewhere(): Promise<void> {
    const { io, options } = this.#parts;
    const coordinator = options.database?.coordinator;
    const { placeOf } = await followCall();
    const place = coordinator && (await placeOf(coordinator, options.sessionId, io));
    io.note(io.notes.paint.dim(`${place ?? "it runs elsewhere"}; it is followed from here`));
  }

  /** Never, where nobody else can run it. */
  async #follow(before: Session | undefined, signal: AbortSignal): Promise<Outcome> {
    const { storage, view, options } = this.#parts;
    const { agent, database, sessionId } = options;
    const coordinator = database?.coordinator;
    if (database === undefined || (coordinator === undefined && agent !== undefined)) return NEVER;
    const onDraft = (taskId: string, text: string): void =>
      this.#inLine(() => {
        const piece = this.#isRunHere ? undefined : this.#drafts.take(taskId, text);
        if (piece !== undefined) view.draft(piece);
      });
    const followed = { sessionId, signal, session: () => this.#session(), onNews: () => this.#pump() };
    if (coordinator === undefined)
      return (await lookOn({ ...followed, database, drafts: storage.drafts, onDraft })) ?? NEVER;
    const { followSession } = await followCall();
    const afterSeq = (before?.nextSeq ?? 0) - 1;
    // Where this process runs it, the texts come from its own tasks.
    const wanted = this.#isRunHere ? undefined : onDraft;
    return followSession({ ...followed, onDraft: wanted, coordinator, afterSeq });
  }

  /** Loaded only where somebody counts: the table costs a start some milliseconds. */
  async #prices(before: Session | undefined): Promise<Prices | undefined> {
    const { agent, isBudgeted } = this.#parts.options;
    const isPaid = isBudgeted === true || (before?.payers.length ?? 0) > 0;
    return agent === undefined || (!isPaid && !declaresCost(agent)) ? undefined : modelPrices();
  }

  #makeRuntime(watchdog: Watchdog | undefined, prices: Prices | undefined): Runtime {
    const { storage, options, stdin } = this.#parts;
    const isRecorded = stdin !== undefined && options.database?.coordinator === undefined;
    return createRuntime({
      storage: this.#tail.watch(isRecorded ? recordingAnswers(storage) : storage),
      agents: options.agent === undefined ? [] : [options.agent],
      adopt: false,
      showsTexts: true,
      ...options.runtime,
      ...(options.database === undefined ? {} : leaseOf(options.database)),
      ...defined({ watchdog, prices }),
      tracer:
        options.tracer === undefined ? this.#watcher() : compositeTracer([this.#watcher(), options.tracer]),
    });
  }

  /** A tracer that passes the session's events to the view. */
  #watcher(): AgentTracer {
    const { options, view, storage } = this.#parts;
    let isText = false;
    return {
      trace: (event) => {
        if (event.sessionId !== options.sessionId) {
          if (mayNeedSomebody(event)) this.#inLine(() => this.#below.look(event.sessionId));
          return;
        }
        const isBeginning = !isText;
        isText = event.type === "task_delta" && event.delta.type === "token";
        if (isText && isBeginning) this.#pump(reportsTaken(storage.reader, options.sessionId));
        if (event.type === "committed") this.#pump();
        // In line with the events: a task streams before the commit that started it has been read.
        else if (event.type === "task_delta" || event.type === "warned" || event.type === "task_started") {
          this.#inLine(() => view.trace(event));
        }
      },
    };
  }

  /** Show what was committed. @param after what is waited for before. */
  #pump(after?: Promise<void>): void {
    this.#inLine(async () => {
      await after;
      const children: string[] = [];
      await this.#tail.advance((event) => {
        this.#parts.view.event(event);
        this.#drafts.event(event);
        if (event.type === "spawn_child") children.push(String(event["childId"]));
      });
      for (const childId of children) await this.#sayUnheeded(childId);
    });
  }

  async #sayUnheeded(childId: string): Promise<void> {
    const { io, options, storage } = this.#parts;
    if (!this.#isRunHere || options.database?.coordinator === undefined) return;
    noteUnheeded(await storage.reader.session(childId), options.agent?.name, io);
  }

  /** An error of the view does not end the session. */
  #inLine(show: () => void | Promise<void>): void {
    this.#pumping = this.#pumping.then(show).catch(() => {});
  }

  /** How it settles here, however often it comes and goes. */
  async #settled(runtime: Runtime, first: RunHere | undefined, signal: AbortSignal): Promise<Outcome> {
    const { options } = this.#parts;
    for (let here = first; ; here = await this.#takeOver(runtime, signal)) {
      if (here !== undefined) {
        const settled = await here.promise;
        if (options.database?.coordinator === undefined || !isElsewhere(settled))
          return { type: "settled", settled };
      }
      this.#isRunHere = false;
      if (signal.aborted) return NEVER;
      await this.#sayElsewhere();
    }
  }

  /** When nobody runs it any more. Never, where this process cannot. */
  async #takeOver(runtime: Runtime, signal: AbortSignal): Promise<RunHere> {
    const { io, options } = this.#parts;
    const coordinator = options.database?.coordinator;
    if (coordinator === undefined || options.agent === undefined) return NEVER;
    const { readRunOf } = await import("@holdfast/place/coordinator-call");
    for (;;) {
      await delay(TAKE_MS, undefined, { ref: false });
      if (signal.aborted) return NEVER;
      // The coordinator may be away: it is asked again.
      const run = await readRunOf(coordinator, options.sessionId).catch(() => undefined);
      if (run?.status !== "queued" || signal.aborted) continue;
      const here = await this.#begin(runtime).catch((error: unknown) => {
        if (error instanceof UnavailableError) return undefined;
        throw error;
      });
      if (here === undefined) continue;
      this.#isRunHere = true;
      io.note(io.notes.paint.dim("no runner has it any more: it continues here"));
      return here;
    }
  }

  async #outcome(runtime: Runtime, here: RunHere | undefined, begun: Session | undefined): Promise<Outcome> {
    const { stopped, options, storage } = this.#parts;
    const looked = Promise.withResolvers<Outcome>();
    const look = async (): Promise<void> => {
      if (options.parks && (await isQuiescent(storage.reader, options)))
        looked.resolve({ type: "parked", paused: await this.#pausedBelow(true) });
    };
    let before: PausedBelow | undefined;
    const lookBelow = async (): Promise<void> => {
      // A runner runs those below it, and none of their events comes here.
      const session = this.#isRunHere ? undefined : await this.#session();
      if (session !== undefined) this.#inLine(() => this.#below.lookBelow(session));
      const paused = await this.#pausedBelow(false);
      if (paused !== undefined && paused.stand === before?.stand) looked.resolve({ type: "stuck", paused });
      before = paused;
    };
    const belowMs = options.database?.coordinator === undefined ? LOOK_MS : TAKE_MS;
    const looks = [
      repeat({ clock: systemClock, look, pauseMs: () => LOOK_MS }),
      repeat({ clock: systemClock, look: lookBelow, pauseMs: () => belowMs }),
    ];
    const over = new AbortController();
    try {
      const settled = this.#settled(runtime, here, over.signal);
      return await Promise.race([settled, stopped, looked.promise, this.#follow(begun, over.signal)]);
    } finally {
      over.abort();
      for (const each of looks) each.close();
    }
  }

  async #pausedBelow(parks: boolean): Promise<PausedBelow | undefined> {
    const session = await this.#session();
    return session && findPausedBelow(this.#parts.storage.reader, session, parks);
  }

  #session(): Promise<Session | undefined> {
    return this.#parts.storage.reader.session(this.#parts.options.sessionId);
  }

  /** How to come back to it. */
  #resumeHint(): string | undefined {
    const { options, io } = this.#parts;
    const { database, agent, sessionId, chat } = options;
    if (database === undefined) return undefined;
    if (chat !== undefined) return io.call(chat.command);
    return io.call(agent === undefined ? `attach ${sessionId}` : `resume ${sessionId}`);
  }
}

/** How it ends here. */
interface RunHere {
  readonly promise: Promise<Settled>;
}

const NEVER = new Promise<never>(() => {});

/** It was lost to another process, or never was this one's. */
function isElsewhere(settled: Settled): boolean {
  return settled.status === "released" && (settled.error?.code ?? "session_claimed") === "session_claimed";
}
