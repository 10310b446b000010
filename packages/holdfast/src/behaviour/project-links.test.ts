// Links in a cloned project: no command writes through them to a place outside.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import { expectError } from "../testing/expect-error.ts";
import { Project } from "../testing/holdfast-process.ts";

const project = new Project();
const outside = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-outside-")));
afterAll(async () => {
  await project.dispose();
  rmSync(outside, { recursive: true });
});
beforeEach(() => {
  rmSync(project.path("clone"), { recursive: true, force: true });
  project.write("clone/.git/HEAD", "ref: refs/heads/main\n");
  project.write(
    "clone/.claude/agents/imported.md",
    "---\nname: imported\ndescription: Helps.\n---\nYou help.\n",
  );
});

const run = (...args: string[]) => project.finish(args, { folder: "clone" });
const NEW = ["agents", "new", "fresh"];
const IMPORT = ["agents", "import", ".claude/agents/imported.md"];
const SCRIPT = ["script", "new", "words"];
const RUN = ["run", ".claude/agents/imported.md", "go"];

test.each<[link: string, target: string, commands: readonly (readonly string[])[]]>([
  [".holdfast", "", [NEW, IMPORT, SCRIPT, RUN]],
  [".holdfast", "missing", [NEW, SCRIPT, RUN]],
  [".holdfast/agents", "", [NEW, IMPORT]],
  [".holdfast/scripts", "", [SCRIPT]],
  [".holdfast/scripts/words", "missing", [SCRIPT]],
  [".holdfast/agents/fresh.md", "missing", [NEW]],
  [".holdfast/holdfast.db", "missing.db", [RUN]],
])(
  "%s as a link to %j outside of the project is refused, and nothing is written there",
  async (link, target, commands) => {
    project.write("clone/.holdfast/agents/a.txt", "");
    project.write("clone/.holdfast/scripts/a.txt", "");
    rmSync(project.path(`clone/${link}`), { recursive: true, force: true });
    symlinkSync(join(outside, target), project.path(`clone/${link}`));
    for (const command of commands)
      expectError(await run(...command), 3, "E_CONFIG_INVALID", [
        "is a link that leads out of the project",
        link,
      ]);
    expect(readdirSync(outside)).toEqual([]);
  },
);

test("a link inside of the project is no reason to refuse", async () => {
  mkdirSync(project.path("clone/data"));
  symlinkSync("data", project.path("clone/.holdfast"));
  expect((await run(...NEW)).code).toBe(0);
  expect(existsSync(project.path("clone/data/agents/fresh.md"))).toBe(true);
});
