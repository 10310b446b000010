import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Worktrees } from "./worktrees.ts";

test("a worktree that another git has begun to make is no failure, but a matter of waiting", async () => {
  const place = realpathSync(mkdtempSync(join(tmpdir(), "worktrees-")));
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const project = join(place, "project");
  const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: place, stdio: "ignore" });
  git("init", "--quiet", project);
  const author = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
  git("-C", project, ...author, "commit", "--quiet", "--allow-empty", "-m", "first");
  const worktrees = new Worktrees({ folder: join(place, "data") });
  const open = () => worktrees.open({ project, session: "s" });

  const entry = join(project, ".git/worktrees/other");
  mkdirSync(entry, { recursive: true });
  writeFileSync(join(entry, "gitdir"), `${join(place, "other")}/.git\n`);
  writeFileSync(join(entry, "HEAD"), "ref: refs/heads/other\n");
  writeFileSync(join(entry, "commondir"), "");
  await expect(open()).rejects.toMatchObject({ name: "UnavailableError", code: "locked" });
  const opened = open();
  setTimeout(() => writeFileSync(join(entry, "commondir"), "../..\n"), 100);
  expect(await opened).toMatchObject({ branch: "holdfast/s" });
});
