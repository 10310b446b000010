// Kills around the creation, the use and the removal of worktrees. A write that was acknowledged before a
// kill must be in the worktree or in a commit that a ref reaches.
//
//   - A session is killed several times: each life continues what the one before left, also a removal.
//   - A kill comes at a random moment of a phase, within the time that this phase took before. Slow and fast
//     machines kill in it, therefore, and not after it. In `files` the moment is a number of removed files.
//   - Half of the kills leave the git of the life running.
//   - The lock of a killed git counts only when it is ten seconds old. No test waits for that: its time is
//     set back, once no process works in the repository any more.

import { execFile, execFileSync, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";

import { processesIn } from "./worktree-facts.ts";

/** The kills of the campaign, and of a run of this file alone. `npm test` leaves them out. */
const KILLS = isCampaign ? Number(process.env["HOLDFAST_KILLS"] ?? 1_000) : 4;
/** Projects at the same time. */
const PROJECTS = isCampaign ? 6 : 1;
/** Kills of one session. Then it may end. */
const KILLS_OF_SESSION = 8;
const LIFE = fileURLToPath(new URL("../testing/worktree-life.ts", import.meta.url));

/** A part of a life: the lines between which it is, and the time that it last took. */
const PHASES = {
  creation: { from: "start", to: "open", ms: 150 },
  return: { from: "start", to: "open", ms: 50 },
  work: { from: "open", to: "committing", ms: 10 },
  commit: { from: "committing", to: "committed", ms: 50 },
  removal: { from: "removing", to: "removed", ms: 400 },
  files: { from: "removing", to: "removed", ms: 400 },
};
type Phase = keyof typeof PHASES;

let place: string;

beforeEach(() => void (place = realpathSync(mkdtempSync(join(tmpdir(), "worktrees-kill-")))));
afterEach(() => rmSync(place, { recursive: true, force: true }));

const execute = promisify(execFile);

/** A repository with one commit and a submodule, and the folder of its worktrees. */
class Project {
  readonly folder: string;
  readonly worktrees: string;

  constructor(number: number) {
    this.folder = join(place, `project-${number}`);
    this.worktrees = join(place, `worktrees-${number}`);
    const lib = join(place, `lib-${number}`);
    this.#begin(lib);
    this.#commit(lib);
    this.#begin(this.folder);
    this.#run(this.folder, "-c", "protocol.file.allow=always", "submodule", "add", lib, "lib");
    this.#commit(this.folder);
  }

  #begin(folder: string): void {
    mkdirSync(folder);
    this.#run(folder, "init", "--quiet", "--initial-branch=main");
    writeFileSync(join(folder, "known.txt"), "base\n");
    writeFileSync(join(folder, ".gitignore"), "*.log\n");
  }

  #commit(folder: string): void {
    const identity = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
    this.#run(folder, "add", "--all");
    this.#run(folder, ...identity, "commit", "--quiet", "-m", "base");
  }

  #run(folder: string, ...args: readonly string[]): void {
    execFileSync("git", args, { cwd: folder, env: this.#env, stdio: "ignore" });
  }

  get #env(): Record<string, string> {
    return { PATH: process.env["PATH"] ?? "", HOME: place };
  }

  async git(...args: readonly string[]): Promise<string> {
    return this.#read(this.folder, args);
  }

  async #read(cwd: string, args: readonly string[]): Promise<string> {
    return (await execute("git", args, { cwd, env: this.#env, maxBuffer: 64 * 1024 * 1024 })).stdout;
  }

  /** Each line of each file of a rescue commit, and of that of the submodule. */
  async rescued(ref: string): Promise<readonly string[]> {
    const args = ["grep", "--text", "-e", "", ref];
    const inside = await this.#read(join(this.folder, "lib"), args);
    const linesOf = (text: string, prefix: string) =>
      text.split("\n").map((line) => prefix + line.slice(ref.length + 1));
    return [...linesOf(await this.git(...args), ""), ...linesOf(inside, "lib/")];
  }

  async ageLocks(): Promise<void> {
    const isInUse = (): boolean =>
      [this.folder, this.worktrees].some((folder) => (processesIn(folder) ?? []).length > 0);
    while (isInUse()) await delay(20);
    const folder = join(this.folder, ".git");
    const locks = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
      (name) => name.endsWith(".lock") && !name.startsWith("objects"),
    );
    const then = Date.now() / 1_000 - 60;
    for (const lock of locks) utimesSync(join(folder, lock), then, then);
  }
}

interface Life {
  readonly said: readonly string[];
  /** False if it ended before the kill. */
  readonly isKilled: boolean;
}

/** Files that a life leaves in the worktree, and those of the repository. */
const FILES = { ofLife: 7, ofRepository: 5 };

/** Runs one life, and kills it in this phase. */
async function live(
  { folder, worktrees }: Project,
  session: string,
  life: number,
  phase: Phase | undefined,
  random: () => number,
): Promise<Life> {
  const cache = process.env["NODE_COMPILE_CACHE"];
  const part = random();
  const files =
    phase === "files"
      ? [String(1 + Math.floor(part * (FILES.ofRepository + FILES.ofLife * (life + 1))))]
      : [];
  const child = spawn(process.execPath, [LIFE, folder, worktrees, session, String(life), ...files], {
    detached: true,
    env: {
      PATH: process.env["PATH"],
      HOME: place,
      ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: cache }),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const ended = new Promise((resolve) => child.on("close", resolve));
  // Half of the kills leave the git of the life running.
  const group = random() < 0.5 ? -child.pid! : child.pid!;
  const said: string[] = [];
  const saidAt = new Map<string, number>();
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = `${rest}${text}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      said.push(line);
      saidAt.set(line, performance.now());
      if (phase === undefined || phase === "files" || line !== PHASES[phase].from) continue;
      void delay(part * PHASES[phase].ms).then(() => {
        try {
          process.kill(group, "SIGKILL");
        } catch {
          // It has ended.
        }
      });
    }
  });
  await ended;
  for (const [name, { from, to }] of Object.entries(PHASES)) {
    const [begun, done] = [saidAt.get(from), saidAt.get(to)];
    const isOther = name === (life === 0 ? "return" : "creation");
    if (begun !== undefined && done !== undefined && !isOther) PHASES[name as Phase].ms = done - begun;
  }
  const isKilled = child.signalCode === "SIGKILL";
  if (!isKilled && said.at(-1) !== "removed") throw new Error(`life ${life} of ${session}: ${errors}`);
  return { isKilled, said };
}

/** A small generator, so that a failing run can be repeated by its seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

/** A phase that the session has ahead. */
function phaseAhead(lines: ReadonlySet<string>, random: () => number): Phase {
  if (lines.has("removing")) return random() < 0.5 ? "files" : "removal";
  const begin = lines.has("open") ? "return" : "creation";
  const phases: readonly Phase[] = [begin, begin, begin, "work", "commit", "commit", "removal", "files"];
  return phases[Math.floor(random() * phases.length)] ?? begin;
}

type Kills = Record<Phase, number>;
const sum = (kills: Kills): number => Object.values(kills).reduce((total, count) => total + count, 0);

/**
 * A session in lives, each of which is killed, until its worktree is removed. Then each write that it said is
 * looked for.
 */
async function killedSession(
  project: Project,
  session: string,
  kills: Kills,
  random: () => number,
): Promise<void> {
  const lines = new Set<string>();
  const wrote: string[] = [];
  for (let life = 0; !lines.has("removed"); life++) {
    const isLast = life >= KILLS_OF_SESSION || sum(kills) >= KILLS;
    const phase = isLast ? undefined : phaseAhead(lines, random);
    const { said, isKilled } = await live(project, session, life, phase, random);
    for (const line of said) {
      lines.add(line);
      if (line.startsWith("wrote ")) wrote.push(`${line.slice(6)}:${session} ${life} ${line.slice(6)}`);
    }
    if (!isKilled || phase === undefined) continue;
    kills[phase]++;
    if (isCampaign && sum(kills) % 50 === 0) console.log(`${sum(kills)} kills`);
    await project.ageLocks();
  }
  expect(existsSync(join(project.worktrees, session))).toBe(false);
  const kept = `refs/holdfast/rescue/${session}`;
  expect(await project.rescued(kept)).toEqual(expect.arrayContaining(wrote));
  const branch = (await project.git("rev-parse", `holdfast/${session}`)).trim();
  expect(await project.git("rev-list", kept)).toContain(branch);
  expect(await project.git("status", "--porcelain")).toBe("");
  expect(readFileSync(join(project.folder, "known.txt"), "utf8")).toBe("base\n");
}

test(
  "a kill at any moment of the creation, the work or the removal loses no byte of a worktree",
  { ...ofCampaign, timeout: 36_000_000 },
  async () => {
    const seed = Number(process.env["HOLDFAST_SEED"] ?? Date.now() % 1_000_000);
    if (isCampaign) console.log(`seed ${seed}`);
    const kills: Kills = { creation: 0, return: 0, work: 0, commit: 0, removal: 0, files: 0 };
    let sessions = 0;
    const works = Array.from({ length: PROJECTS }, async (_, i) => {
      const project = new Project(i);
      const random = randomOf(seed + i);
      for (let number = 0; sum(kills) < KILLS; number++) {
        await killedSession(project, `s${number}`, kills, random);
        sessions++;
      }
      for (const folder of [project.folder, join(project.folder, "lib")])
        expect((await project.git("-C", folder, "worktree", "list")).trim().split("\n")).toHaveLength(1);
    });
    await Promise.all(works);
    expect(sum(kills), `seed ${seed}`).toBeGreaterThanOrEqual(KILLS);
    if (isCampaign) console.log(`${JSON.stringify(kills)} kills in ${sessions} sessions`);
  },
);
