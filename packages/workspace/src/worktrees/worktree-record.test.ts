// Which worktree is that of a session. Ids may come from a coordinator, and agents write files in worktrees.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Worktrees } from "./worktrees.ts";

let place: string;
let project: string;
let worktrees: Worktrees;
beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "worktrees-")));
  project = join(place, "project");
  mkdirSync(project);
  const identity = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
  const git = (...args: readonly string[]) => execFileSync("git", [...identity, ...args], { cwd: project });
  git("init", "--quiet", "--initial-branch=main");
  git("commit", "--quiet", "--allow-empty", "-m", "first");
  worktrees = new Worktrees({ folder: join(place, "data"), environment: { ...process.env, HOME: place } });
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

test("a record that an agent has written in its worktree is the work of no session", async () => {
  const { path } = await worktrees.open({ project, session: "s" });
  const record = readFileSync(`${path}.json`, "utf8").replace('"session": "s"', '"session": "s/planted"');
  writeFileSync(join(path, "planted.json"), record, { mode: 0o600 });
  const refused = { code: "usage", message: "a session id is no path" };
  await expect(worktrees.work(project, "s/planted", "")).rejects.toMatchObject(refused);
  await expect(worktrees.find(project, "s/planted")).rejects.toMatchObject(refused);
  await expect(worktrees.open({ project, session: "s/other" })).rejects.toMatchObject(refused);
});

test("a whole id finds the worktree of exactly its session", async () => {
  await worktrees.open({ project, session: "s-1" });
  expect((await worktrees.find(project, "s")).session).toBe("s-1");
  await expect(worktrees.find(project, "s", "")).rejects.toMatchObject({ code: "not_found" });
  expect((await worktrees.find(project, "s-1", "")).session).toBe("s-1");
});

test("the work of an earlier session of an id is not that of a later one", async () => {
  await worktrees.open({ project, session: "s", owner: "1" });
  expect(await worktrees.work(project, "s", "2")).toBeUndefined();
  await expect(worktrees.find(project, "s", "2")).rejects.toMatchObject({ code: "not_found" });
  expect((await worktrees.work(project, "s", "1"))?.session).toBe("s");
});
