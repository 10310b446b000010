// `runStackKills`: clients work with the local stack while its processes are killed, in any order and at any
// moment. The stack is started again after each kill of its supervisor, as its user would. At last everything
// must end, and the checkers compare what was seen with the promises.
//
//   - A seed decides the sessions, the kills and the pauses; their times depend on the machine.
//   - The secret is searched for all the time. That includes the files, the arguments and environments of all
//     processes, the output of commands, and the coordinator's answers and streams.
//   - A pause of more than `STABLE_MS` between some kills keeps the supervisor from giving up. When it gives
//     up nevertheless, the stack is started again, and that is counted.

import { appendFileSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { JournalRecord } from "@holdfast/core";
import { openSqliteReader } from "@holdfast/storage/sqlite";
import { CanaryScan } from "@holdfast/testkit";
import { check } from "../checkers.ts";
import { allSessions, finalOf, JOURNAL_MAX } from "../database-watch.ts";
import { chanceOf, type Chance } from "../faults.ts";
import { linesOf, timesOf, type Times } from "../nemesis.ts";
import { monotonicMs, type Effect, type FinalSession } from "../observed.ts";
import { Clients } from "../requests.ts";
import { Workload } from "../workload.ts";
import { COMPONENTS, KillableStack, type Component } from "./killable-stack.ts";
import { measureSingleKills, type ResumedTimes } from "./single-kills.ts";
import { StackClients } from "./stack-clients.ts";
import { checkStack, type RecordedOutcome, type StackSeen } from "./stack-checkers.ts";
import type { ExecutorLine } from "./tree-executor.ts";

/** The supervisor counts restarts from zero after a process was ready for this time. */
const STABLE_MS = 5_000;
/** The maximum time in which left processes end, from the moment that the stack is ready again. */
const ORPHAN_MS = 5_000;
/** L3. The maximum time without the end of a session, when nothing is killed any more. */
const HEALED_MS = 60_000;
const LOOK_EVERY_MS = 250;
const STARTS_MAX = 20;
const OPEN = ["submitted", "working", "waiting", "paused"] as const;

export interface StackKillsOptions {
  readonly seed: number;
  /** Kills that hit a process. */
  readonly kills: number;
  /** Kills of the runner, and as many of the supervisor, whose times are measured afterwards. */
  readonly singleKills: number;
  /** Sessions at a time. */
  readonly width: number;
  /** The duration of the sessions' work, relative to that in a campaign. */
  readonly pace: number;
  /** The file of the `holdfast` command. */
  readonly launcher: string;
  /** Receives a line about each event. */
  readonly say: (line: string) => void;
}

export interface StackKillsReport {
  readonly folder: string;
  readonly violations: readonly string[];
  readonly killed: Readonly<Record<Component, number>>;
  readonly sessions: number;
  readonly requests: number;
  readonly effects: number;
  /** How often the supervisor gave up. */
  readonly gaveUp: number;
  /** From a single kill to the next attempt of each session that it cut off. */
  readonly resumedMs: ResumedTimes;
  /** From the moment that the stack is ready again to the end of the last process that a dead one had left. */
  readonly orphanedMs: Times | undefined;
  /** From the acknowledgement of a hard cancel to the end of the executor's processes. */
  readonly cancelledMs: Times | undefined;
  /** Texts, files and processes that were searched for the secret. */
  readonly searched: number;
}

interface Kill {
  readonly at: number;
  readonly component: Component;
}

export async function runStackKills(options: StackKillsOptions): Promise<StackKillsReport> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-stack-kills-"));
  options.say(`everything that is seen is in ${folder}`);
  const scan = new CanaryScan();
  const stack = new KillableStack(folder, options.launcher, scan.secret);
  const stop = (): never => process.exit(130);
  const atExit = (): void => stack.close();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, stop);
  process.on("exit", atExit);
  try {
    return await new StackKills(options, stack, scan).run();
  } finally {
    stack.close();
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, stop);
    process.off("exit", atExit);
  }
}

class StackKills {
  readonly #options: StackKillsOptions;
  readonly #stack: KillableStack;
  readonly #scan: CanaryScan;
  readonly #chance: Chance;
  readonly #kills: Kill[] = [];
  readonly #orphanedMs: number[] = [];
  readonly #orphans: string[] = [];
  readonly #complaints: string[] = [];
  readonly #over = new AbortController();
  #gaveUp = 0;
  #clients!: Clients;
  #workload!: Workload;

  constructor(options: StackKillsOptions, stack: KillableStack, scan: CanaryScan) {
    this.#options = options;
    this.#stack = stack;
    this.#scan = scan;
    this.#chance = chanceOf(options.seed, 2);
  }

  async run(): Promise<StackKillsReport> {
    const { seed, width, pace, kills, singleKills } = this.#options;
    await this.#start();
    const urls = [this.#stack.state!.url!];
    const token = this.#stack.adminToken;
    this.#clients = new Clients(urls, token, (request) =>
      appendFileSync(this.#file("requests.jsonl"), `${JSON.stringify(request)}\n`),
    );
    this.#workload = new Workload({
      clients: this.#clients,
      urls,
      token,
      chance: chanceOf(seed, 1),
      width,
      pace,
      isPoisoned: false,
    });
    const own = new StackClients({
      stack: this.#stack,
      scan: this.#scan,
      clients: this.#clients,
      chance: chanceOf(seed, 3),
      pace,
      over: this.#over.signal,
      kills: () => this.#kills.length,
      killsMax: kills,
    });
    const background = [this.#look(), own.unpause(), own.run()];
    const working = this.#workload.run();
    await this.#killAll();
    this.#workload.close();
    this.#options.say("no more kills");
    await this.#untilReady();
    await this.#expectNoOrphans();
    const late = [...(await this.#untilAllEnded(own))];
    const resumedMs = await measureSingleKills({
      stack: this.#stack,
      clients: this.#clients,
      times: singleKills,
      start: () => this.#start(),
    });
    late.push(...(await this.#untilAllEnded(own)));
    await own.searchAnswers();
    this.#over.abort();
    await this.#workload.end();
    await Promise.all([working, ...background]);
    await this.#stop();
    return this.#judge(late, own, resumedMs);
  }

  // ---- kills -------------------------------------------------------------------------------------------------------

  async #killAll(): Promise<void> {
    for (let turn = 0; this.#kills.length < this.#options.kills; turn++) {
      const isStable = turn % 3 === 2;
      if (isStable) await this.#untilReady();
      await sleep(this.#chance.between(0, 1_200) + (isStable ? STABLE_MS : 0));
      const component = COMPONENTS[turn < 3 ? turn : this.#chance.between(0, 2)]!;
      const at = await this.#kill(component);
      if (at === undefined) {
        if (this.#stack.isDown) await this.#startAgain();
        continue;
      }
      if (this.#chance.between(1, 4) === 1) await this.#kill(this.#chance.pick(COMPONENTS));
      if (this.#stack.isDown) await this.#startAgain();
      if (turn % 2 === 0) {
        await this.#untilReady();
        await this.#expectNoOrphans();
      }
      this.#scan.searchFolder(this.#stack.folder);
    }
  }

  /** @returns when; `undefined` when the process was not there. */
  async #kill(component: Component): Promise<number | undefined> {
    const at = monotonicMs();
    const pid = await this.#stack.kill(component);
    if (pid === undefined) return undefined;
    this.#kills.push({ at, component });
    this.#options.say(
      `${this.#kills.length}. ${component} ${pid}; ${this.#workload.ended} of ${this.#workload.begun} sessions over`,
    );
    return at;
  }

  /** The stack gave up, or its supervisor was killed. */
  async #startAgain(): Promise<void> {
    if (this.#stack.state?.status === "failed") this.#gaveUp++;
    if (this.#chance.between(1, 2) === 1) await sleep(this.#chance.between(0, 1_500));
    for (let starts = 0; starts < STARTS_MAX; starts++) {
      const before = this.#kills.length;
      const starting = this.#stack.start();
      // Now and then a process dies while the stack starts.
      if (this.#chance.between(1, 4) === 1) {
        await Promise.race([starting, sleep(this.#chance.between(0, 800))]);
        await this.#kill(this.#chance.pick(COMPONENTS));
      }
      const { code, said } = await starting;
      this.#scan.search("the output of local start", said);
      if (code === 0) return;
      if (this.#kills.length === before)
        this.#complaints.push(`L3: local start ended with ${code}, though nothing was killed: ${said}`);
    }
    throw new Error("the stack does not start any more");
  }

  async #start(): Promise<void> {
    const { code, said } = await this.#stack.start();
    this.#scan.search("the output of local start", said);
    if (code !== 0) throw new Error(`the stack does not start: ${said}`);
  }

  /** Resolves when everything is ready, also when the stack had to be started for that. */
  async #untilReady(): Promise<void> {
    while (!(await this.#stack.ready())) await this.#startAgain();
  }

  async #expectNoOrphans(): Promise<void> {
    const from = monotonicMs();
    for (let left = this.#stack.orphans; left.length > 0; left = this.#stack.orphans) {
      if (monotonicMs() > from + ORPHAN_MS) {
        this.#orphans.push(...left.map(({ pid, command }) => `${pid} (${command}) still runs`));
        return;
      }
      await sleep(10);
    }
    this.#orphanedMs.push(monotonicMs() - from);
  }

  async #stop(): Promise<void> {
    for (const words of [["status"], ["logs", "-n", "100000"], ["stop"]]) {
      const { said } = await this.#stack.command(["local", ...words]);
      this.#scan.search(`the output of local ${words[0]}`, said);
    }
    this.#orphans.push(
      ...this.#stack.processes.map(({ pid, command }) => `${pid} (${command}) runs after the stop`),
    );
    this.#scan.searchFolder(this.#stack.folder);
  }

  // ---- the end -----------------------------------------------------------------------------------------------------

  async #look(): Promise<void> {
    while (!this.#over.signal.aborted) {
      this.#scan.searchProcesses(1);
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** @returns the sessions that do not end, as violations. */
  async #untilAllEnded(own: StackClients): Promise<readonly string[]> {
    let least = { open: Infinity, at: monotonicMs() };
    for (;;) {
      const lists = await Promise.all(OPEN.map((status) => own.list(status)));
      const open = lists.flat();
      const count = open.length + this.#workload.begun - this.#workload.ended;
      const now = monotonicMs();
      if (count < least.open) least = { open: count, at: now };
      if (count === 0) return [];
      if (now - least.at > HEALED_MS)
        return open.map(
          ({ sessionId, agent, status }) =>
            `L3: ${sessionId} (${agent}) is ${status}, and nothing has ended for ${HEALED_MS} ms after the last kill`,
        );
      await sleep(LOOK_EVERY_MS);
    }
  }

  async #judge(
    late: readonly string[],
    own: StackClients,
    resumedMs: ResumedTimes,
  ): Promise<StackKillsReport> {
    const { requests } = this.#clients;
    const effects = readdirSync(this.#file("effects"))
      .flatMap((name) => linesOf<Effect>(this.#file(`effects/${name}`)))
      .toSorted((a, b) => a.at - b.at);
    const { sessions, outcomes, entries } = await this.#readDatabase();
    const seen: StackSeen = {
      effects,
      outcomes,
      executors: linesOf<ExecutorLine>(this.#file("executors.jsonl")),
      entries,
      orphans: this.#orphans,
      secretIn: this.#scan.found,
    };
    const fleet = check({
      requests,
      effects,
      sessions,
      watched: this.#workload.watched,
      // The database of the stack has no triggers.
      claims: [],
      batches: [],
      sightings: [],
      freezes: [],
      starts: {},
      runnerIds: {},
      outputs: {},
    });
    const report: StackKillsReport = {
      folder: this.#stack.folder,
      violations: [...this.#complaints, ...late, ...fleet, ...checkStack(seen)],
      killed: Object.fromEntries(
        COMPONENTS.map((one) => [one, this.#kills.filter(({ component }) => component === one).length]),
      ) as Record<Component, number>,
      sessions: sessions.length,
      requests: requests.length,
      effects: effects.length,
      gaveUp: this.#gaveUp,
      resumedMs,
      orphanedMs: timesOf(this.#orphanedMs),
      cancelledMs: timesOf(own.cancelledMs),
      searched: this.#scan.looked,
    };
    writeFileSync(this.#file("seen.json"), JSON.stringify({ ...seen, kills: this.#kills, sessions }));
    writeFileSync(this.#file("report.json"), JSON.stringify(report, undefined, 2));
    return report;
  }

  async #readDatabase(): Promise<{
    readonly sessions: readonly FinalSession[];
    readonly outcomes: readonly RecordedOutcome[];
    readonly entries: Readonly<Record<string, readonly string[]>>;
  }> {
    const reader = openSqliteReader({ path: this.#stack.database });
    try {
      const sessions: FinalSession[] = [];
      const outcomes: RecordedOutcome[] = [];
      const entries: Record<string, readonly string[]> = {};
      for (const session of await allSessions({ reader })) {
        const { sessionId } = session;
        const records = await reader.journal(sessionId, 0, JOURNAL_MAX);
        sessions.push(finalOf(session, records));
        outcomes.push(...records.flatMap((record) => outcomeIn(sessionId, record)));
        const texts = await reader.entries(sessionId, 0, JOURNAL_MAX);
        entries[sessionId] = texts.map(({ content }) => textOf(JSON.parse(content)));
      }
      return { sessions, outcomes, entries };
    } finally {
      reader.close();
    }
  }

  #file(name: string): string {
    return join(this.#stack.folder, name);
  }
}

function outcomeIn(sessionId: string, record: JournalRecord): readonly RecordedOutcome[] {
  if (record.type !== "task_completed" && record.type !== "task_failed") return [];
  return [{ taskId: `${sessionId}-${record.task}`, attempt: record.attempt }];
}

/** The text of an entry: of a message as it is, of an answer its field. */
function textOf(content: unknown): string {
  return String((content as { readonly text?: unknown } | null)?.text ?? content);
}
