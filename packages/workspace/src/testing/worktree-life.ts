// A program that tests kill: it opens the worktree of a session, works in it, and removes it. Each line of
// its output is a fact. A removal that an earlier life had begun is continued. With a number as the last
// argument, the program kills itself when it has removed so many files. No kill from outside would meet that
// moment.

import fs, { appendFileSync, mkdirSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { HoldfastError } from "@holdfast/core";
import { Worktrees } from "../worktrees/worktrees.ts";

/** Locks that one step may meet. Each try takes away one that a killed git left. */
const TRIES_MAX = 40;
const RETRY_MS = 50;

const [project = "", data = "", session = "", life = "", filesMax] = process.argv.slice(2);
const worktrees = new Worktrees({ folder: data });

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Repeats a step while the repository is locked, as callers are told to. */
async function unlocked<T>(step: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await step();
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "locked" || tries === TRIES_MAX) throw error;
      await delay(RETRY_MS);
    }
  }
}

function killAfter(files: number): void {
  const { unlinkSync } = fs;
  let count = 0;
  fs.unlinkSync = (path) => {
    unlinkSync(path);
    if (++count === files) process.kill(process.pid, "SIGKILL");
  };
  syncBuiltinESMExports();
}

async function work(): Promise<void> {
  const { path } = await unlocked(() => worktrees.open({ project, session }));
  say("open");
  mkdirSync(join(path, "work"), { recursive: true });
  const write = (name: string): void => {
    // The lines of earlier lives stay.
    appendFileSync(join(path, name), `${session} ${life} ${name}\n`);
    say(`wrote ${name}`);
  };
  const names = ["known.txt", `work/new-${life}.txt`, `work/ignored-${life}.log`];
  for (const name of [...names, `lib/new-${life}.txt`, `lib/ignored-${life}.log`]) write(name);
  say("committing");
  await unlocked(() => worktrees.commit(project, session, `life ${life}`));
  say("committed");
  write(`work/open-${life}.txt`);
  write(`lib/open-${life}.txt`);
}

say("start");
try {
  await work();
} catch (error) {
  if (!HoldfastError.is(error) || !error.message.endsWith("was removed")) throw error;
}
say("removing");
if (filesMax !== undefined) killAfter(Number(filesMax));
await unlocked(() => worktrees.remove(project, session, { rescues: true }));
say("removed");
