// A program that tests kill: it opens the worktree of a session, works in it, and removes it. Each line of its output is a fact.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worktrees } from "../worktrees/worktrees.ts";

const [project = "", data = "", session = "", life = ""] = process.argv.slice(2);
const worktrees = new Worktrees({ folder: data });

const say = (line: string): void => void process.stdout.write(`${line}\n`);

say("start");
const { path } = await worktrees.open({ project, session });
say("open");
mkdirSync(join(path, "work"), { recursive: true });
for (const name of ["known.txt", `work/new-${life}.txt`, `work/ignored-${life}.log`]) {
  writeFileSync(join(path, name), `${session} ${life} ${name}\n`);
  say(`wrote ${name}`);
}
await worktrees.commit(project, session, `life ${life}`);
say("committed");
writeFileSync(join(path, `work/open-${life}.txt`), `${session} ${life} work/open-${life}.txt\n`);
say(`wrote work/open-${life}.txt`);
await worktrees.remove(project, session, { rescues: true });
say("removed");
