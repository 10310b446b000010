// The tree of a draft is the one that `git add --all` would make, whatever an agent has done to its files.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";
import { Worktrees } from "../worktrees.ts";

/** The same acts each time, apart from the campaign. */
const HOW = isCampaign ? { numRuns: 200 } : { numRuns: 8, seed: 1 };

const NAMES = [
  "a",
  "b.txt",
  "dir",
  "dir/c",
  "dir/d e",
  "x/y/z",
  "ü",
  "-q",
  "[a]*",
  "new\nline",
  "i.log",
  "A",
];
const KINDS = ["write", "remove", "link", "mode", "stage", "intend", "commit", "skip", "assume"] as const;
const acts = fc.array(fc.record({ kind: fc.constantFrom(...KINDS), name: fc.constantFrom(...NAMES) }), {
  maxLength: 10,
});

function git(folder: string, ...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

function act(path: string, { kind, name }: { readonly kind: (typeof KINDS)[number]; readonly name: string }) {
  const at = join(path, name);
  switch (kind) {
    case "write":
      mkdirSync(dirname(at), { recursive: true });
      return writeFileSync(at, `${kind}\n`);
    case "remove":
      return rmSync(at, { recursive: true, force: true });
    case "link":
      rmSync(at, { recursive: true, force: true });
      mkdirSync(dirname(at), { recursive: true });
      return symlinkSync(name === "dir" ? "a" : "b.txt", at);
    case "mode":
      return chmodSync(at, 0o755);
    case "stage":
      return git(path, "add", "--all");
    case "intend":
      return git(path, "add", "--intent-to-add", "--", name);
    case "commit":
      return git(path, "commit", "--quiet", "--all", "-m", "more");
    case "skip":
      return git(path, "update-index", "--skip-worktree", "--", name);
    case "assume":
      return git(path, "update-index", "--assume-unchanged", "--", name);
  }
}

/** A repository with some files, and the worktree of a session. */
async function openWorktree(place: string) {
  const project = join(place, "project");
  mkdirSync(join(project, "dir"), { recursive: true });
  for (const [name, text] of Object.entries({
    a: "1\n",
    "b.txt": "b\n",
    "dir/c": "c\n",
    ".gitignore": "*.log\n",
  }))
    writeFileSync(join(project, name), text);
  git(project, "init", "--quiet", "--initial-branch=main");
  git(project, "config", "user.name", "T");
  git(project, "config", "user.email", "t@example.invalid");
  git(project, "add", "--all");
  git(project, "commit", "--quiet", "-m", "first");
  const worktrees = new Worktrees({
    folder: join(place, "data"),
    environment: { ...process.env, HOME: place },
  });
  const { path } = await worktrees.open({ project, session: "s" });
  return { project, worktrees, path };
}

test("the work that is shown and merged is all that git would add, and the index stays as it is", async () => {
  await fc.assert(
    fc.asyncProperty(acts, async (done) => {
      const place = realpathSync(mkdtempSync(join(tmpdir(), "drafts-")));
      try {
        const { project, worktrees, path } = await openWorktree(place);
        for (const one of done)
          try {
            act(path, one);
          } catch {
            // Git and the disk refuse some of it, such as a file below a file.
          }
        const index = git(path, "rev-parse", "--path-format=absolute", "--git-path", "index").trim();
        const stateOf = () => createHash("sha256").update(readFileSync(index)).digest("hex");
        const copy = join(place, "index");
        copyFileSync(index, copy);
        const env = { ...process.env, GIT_INDEX_FILE: copy };
        execFileSync("git", ["add", "--all"], { cwd: path, env, stdio: "ignore" });
        const tree = execFileSync("git", ["write-tree"], { cwd: path, env, encoding: "utf8" }).trim();

        const before = stateOf();
        const work = await worktrees.work(project, "s", "");
        expect(stateOf()).toBe(before);
        expect(work?.tree).toBe(tree);
        await worktrees.merge(project, "s", { merge: "m", commit: "c", revision: work!.revision! });
        for (const folder of [project, path]) {
          expect(git(folder, "rev-parse", "HEAD^{tree}").trim()).toBe(tree);
          expect(git(folder, "status", "--porcelain")).toBe("");
        }
      } finally {
        rmSync(place, { recursive: true, force: true });
      }
    }),
    { ...HOW, examples: [[[{ kind: "link", name: "dir" }]]] },
  );
});
