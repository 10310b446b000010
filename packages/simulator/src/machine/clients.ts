// `Clients`: they start sessions, send signals, answer questions, pause, raise budgets and cancel, from
// outside the processes. Each client sends its request to any live process, and repeats it until there is an
// answer.
//
//   - A repeated request has the same id or dedup key.
//   - A sender sends the next signal of a name only when the last was acknowledged, so their order is known.

import { defined, HoldfastError, type Exhausted, type Session } from "@holdfast/core";
import { unlessEnded } from "@holdfast/testkit/test-runtime";
import type { Runtime, ScheduleRequest, StartOptions } from "@holdfast/runtime";
import type { Dice } from "../world/dice.ts";
import type { EventLog } from "../world/event-log.ts";
import type { Expected } from "../programs/nodes.ts";
import { answerTo } from "../programs/nodes-signals.ts";
import { UNANSWERED } from "../programs/program-agent.ts";
import type { Program, Value } from "../programs/program.ts";
import type { Scheduler } from "../world/scheduler.ts";
import type { Swarm } from "../world/swarm.ts";
import { isStoppedTooOften } from "../world/watched-storage.ts";

const PATIENCE_MS = 1_500;

/** One session, as the clients know it. */
export interface Subject {
  readonly sessionId: string;
  readonly program: Program;
  readonly expected: Expected;
  /** The session is to fail, so that its parent respawns it. */
  readonly fails: boolean;
  /** It began as another one had. */
  readonly isFork: boolean;
}

const SCHEDULE = "scheduled";
/** A slow request may put the schedule after it was removed, so it is removed several times. */
const UNSCHEDULE_MS = [0, 3_000, 10_000] as const;

/** The receiver of the clients' requests: a live process, or a coordinator. */
export interface Desk extends Pick<
  Runtime,
  "answer" | "cancel" | "grantWindow" | "pause" | "releaseLost" | "setBudget" | "signal" | "unpause"
> {
  readonly name: string;
  start(program: Program, options: StartOptions): Promise<unknown>;
  /** Only of a process. */
  readonly runtime?: Pick<Runtime, "fork" | "unschedule">;
  putSchedule?(program: Program, timing: Pick<ScheduleRequest, "id" | "cron" | "timeZone">): Promise<unknown>;
}

export interface ClientsOptions {
  /** Requests may arrive late, and twice. */
  readonly isDistant: boolean;
  /** A receiver for a request, if there is one. */
  desk(): Desk | undefined;
  readonly scheduler: Scheduler;
  readonly dice: Dice;
  readonly log: EventLog;
  readonly swarm: Swarm;
}

/** The signals of one name, and which of them is next. */
interface Mail {
  readonly name: string;
  readonly payloads: readonly Value[];
  readonly index: number;
  /** Sent once more, and nothing follows it. */
  readonly isCopy?: boolean;
}

/** The meaning of an answer to its client. */
type Verdict = "done" | "again";

export class Clients {
  readonly #options: ClientsOptions;
  readonly #answering = new Set<string>();
  readonly #raising = new Set<string>();
  /** Sessions that nobody wants paused any more. */
  readonly #unpaused = new Set<string>();
  /** As they were seen last. */
  readonly #rows = new Map<string, Session>();
  /** How many pause requests of each session are unanswered; a paused process may send one again when it continues. */
  readonly #pausing = new Map<string, number>();
  /** Pauses that were seen. */
  readonly #pauses = new Set<string>();
  #busy = 0;
  #isUnscheduled = false;

  constructor(options: ClientsOptions) {
    this.#options = options;
  }

  /** Whether somebody still wants something. */
  get isBusy(): boolean {
    return this.#busy > 0;
  }

  /** Have it done. */
  begin(subject: Subject): void {
    const { dice, swarm } = this.#options;
    const { sessionId, program } = subject;
    const { budget, prelude } = program;
    const options = {
      sessionId,
      ...defined({ budget }),
      ...(prelude === undefined ? {} : { persistence: "minimal" as const }),
    };
    this.#after(dice.between(0, 200), () =>
      this.#insist(`start ${sessionId}`, async (desk) => {
        await desk.start(program, options);
        return "done";
      }),
    );
    this.serve(subject);
    if (dice.chance(swarm.cancelled)) this.#cancel(sessionId);
    if (program.isPlain === true && dice.chance(swarm.forked)) this.#fork(sessionId);
  }

  /** Have sessions of it started every five seconds, until `unschedule`. */
  schedule(program: Program): void {
    const request = { id: SCHEDULE, cron: "*/5 * * * * *", timeZone: "UTC" } as const;
    this.#insist("put the schedule", async (desk) => {
      if (!this.#isUnscheduled) await desk.putSchedule?.(program, request);
      return "done";
    });
  }

  unschedule(): void {
    if (!this.#options.swarm.isScheduled) return;
    this.#isUnscheduled = true;
    for (const ms of UNSCHEDULE_MS)
      this.#after(ms, () =>
        this.#insist("remove the schedule", async ({ runtime }) => {
          await runtime?.unschedule(SCHEDULE);
          return "done";
        }),
      );
  }

  /** Send signals and pauses to a session that exists, or will exist. */
  serve({ sessionId, expected }: Subject): void {
    const { dice, swarm } = this.#options;
    for (const [name, payloads] of expected.signals) this.#send(sessionId, { name, payloads, index: 0 });
    if (dice.chance(swarm.paused)) this.#pause(sessionId);
  }

  /** Answer the questions that a row shows, and raise the budget that the session is blocked on. */
  look(row: Session): void {
    const { sessionId, waits, exhausted, pauseReason } = row;
    this.#rows.set(sessionId, row);
    if (exhausted !== undefined) this.#raise(exhausted);
    const mayBeLate = this.#options.isDistant || this.#pausingOf(sessionId) > 0;
    if (mayBeLate && (pauseReason === "poison" || pauseReason === "by_user")) this.#fix(row);
    if (isStoppedTooOften(row)) this.#fix(row);
    for (const wait of waits) {
      if (wait.type !== "input" || wait.prompt === UNANSWERED) continue;
      const key = `${sessionId} ${wait.id}`;
      if (this.#answering.has(key)) continue;
      this.#answering.add(key);
      this.#after(this.#drawDelay(), () =>
        this.#insist(`answer ${key}`, async (desk) => {
          const receipt = await desk.answer(sessionId, answerTo(wait.prompt), { question: wait.id });
          // The process may have read a row without the question, and the row may show it again before the
          // refusal arrives.
          if (receipt.status === "refused") {
            this.#answering.delete(key);
            this.look(this.#rows.get(sessionId) ?? row);
          }
          return "done";
        }),
      );
    }
  }

  /**
   * Unpause a session that was taken for poison, that was stopped too often, or that a late repetition of a
   * pause request has paused again.
   */
  #fix({ sessionId, pauseReason, inbox, updatedAt }: Session): void {
    const isRequested = pauseReason === "by_user";
    // A requested pause changes `inbox`, and another one does not.
    const pause = `${sessionId} ${inbox} ${isRequested ? "" : updatedAt}`;
    const isKnown = this.#pauses.has(pause);
    this.#pauses.add(pause);
    if (!isKnown && (!isRequested || this.#unpaused.has(sessionId)))
      this.#after(this.#drawDelay(), () => this.#unpause(sessionId));
  }

  #raise({ payer, limit, per, max }: Exhausted): void {
    const key = `${payer} ${limit} ${per} ${max}`;
    if (this.#raising.has(key)) return;
    this.#raising.add(key);
    this.#after(this.#drawDelay(), () =>
      this.#insist(`raise ${key}`, async (desk) => {
        await unlessEnded(desk.releaseLost(payer));
        const raised = { [limit]: 2 * max + 50 };
        if (per !== undefined) await unlessEnded(desk.grantWindow(payer, per));
        await unlessEnded(
          desk.setBudget(payer, per === undefined ? raised : { windows: [{ per, ...raised }] }),
        );
        this.#raising.delete(key); // A late earlier raise may have lowered the limit again, before this answer arrived.
        for (const row of this.#rows.values()) if (row.exhausted?.payer === payer) this.look(row);
        return "done";
      }),
    );
  }

  #pause(sessionId: string): void {
    const { dice, swarm } = this.#options;
    const forMs = dice.pick([0, 10, 1_000]);
    this.#after(dice.between(0, swarm.safetyMs), () =>
      this.#insist(`pause ${sessionId}`, async (desk) => {
        const pausing = (change: number): void =>
          void this.#pausing.set(sessionId, this.#pausingOf(sessionId) + change);
        pausing(1);
        const status = await desk.pause(sessionId).finally(() => pausing(-1));
        if (status === "paused") this.#after(forMs, () => this.#unpause(sessionId));
        return "done";
      }),
    );
  }

  #pausingOf(sessionId: string): number {
    return this.#pausing.get(sessionId) ?? 0;
  }

  #unpause(sessionId: string): void {
    this.#insist(`unpause ${sessionId}`, async (desk) => {
      this.#unpaused.add(sessionId);
      await desk.unpause(sessionId);
      return "done";
    });
  }

  #send(sessionId: string, mail: Mail): void {
    const { dice, swarm } = this.#options;
    const { name, payloads, index } = mail;
    if (index >= payloads.length) return;
    this.#after(this.#drawDelay(), () =>
      this.#insist(`signal ${sessionId} ${name} ${index}`, async (desk) => {
        const receipt = await desk.signal(sessionId, name, payloads[index], {
          dedupKey: `${name} ${index}`,
        });
        if (receipt.status === "refused")
          return receipt.reason.includes("there is no session") ? "again" : "done";
        if (mail.isCopy === true) return "done";
        if (dice.chance(swarm.signalTwice)) this.#send(sessionId, { ...mail, isCopy: true });
        this.#send(sessionId, { name, payloads, index: index + 1 });
        return "done";
      }),
    );
  }

  /** At its last checkpoint, or as far as it goes. */
  #fork(sessionId: string): void {
    const { dice, swarm } = this.#options;
    this.#after(dice.between(0, swarm.safetyMs), () =>
      this.#insist(`fork ${sessionId}`, async ({ runtime }) => {
        try {
          await runtime?.fork(sessionId, { sessionId: `${sessionId}.fork` });
        } catch (error) {
          // The first answer was lost and the origin has advanced since, so the repetition asks for another
          // fork.
          if (!HoldfastError.is(error) || error.code !== "session_exists") throw error;
        }
        return "done";
      }),
    );
  }

  #cancel(sessionId: string): void {
    const { dice, swarm } = this.#options;
    const how = { hard: dice.chance(0.3), graceMs: dice.pick([100, 1_000, 10_000]) };
    this.#after(dice.between(0, swarm.safetyMs), () =>
      this.#insist(`cancel ${sessionId}`, async (desk) => {
        await desk.cancel(sessionId, how);
        return "done";
      }),
    );
  }

  #drawDelay(): number {
    return this.#options.dice.between(0, this.#options.swarm.signalDelayMs);
  }

  /** Ask some process; when it does not answer in time, or cannot, ask one again. */
  #insist(what: string, ask: (desk: Desk) => Promise<Verdict>): void {
    const { log } = this.#options;
    let isAnswered = false;
    const again = (): void => {
      if (isAnswered) return;
      isAnswered = true;
      this.#after(PATIENCE_MS / 3, () => this.#insist(what, ask));
    };
    const desk = this.#options.desk();
    if (desk === undefined) return again();
    log.add(desk.name, what);
    this.#after(PATIENCE_MS, again);
    ask(desk).then(
      (verdict) => {
        if (verdict === "again") return again();
        if (!isAnswered) log.add(desk.name, `${what}: done`);
        isAnswered = true;
      },
      () => again(),
    );
  }

  #after(ms: number, happen: () => void): void {
    this.#busy++;
    this.#options.scheduler.after(ms, undefined, () => {
      this.#busy--;
      happen();
    });
  }
}
