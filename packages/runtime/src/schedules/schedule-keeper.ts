// Fires schedules that are due, while a process lives that was asked to.
//
//   schedule-keeper-2. A time fires once, however many processes see it: storage compares it with the schedule's next
//       time in the transaction that does what it says and sets the next one (ST34).
//   schedule-keeper-3. What it starts or sends is named by the schedule and the time it was due: whatever fires that
//       time again, because a crash or a schedule that was put once more made it due again, finds it there.
//   schedule-keeper-4. Times that were missed fire once, together, as the first of them.
//   schedule-keeper-5. A wall clock that jumps fires no time twice and passes none over: what is due is asked anew at
//       each second of it, and the seconds are waited for by a clock that does not jump.
//
// Storage knows what is due and `cron.ts` what comes next. It does not know how sessions are run.

import {
  isEnded,
  toHoldfastError,
  type AgentRef,
  type AgentStorage,
  type Clock,
  type CreateSession,
  type HoldfastError,
  type Random,
  type Schedule,
  type SendSignal,
  type Session,
} from "@holdfast/core";
import { effectOfFiring, readInPlaceOf } from "@holdfast/core/internal";
import { readCron } from "./cron.ts";
import type { Agent } from "../agents/define.ts";
import type { GroupCommitter } from "../loop/group-committer.ts";
import type { KnownAgents } from "../agents/agent-registry.ts";
import type { ScheduleOptions } from "../api/runtime-api.ts";

/** Cron knows whole seconds. */
const SECOND_MS = 1_000;

export interface ScheduleKeeperHost {
  readonly storage: AgentStorage;
  readonly committer: GroupCommitter;
  readonly clock: Clock;
  readonly random: Random;
  readonly options: ScheduleOptions;
  readonly agents: Pick<KnownAgents, "describe" | "latest">;
  /** Take sessions of this agent from now on. @throws ConflictError */
  know(agent: Agent): void;
  /** Run a session of a known agent, unless it has ended, is paused or runs elsewhere. Rejects after it told whoever watches. */
  goOn(sessionId: string): Promise<void>;
  /** It is to be run and could not be: tell whoever watches, and try again if that may help. Must not throw. */
  failedToRun(sessionId: string, error: HoldfastError): void;
  /** Tell whoever watches. Must not throw. */
  warn(sessionId: string, message: string): void;
}

export class ScheduleKeeper {
  readonly #host: ScheduleKeeperHost;
  /** Those being fired: an agent that takes long to load holds up no other schedule. */
  readonly #firing = new Set<string>();
  /** Those that could not be fired, so that each is told once. */
  readonly #broken = new Set<string>();
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(host: ScheduleKeeperHost) {
    this.#host = host;
    void this.#look();
  }

  /** Fire nothing more. What was handed over for commit already may still be committed. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  /** schedule-keeper-5. Fire what is due, and look again at the next second. */
  async #look(): Promise<void> {
    const { storage, clock } = this.#host;
    try {
      const { schedules } = await storage.due({ now: clock.now(), limit: 1, agents: [] });
      for (const schedule of schedules) void this.#fire(schedule);
    } catch {
      // Storage is away: the next second asks again.
    }
    if (this.#isClosed) return;
    this.#cancel = clock.setTimer(() => void this.#look(), SECOND_MS - (clock.now() % SECOND_MS));
  }

  async #fire(schedule: Schedule): Promise<void> {
    const { scheduleId, nextAt: dueAt, action } = schedule;
    if (this.#firing.has(scheduleId)) return;
    this.#firing.add(scheduleId);
    let sessionId = action.type === "start" ? scheduleId : action.sessionId;
    try {
      const name = firingName(scheduleId, dueAt);
      if (action.type === "start") sessionId = name;
      await this.#commit(schedule, name, sessionId);
      this.#broken.delete(scheduleId);
    } catch (thrown) {
      if (this.#broken.has(scheduleId)) return;
      this.#broken.add(scheduleId);
      this.#host.warn(sessionId, `schedule ${scheduleId} could not fire: ${toHoldfastError(thrown).message}`);
    } finally {
      this.#firing.delete(scheduleId);
    }
  }

  async #commit(schedule: Schedule, name: string, sessionId: string): Promise<void> {
    const { committer, clock } = this.#host;
    const { scheduleId, nextAt: dueAt, action } = schedule;
    const effect = await this.#effectOf(schedule, name);
    const nextAt = readCron(schedule.cron, schedule.timeZone).after(Math.max(dueAt, clock.now())); // schedule-keeper-4.
    if (this.#isClosed) return;
    const result = await committer.commit({ type: "fire_schedule", scheduleId, dueAt, nextAt, effect });
    if (this.#isClosed) return;
    if (result.status === "done")
      this.#host.options.onFired?.({ scheduleId, sessionId, type: action.type, dueAt, nextAt });
    // `fenced`: another process fired it, and may be gone; or we did, and the answer was lost. Whoever claims it runs it.
    if (result.status === "done" || result.status === "fenced") void this.#run(sessionId);
  }

  #effectOf(schedule: Schedule, name: string): Promise<CreateSession | SendSignal> {
    const { random, clock } = this.#host;
    return effectOfFiring(schedule, {
      name,
      agent: (agent) => this.#current(agent, name),
      seed: random.u32(),
      now: clock.now(),
    });
  }

  /** A session starts with the version that is here now, not with the one of when its schedule was put. */
  async #current(agent: AgentRef, sessionId: string): Promise<AgentRef> {
    await this.#learn(agent, sessionId);
    return { ...agent, ...this.#host.agents.describe(agent.name) };
  }

  async #run(named: string): Promise<void> {
    const { storage, agents, goOn, failedToRun } = this.#host;
    let session: Session | undefined;
    try {
      session = await readInPlaceOf((id) => storage.reader.session(id), named);
    } catch (error) {
      failedToRun(named, toHoldfastError(error));
    }
    if (session === undefined || isEnded(session.status)) return;
    const { sessionId, agent } = session;
    await this.#learn(agent, sessionId);
    if (!this.#isClosed && agents.latest(agent.name) !== undefined) await goOn(sessionId).catch(() => {}); // Told by whoever could not.
  }

  /** Have the agent known here, if it can be found. */
  async #learn(agent: AgentRef, sessionId: string): Promise<void> {
    const { agents, options, know, warn } = this.#host;
    if (agents.latest(agent.name) !== undefined) return;
    try {
      const found = await options.findAgent?.(agent);
      // Another firing may have found it meanwhile.
      if (found !== undefined && agents.latest(agent.name) === undefined) know(found);
    } catch (error) {
      warn(sessionId, toHoldfastError(error).message);
    }
  }
}

/** schedule-keeper-3. Such as `nightly-20261121T030000Z`. */
export function firingName(scheduleId: string, dueAt: number): string {
  return `${scheduleId}-${new Date(dueAt).toISOString().replaceAll(/[-:]|\.000/g, "")}`;
}
