// `ScheduleFiring` fires due schedules while a coordinator lives.
//
//   - A time fires once, however many coordinators see it. Storage compares it with the schedule's next time,
//     in the transaction that fires it (ST34).
//   - The id of a started session or sent signal is derived from the schedule and the due time. Firing that
//     time again therefore finds it.
//   schedule-firing-4. Missed times fire once, together, as the first of them.
//   - Due schedules are read at each second of the wall clock, even if the clock jumps.
//
// The function that computes the next time of a cron line is an option.

import {
  type AgentStorage,
  type Clock,
  type CreateSession,
  effectOfFiring,
  type Random,
  repeat,
  type Repetition,
  type Schedule,
  SECOND_MS,
  type SendSignal,
  UNKNOWN_VERSION,
} from "@holdfast/core";

/** The times of a cron line in a zone. */
export interface CronTimes {
  /** The first one after a moment. */
  after(moment: number): number;
}

export interface FiringHost {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  readonly random: Random;
  /** @throws UsageError that names the mistake. */
  readonly readCron: (line: string, timeZone: string) => CronTimes;
  /** A name such as `nightly-20261121T030000Z`. */
  readonly firingName: (scheduleId: string, dueAt: number) => string;
  /**
   * The version of the agent that starts now.
   *
   * @param asked the tag or version of the schedule, if it names one.
   * @throws HoldfastError for an agent that starts no session now, or a version that is not there.
   */
  readonly versionOf: (agent: string, asked: string | undefined) => Promise<string>;
  readonly warn: (message: string, error: unknown) => void;
}

export class ScheduleFiring {
  readonly #host: FiringHost;
  /**
   * Due schedules that failed and were reported. A removed schedule leaves the set, so that it cannot grow.
   */
  readonly #broken = new Set<string>();
  readonly #looks: Repetition;

  constructor(host: FiringHost) {
    this.#host = host;
    const { clock } = host;
    this.#looks = repeat({
      clock,
      isIdle: true,
      // The next second of the wall clock, even if that jumps.
      pauseMs: () => SECOND_MS - (clock.now() % SECOND_MS),
      look: () => this.#look(),
    });
  }

  close(): void {
    this.#looks.close();
  }

  async #look(): Promise<void> {
    const { storage, clock } = this.#host;
    const { schedules } = await storage.due({ now: clock.now(), limit: 1, agents: [] });
    const due = new Set(schedules.map(({ scheduleId }) => scheduleId));
    for (const scheduleId of this.#broken) if (!due.has(scheduleId)) this.#broken.delete(scheduleId);
    for (const schedule of schedules) await this.#fire(schedule);
  }

  async #fire(schedule: Schedule): Promise<void> {
    const { storage, clock, readCron, warn } = this.#host;
    const { scheduleId, nextAt: dueAt, cron, timeZone } = schedule;
    try {
      const effect = await this.#effectOf(schedule);
      const nextAt = readCron(cron, timeZone).after(Math.max(dueAt, clock.now())); // schedule-firing-4.
      await storage.commit([{ type: "fire_schedule", scheduleId, dueAt, nextAt, effect }], clock.now());
      this.#broken.delete(scheduleId);
    } catch (error) {
      if (this.#broken.has(scheduleId)) return;
      this.#broken.add(scheduleId);
      warn(`schedule ${scheduleId} could not fire`, error);
    }
  }

  #effectOf(schedule: Schedule): Promise<CreateSession | SendSignal> {
    const { random, clock, firingName, versionOf } = this.#host;
    return effectOfFiring(schedule, {
      // A second firing of this time finds the first one by its name.
      name: firingName(schedule.scheduleId, schedule.nextAt),
      agent: async ({ name, version, ...agent }) => ({
        ...agent,
        name,
        version: await versionOf(name, askedVersion(version)),
      }),
      seed: random.u32(),
      now: clock.now(),
    });
  }
}

function askedVersion(version: string): string | undefined {
  return version === UNKNOWN_VERSION ? undefined : version;
}
