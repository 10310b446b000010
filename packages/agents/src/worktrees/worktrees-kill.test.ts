// Kills around the creation, the use and the removal of worktrees. A write that was acknowledged before a kill must be in the worktree
// or in a commit that a ref reaches.

import { execFileSync, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";

import { Worktrees } from "./worktrees.ts";

/** The kills of the campaign, and of a run of this file alone. `npm test` leaves them out. */
const KILLS = isCampaign ? Number(process.env["HOLDFAST_KILLS"] ?? 1_000) : 2;
/** Projects at the same time. The lock of a git that was killed makes its project wait for ten seconds, and the others go on. */
const PROJECTS = isCampaign ? 12 : 1;
const LIVES_MAX = 4;
const LIFE = fileURLToPath(new URL("../testing/worktree-life.ts", import.meta.url));

let place: string;

beforeEach(() => void (place = realpathSync(mkdtempSync(join(tmpdir(), "worktrees-kill-")))));
afterEach(() => rmSync(place, { recursive: true, force: true }));

/** A repository with one commit, and the folder of its worktrees. */
class Project {
  readonly folder: string;
  readonly worktrees: string;

  constructor(number: number) {
    this.folder = join(place, `project-${number}`);
    this.worktrees = join(place, `worktrees-${number}`);
    mkdirSync(this.folder);
    this.git("init", "--quiet", "--initial-branch=main");
    writeFileSync(join(this.folder, "known.txt"), "base\n");
    writeFileSync(join(this.folder, ".gitignore"), "*.log\n");
    this.git("add", "--all");
    this.git("-c", "user.name=T", "-c", "user.email=t@example.invalid", "commit", "--quiet", "-m", "base");
  }

  git(...args: readonly string[]): string {
    const env = { PATH: process.env["PATH"], HOME: place };
    const stdio = ["ignore", "pipe", "ignore"] as const;
    return execFileSync("git", args, { cwd: this.folder, encoding: "utf8", env, stdio: [...stdio] });
  }
}

interface Life {
  /** Files that it said to have written. */
  readonly wrote: readonly string[];
  readonly said: readonly string[];
  /** False if it ended before the kill. */
  readonly isKilled: boolean;
}

/** Runs one life, and kills it some time after a line of its output. */
async function live(
  { folder, worktrees }: Project,
  session: string,
  life: number,
  killAfter: string | undefined,
  random: () => number,
): Promise<Life> {
  const child = spawn(process.execPath, [LIFE, folder, worktrees, session, String(life)], {
    detached: true,
    env: { PATH: process.env["PATH"], HOME: place },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const ended = new Promise((resolve) => child.on("close", resolve));
  const isWithGit = random() < 0.5;
  let isChosen = false;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
    if (isChosen || killAfter === undefined || !out.includes(killAfter)) return;
    isChosen = true;
    void delay(random() * 150).then(() => {
      try {
        process.kill(isWithGit ? -child.pid! : child.pid!, "SIGKILL");
      } catch {
        // It has ended.
      }
    });
  });
  await ended;
  const said = out.split("\n").slice(0, -1);
  const isKilled = child.signalCode === "SIGKILL";
  if (!isKilled && said.at(-1) !== "removed") throw new Error(`life ${life} of ${session}: ${errors}`);
  return {
    isKilled,
    said,
    wrote: said.flatMap((line) => (line.startsWith("wrote ") ? [line.slice(6)] : [])),
  };
}

/** Lives again while the lock of a git that was killed is there. A life takes it away when it is old. */
async function liveUnlocked(run: () => Promise<Life>): Promise<Life | Error> {
  for (;;) {
    const lived = await run().catch((error: unknown) => error as Error);
    if (!(lived instanceof Error && lived.message.includes("another git is working"))) return lived;
    await delay(2_000);
  }
}

/** A small generator, so that a failing run can be repeated by its seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

const MOMENTS = ["start", "open", "committed", "wrote work/open"];

/** A session in lives, each of which is killed, until its worktree is removed. Then each write that it said is looked for. */
async function killedSession(
  project: Project,
  session: string,
  kills: { done: number },
  random: () => number,
): Promise<void> {
  const wrote = new Map<string, string>();
  for (let life = 0; ; life++) {
    const isLast = life >= LIVES_MAX || kills.done >= KILLS;
    const moment = isLast ? undefined : MOMENTS[Math.floor(random() * MOMENTS.length)];
    const lived = await liveUnlocked(() => live(project, session, life, moment, random));
    if (lived instanceof Error) {
      // A removal that had begun is finished by the next one, and the session does not get the worktree again.
      expect(lived.message).toContain("was removed");
      await new Worktrees({ folder: project.worktrees }).remove(project.folder, session, { rescues: true });
      break;
    }
    for (const name of lived.wrote) wrote.set(name, `${session} ${life} ${name}\n`);
    if (lived.isKilled) kills.done++;
    if (isCampaign && lived.isKilled && kills.done % 50 === 0) console.log(`${kills.done} kills`);
    if (lived.said.includes("removed")) break;
  }
  expect(existsSync(join(project.worktrees, session))).toBe(false);
  const kept = project.git("rev-parse", `refs/holdfast/rescue/${session}`).trim();
  for (const [name, text] of wrote) expect(project.git("show", `${kept}:${name}`)).toBe(text);
  expect(project.git("rev-list", kept)).toContain(project.git("rev-parse", `holdfast/${session}`).trim());
  expect(project.git("status", "--porcelain")).toBe("");
  expect(readFileSync(join(project.folder, "known.txt"), "utf8")).toBe("base\n");
}

test(
  "a kill at any moment of the creation, the work or the removal loses no byte of a worktree",
  { ...ofCampaign, timeout: 36_000_000 },
  async () => {
    const seed = Number(process.env["HOLDFAST_SEED"] ?? Date.now() % 1_000_000);
    if (isCampaign) console.log(`seed ${seed}`);
    const kills = { done: 0 };
    let sessions = 0;
    const works = Array.from({ length: PROJECTS }, async (_, i) => {
      const project = new Project(i);
      const random = randomOf(seed + i);
      for (let number = 0; kills.done < KILLS; number++) {
        await killedSession(project, `s${number}`, kills, random);
        sessions++;
      }
      expect(project.git("worktree", "list").trim().split("\n")).toHaveLength(1);
    });
    await Promise.all(works);
    expect(kills.done, `seed ${seed}`).toBeGreaterThanOrEqual(KILLS);
    if (isCampaign) console.log(`${kills.done} kills in ${sessions} sessions`);
  },
);
