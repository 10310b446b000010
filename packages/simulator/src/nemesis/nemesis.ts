// `runNemesis`: clients work with a fleet of real processes while faults come and go. Then everything is
// healed, and every session must end. At last the checkers compare the observations with the promises.
//
//   - All observations are in files in the folder that it names, however the run ends.
//   - The same seed draws the same faults and sessions; their times depend on the machine.
//   - A fault happens only when a coordinator and a runner are ready, so a slow machine has longer times
//     between faults.

import { appendFileSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defined } from "@holdfast/core";
import { TERMINAL, check } from "./checkers.ts";
import { Claims } from "./claims.ts";
import { readDatabase, readSessions } from "./database-watch.ts";
import { chanceOf, FAULTS, type Chance, type Fault, type FaultContext } from "./faults.ts";
import {
  monotonicMs,
  type Effect,
  type FinalSession,
  type Freeze,
  type Observed,
  type Request,
  type Sighting,
} from "./observed.ts";
import { sightings } from "./processes.ts";
import { Clients } from "./requests.ts";
import { Workload } from "./workload.ts";
import { closeNow, World, type WorldOptions } from "./world.ts";

/** L3. The maximum time without the end of a session, when everything is healed. */
const HEALED_MS = 60_000;
const LOOK_EVERY_MS = 400;
/** The interval at which the role of a person looks for poison sessions. */
const DECIDE_EVERY_MS = 2_000;

export interface NemesisOptions extends Omit<WorldOptions, "folder"> {
  readonly seed: number;
  /** The names of the `FAULTS` that may happen; all by default. */
  readonly faults?: readonly string[];
  /**
   * Faults happen for at least this time, and until `least` of each kind have happened. A kind is the first
   * word of a name.
   */
  readonly minMs: number;
  readonly least?: Readonly<Record<string, number>>;
  /** The number of faults at a time. */
  readonly atOnce: number;
  /** The maximum pause between two faults. */
  readonly pauseMs: number;
  /** The number of sessions at a time. */
  readonly width: number;
  /** The maximum number of sessions. */
  readonly sessionsMax?: number;
  /** The duration of the sessions' work, relative to that in a campaign; 1 by default. */
  readonly pace?: number;
  readonly isPoisoned: boolean;
  /** Receives a line about each event. */
  readonly say: (line: string) => void;
}

/** The median, the 99th percentile and the longest, in milliseconds. */
export type Times = readonly [number, number, number];

export interface NemesisReport {
  readonly folder: string;
  readonly violations: readonly string[];
  /** Faults that could not be had here, and why. */
  readonly skipped: Readonly<Record<string, string>>;
  /** How often each happened. */
  readonly happened: Readonly<Record<string, number>>;
  readonly sessions: number;
  readonly requests: number;
  readonly effects: number;
  readonly claims: number;
  /** From the last fault to the last end. */
  readonly settledMs: number;
  /** From the loss of a runner to the next claim of what it held. */
  readonly requeuedMs: Times | undefined;
  /** The number of sessions that were unpaused: they were taken for poison only because their runners were killed. */
  readonly unpaused: number;
}

interface Happened {
  readonly name: string;
  readonly at: number;
  readonly until: number;
  readonly target: string;
}

export async function runNemesis(options: NemesisOptions): Promise<NemesisReport> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-nemesis-"));
  options.say(`everything that is seen is in ${folder}`);
  const stop = (): never => process.exit(130);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, stop);
  const atExit = (): void => closeNow(folder);
  process.on("exit", atExit);
  try {
    const world = await World.open({ ...options, folder });
    try {
      return await new Nemesis(options, world, folder).run();
    } finally {
      await world.close();
    }
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, stop);
    process.off("exit", atExit);
  }
}

class Nemesis {
  readonly #options: NemesisOptions;
  readonly #world: World;
  readonly #folder: string;
  readonly #faults: readonly Fault[];
  readonly #skipped: Readonly<Record<string, string>>;
  readonly #happened: Happened[] = [];
  readonly #freezes: Freeze[] = [];
  readonly #sightings: Sighting[] = [];
  readonly #complaints: string[] = [];
  readonly #clients: Clients;
  readonly #workload: Workload;
  readonly #unpaused = new Set<string>();
  #isOver = false;
  #settledMs = 0;

  constructor(options: NemesisOptions, world: World, folder: string) {
    this.#options = options;
    this.#world = world;
    this.#folder = folder;
    const wanted = FAULTS.filter(({ name }) => options.faults?.includes(name) ?? true);
    const without = new Map(wanted.map((fault) => [fault, fault.without(world)]));
    this.#faults = wanted.filter((fault) => without.get(fault) === undefined);
    this.#skipped = Object.fromEntries(
      [...without].flatMap(([{ name }, why]) => (why === undefined ? [] : [[name, why]])),
    );
    const { urls, adminToken: token } = world;
    this.#clients = new Clients(urls, token, (request) => this.#keep("requests", request));
    const { width, sessionsMax, isPoisoned, seed, pace = 1 } = options;
    this.#workload = new Workload({
      clients: this.#clients,
      urls,
      token,
      chance: chanceOf(seed, 1),
      width,
      pace,
      isPoisoned,
      ...defined({ sessionsMax }),
    });
  }

  async run(): Promise<NemesisReport> {
    const looking = [this.#look(), this.#decide()];
    const working = this.#workload.run();
    await this.#disturb();
    this.#workload.close();
    this.#options.say("healing");
    await this.#world.heal();
    const late = await this.#untilAllEnded();
    await this.#workload.end();
    await working;
    this.#isOver = true;
    await Promise.all(looking);
    return this.#judge(late);
  }

  // ---- faults ------------------------------------------------------------------------------------------------------

  async #disturb(): Promise<void> {
    const { minMs, seed, atOnce } = this.#options;
    const until = monotonicMs() + minMs;
    const isEnough = (): boolean => monotonicMs() >= until && this.#wanted().length === 0;
    const chance = chanceOf(seed, 2);
    const context: FaultContext = {
      world: this.#world,
      chance,
      freezes: this.#freezes,
      complaints: this.#complaints,
    };
    while (!isEnough() && this.#faults.length > 0) {
      await sleep(chance.between(Math.floor(this.#options.pauseMs / 2), this.#options.pauseMs));
      await this.#world.untilStaffed();
      const drawn = this.#draw(chance, chance.between(1, atOnce));
      await Promise.all(drawn.map((fault) => this.#happen(fault, context)));
    }
  }

  /** The kinds of faults that have not happened often enough yet. */
  #wanted(): readonly string[] {
    const happened = Map.groupBy(this.#happened, kindOf);
    const { least = {} } = this.#options;
    return Object.keys(least).filter((kind) => (happened.get(kind)?.length ?? 0) < least[kind]!);
  }

  /** Faults of one kind, except kills, do not happen together: two cannot start one server. */
  #draw(chance: Chance, count: number): readonly Fault[] {
    const wanted = this.#wanted();
    const candidates = this.#faults.filter((fault) => wanted.length === 0 || wanted.includes(kindOf(fault)));
    const drawn: Fault[] = [];
    for (let i = 0; i < count; i++) {
      const fault = chance.pick(candidates as [Fault, ...Fault[]]);
      if (kindOf(fault) === "kill" || !drawn.some((other) => kindOf(other) === kindOf(fault)))
        drawn.push(fault);
    }
    return drawn;
  }

  async #happen(fault: Fault, context: FaultContext): Promise<void> {
    const at = monotonicMs();
    const target = await fault.happen(context);
    const happened = { name: fault.name, at, until: monotonicMs(), target };
    this.#happened.push(happened);
    this.#keep("faults", happened);
    const { begun, ended } = this.#workload;
    this.#options.say(
      `${this.#happened.length}. ${fault.name} ${target}, ${Math.round(happened.until - at)} ms; ${ended} of ${begun} sessions over`,
    );
  }

  // ---- the end -----------------------------------------------------------------------------------------------------

  /** @returns the sessions that do not end, as violations. */
  async #untilAllEnded(): Promise<readonly string[]> {
    const from = monotonicMs();
    let least = { open: Infinity, at: from };
    for (;;) {
      const sessions = await readSessions(this.#world.databaseUrl);
      const open = sessions.filter((session) => !isSettled(session));
      const count = open.length + this.#workload.begun - this.#workload.ended;
      const now = monotonicMs();
      if (count < least.open) least = { open: count, at: now };
      this.#settledMs = Math.round(now - from);
      if (count === 0) return [];
      if (now - least.at > HEALED_MS) {
        return open.map(
          ({ sessionId, agent, status }) =>
            `L3: ${sessionId} (${agent}) is ${status}, and nothing has ended for ${HEALED_MS} ms after all was healed`,
        );
      }
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** Unpause sessions that were taken for poison only because their runners were killed, as a person would decide. */
  async #decide(): Promise<void> {
    while (!this.#isOver) {
      for (const sessionId of await this.#takenForPoison()) {
        this.#options.say(`${sessionId} was taken for poison, and is not`);
        this.#unpaused.add(sessionId);
        const asked = { method: "POST", path: `/sessions/${sessionId}/unpause`, body: {} } as const;
        await this.#clients.ask({ op: "unpause", about: sessionId }, asked);
      }
      await sleep(DECIDE_EVERY_MS);
    }
  }

  async #takenForPoison(): Promise<readonly string[]> {
    const asked = { method: "GET", path: "/sessions?status=paused&limit=1000" } as const;
    const { answer } = await this.#clients.ask({ op: "list", about: "paused" }, asked);
    const sessions = (answer?.body["sessions"] ?? []) as readonly Pick<
      FinalSession,
      "sessionId" | "agent" | "pauseReason"
    >[];
    return sessions
      .filter(({ agent, pauseReason }) => agent !== "poison" && pauseReason === "poison")
      .map(({ sessionId }) => sessionId);
  }

  async #judge(late: readonly string[]): Promise<NemesisReport> {
    const seen = await this.#gather();
    writeFileSync(join(this.#folder, "seen.json"), JSON.stringify(seen));
    const violations = [...this.#complaints, ...late, ...check(seen)];
    const report: NemesisReport = {
      folder: this.#folder,
      violations,
      skipped: this.#skipped,
      happened: countOf(this.#happened),
      sessions: seen.sessions.length,
      requests: seen.requests.length,
      effects: seen.effects.length,
      claims: seen.claims.length,
      settledMs: this.#settledMs,
      requeuedMs: requeued(this.#happened, seen),
      unpaused: this.#unpaused.size,
    };
    writeFileSync(join(this.#folder, "report.json"), JSON.stringify(report, undefined, 2));
    return report;
  }

  async #gather(): Promise<Observed> {
    const { effectsFolder, members } = this.#world;
    const effects = readdirSync(effectsFolder).flatMap((name) => linesOf<Effect>(join(effectsFolder, name)));
    return {
      ...(await readDatabase(this.#world.databaseUrl)),
      requests: this.#clients.requests,
      effects: effects.toSorted((a, b) => a.at - b.at),
      sightings: this.#sightings,
      freezes: this.#freezes,
      watched: this.#workload.watched,
      starts: Object.fromEntries(members.map(({ name, starts }) => [name, starts])),
      runnerIds: this.#world.runnerIds(),
      outputs: Object.fromEntries(
        members.map(({ name }) => [name, readFileSync(this.#world.outputOf(name), "utf8")]),
      ),
    };
  }

  async #look(): Promise<void> {
    while (!this.#isOver) {
      this.#sightings.push(...sightings());
      await sleep(LOOK_EVERY_MS);
    }
  }

  #keep(what: string, line: Request | Happened): void {
    appendFileSync(join(this.#folder, `${what}.jsonl`), `${JSON.stringify(line)}\n`);
  }
}

function isSettled({ agent, status, pauseReason }: FinalSession): boolean {
  return TERMINAL.has(status) || (agent === "poison" && pauseReason === "poison");
}

/** O3. The times until sessions of killed runners were claimed again, as percentiles. Other faults prolong them. */
function requeued(happened: readonly Happened[], seen: Observed): NemesisReport["requeuedMs"] {
  const claims = new Claims(seen.claims);
  const times = happened
    .filter(({ name }) => name === "kill-runner")
    .flatMap(({ at, target }) => claims.nextAfter(seen.runnerIds[target] ?? "", at).map((next) => next - at));
  return timesOf(times);
}

function kindOf({ name }: { readonly name: string }): string {
  return name.split("-")[0]!;
}

function countOf(happened: readonly Happened[]): Readonly<Record<string, number>> {
  const groups = Map.groupBy(happened, ({ name }) => name);
  return Object.fromEntries([...groups].map(([name, all]) => [name, all.length]));
}

/** @returns `undefined` when there are none. */
export function timesOf(times: readonly number[]): Times | undefined {
  if (times.length === 0) return undefined;
  const ordered = times.toSorted((a, b) => a - b);
  const at = (share: number): number => Math.round(ordered[Math.floor((ordered.length - 1) * share)]!);
  return [at(0.5), at(0.99), at(1)];
}

/** The values of a file with one JSON text in each line. */
export function linesOf<T>(path: string): T[] {
  const lines = readFileSync(path, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as T);
}
