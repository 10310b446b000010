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
const LIVES_MAX = 4;
const LIFE = fileURLToPath(new URL("../testing/worktree-life.ts", import.meta.url));

let place: string;
let project: string;
let data: string;

beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "worktrees-kill-")));
  [project, data] = [join(place, "project"), join(place, "data")];
  mkdirSync(project);
  git("init", "--quiet", "--initial-branch=main");
  writeFileSync(join(project, "known.txt"), "base\n");
  writeFileSync(join(project, ".gitignore"), "*.log\n");
  git("add", "--all");
  git("-c", "user.name=T", "-c", "user.email=t@example.invalid", "commit", "--quiet", "-m", "base");
});

afterEach(() => rmSync(place, { recursive: true, force: true }));

function git(...args: readonly string[]): string {
  const env = { PATH: process.env["PATH"], HOME: place };
  return execFileSync("git", args, {
    cwd: project,
    encoding: "utf8",
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
}

interface Life {
  /** Files that it said to have written. */
  readonly wrote: readonly string[];
  readonly said: readonly string[];
}

/** Runs one life, and kills it some time after a line of its output. */
async function live(
  session: string,
  life: number,
  killAfter: string | undefined,
  random: () => number,
): Promise<Life> {
  const child = spawn(process.execPath, [LIFE, project, data, session, String(life)], {
    detached: true,
    env: { PATH: process.env["PATH"], HOME: place },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const ended = new Promise((resolve) => child.on("close", resolve));
  const isWithGit = random() < 0.5;
  let isKilled = false;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
    if (isKilled || killAfter === undefined || !out.includes(killAfter)) return;
    isKilled = true;
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
  if (!isKilled && said.at(-1) !== "removed") throw new Error(`life ${life} of ${session}: ${errors}`);
  return { said, wrote: said.flatMap((line) => (line.startsWith("wrote ") ? [line.slice(6)] : [])) };
}

/** A small generator, so that a failing run can be repeated by its seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

// In a kill the lock of a git may stay, and then the test waits until it is old.
test(
  "a kill at any moment of the creation, the work or the removal loses no byte of a worktree",
  { ...ofCampaign, timeout: 36_000_000 },
  async () => {
    const seed = Number(process.env["HOLDFAST_SEED"] ?? Date.now() % 1_000_000);
    const random = randomOf(seed);
    const moments = ["start", "open", "committed", "wrote work/open"];
    for (let kills = 0, number = 0; kills < KILLS; number++) {
      const session = `s${number}`;
      const wrote = new Map<string, string>();
      for (let life = 0; ; life++) {
        const isLast = life >= LIVES_MAX || kills >= KILLS;
        const moment = isLast ? undefined : moments[Math.floor(random() * moments.length)];
        const lived = await live(session, life, moment, random).catch((error: unknown) => error as Error);
        if (lived instanceof Error && lived.message.includes("another git is working")) {
          await delay(10_000); // The lock of a git that was killed is taken away when it is old.
          continue;
        }
        if (lived instanceof Error) {
          // A removal that had begun is finished by the next one, and the session does not get the worktree again.
          expect(lived.message, `seed ${seed}`).toContain("was removed");
          await new Worktrees({ folder: data }).remove(project, session, { rescues: true });
          break;
        }
        for (const name of lived.wrote) wrote.set(name, `${session} ${life} ${name}\n`);
        if (!isLast) kills++;
        if (lived.said.includes("removed")) break;
      }
      expect(existsSync(join(data, session)), `seed ${seed}`).toBe(false);
      const branch = `holdfast/${session}`;
      const kept = git("rev-parse", `refs/holdfast/rescue/${session}`).trim();
      for (const [name, text] of wrote) expect(git("show", `${kept}:${name}`), `seed ${seed}`).toBe(text);
      expect(git("rev-list", kept)).toContain(git("rev-parse", branch).trim());
      expect(git("status", "--porcelain")).toBe("");
      expect(readFileSync(join(project, "known.txt"), "utf8")).toBe("base\n");
    }
    expect(git("worktree", "list").trim().split("\n")).toHaveLength(1);
  },
);
