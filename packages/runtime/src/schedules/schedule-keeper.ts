// `ScheduleKeeper`: fires the schedules that are due, in a process with the option `schedules`.
//
//   - A time fires once, however many processes see it. Storage compares it with the schedule's next time in
//     the transaction that starts the session or sends the signal, and sets the next time (ST34).
//   - The id of the session or signal is made from the schedule and the due time. If a crash, or a schedule
//     that was put again, makes that time due again, the second firing finds the first one's result.
//   - Times that were missed fire once, together, as the first of them.
//   - When the wall clock jumps, no time fires twice and none is skipped. The keeper asks storage for due
//     schedules at each second of the wall clock, and waits for that second by the monotonic clock.
//
// Storage finds due schedules, and `cron.ts` computes their next times. It does not know how sessions run.

import {
  type AgentRef,
  type AgentStorage,
  type Clock,
  type CreateSession,
  effectOfFiring,
  type HoldfastError,
  isEnded,
  type Random,
  readInPlaceOf,
  repeat,
  type Repetition,
  type Schedule,
  SECOND_MS,
  type SendSignal,
  type Session,
  toHoldfastError,
} from "@holdfast/core";
import { readCron } from "./cron.ts";
import type { Agent } from "../agents/define.ts";
import type { GroupCommitter } from "../loop/group-committer.ts";
import type { KnownAgents } from "../agents/agent-registry.ts";
import type { ScheduleOptions } from "../api/runtime-api.ts";

/** Cron knows whole seconds. */

export interface ScheduleKeeperHost {
  readonly storage: AgentStorage;
  readonly committer: GroupCommitter;
  readonly clock: Clock;
  readonly random: Random;
  readonly options: ScheduleOptions;
  readonly agents: Pick<KnownAgents, "describe" | "latest">;
  /** Take sessions of this agent from now on. @throws ConflictError */
  know(agent: Agent): void;
  /**
   * Run a session of a known agent, unless it has ended, is paused or runs elsewhere. Rejects after it has
   * reported the failure.
   */
  runExisting(sessionId: string): Promise<void>;
  /** Report that a session could not run, and try again if that may help. Must not throw. */
  failedToRun(sessionId: string, error: HoldfastError): void;
  /** Report a warning. Must not throw. */
  warn(sessionId: string, message: string): void;
}

export class ScheduleKeeper {
  readonly #host: ScheduleKeeperHost;
  /** Schedules being fired: an agent that takes long to load delays no other schedule. */
  readonly #firing = new Set<string>();
  /** Schedules that could not fire, so that each is reported once. */
  readonly #broken = new Set<string>();
  readonly #looks: Repetition;
  #isClosed = false;

  constructor(host: ScheduleKeeperHost) {
    this.#host = host;
    const { clock } = host;
    this.#looks = repeat({
      clock,
      // The next second of the wall clock, even if that jumps.
      pauseMs: () => SECOND_MS - (clock.now() % SECOND_MS),
      look: () => this.#look(),
      atOnce: true,
    });
  }

  /** Fire nothing more. A firing that was submitted before may still be committed. */
  close(): void {
    this.#isClosed = true;
    this.#looks.close();
  }

  async #look(): Promise<void> {
    const { storage, clock } = this.#host;
    const { schedules } = await storage.due({ now: clock.now(), limit: 1, agents: [] });
    for (const schedule of schedules) void this.#fire(schedule);
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
    // mutant: missed-times-all-fire
    // Times that were missed fire once, together.
    const nextAt = readCron(schedule.cron, schedule.timeZone).after(Math.max(dueAt, clock.now()));
    if (this.#isClosed) return;
    const result = await committer.commit({ type: "fire_schedule", scheduleId, dueAt, nextAt, effect });
    if (this.#isClosed) return;
    if (result.status === "done")
      this.#host.options.onFired?.({ scheduleId, sessionId, type: action.type, dueAt, nextAt });
    // `fenced`: another process fired it, or this one did and the answer was lost. Its first claimant runs
    // it.
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

  /** A session starts with the version known here now, not with the version its schedule was put with. */
  async #current(agent: AgentRef, sessionId: string): Promise<AgentRef> {
    await this.#learn(agent, sessionId);
    return { ...agent, ...this.#host.agents.describe(agent.name) };
  }

  async #run(named: string): Promise<void> {
    const { storage, agents, runExisting, failedToRun } = this.#host;
    let session: Session | undefined;
    try {
      session = await readInPlaceOf((id) => storage.reader.session(id), named);
    } catch (error) {
      failedToRun(named, toHoldfastError(error));
    }
    if (session === undefined || isEnded(session.status)) return;
    const { sessionId, agent } = session;
    await this.#learn(agent, sessionId);
    if (!this.#isClosed && agents.latest(agent.name) !== undefined)
      await runExisting(sessionId).catch(() => {}); // `runExisting` has reported it.
  }

  /** Find an unknown agent with `findAgent`, and make it known here. */
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

/** Such as `nightly-20261121T030000Z`. */
export function firingName(scheduleId: string, dueAt: number): string {
  // mutant: fired-session-unnamed
  return `${scheduleId}-${new Date(dueAt).toISOString().replaceAll(/[-:]|\.000/g, "")}`;
}
