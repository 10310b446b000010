// Commands of other tools become messages: found by their names, filled in, and without any right.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentPlaces } from "../places/agent-places.ts";
import { filledIn, type CommandTool } from "./fill-arguments.ts";
import { commandDescription, commandNamed, expandCommand, findCommands } from "./find-commands.ts";

let folder: string;
let places: AgentPlaces;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-commands-")));
  const [project, home] = [join(folder, "p"), join(folder, "h")];
  mkdirSync(project);
  mkdirSync(home);
  places = { project, home, env: {}, trustFile: join(home, "trusted-folders.json"), trustsProject: true };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}
const expand = (name: string, given = "") => {
  const command = commandNamed(name, findCommands(places));
  if (command === undefined) throw new Error(`no command ${name}`);
  return expandCommand(command, given, places);
};

test("commands of each tool are found by their names, and the project goes before the user", () => {
  write("p/.claude/commands/ship.md", "Ship $ARGUMENTS.");
  write("p/.claude/commands/git/commit.md", "Commit.");
  write("p/.opencode/command/test.md", "Test.");
  write("p/.gemini/commands/git/plan.toml", 'prompt = "Plan."\n');
  write("p/.github/prompts/form.prompt.md", "Form.");
  write("h/.codex/prompts/review.md", "Review.");
  write("h/.claude/commands/ship.md", "Ship nothing.");
  write(
    "p/.claude/skills/deploy/SKILL.md",
    "---\ndescription: d\ndisable-model-invocation: true\n---\nDeploy $1.",
  );
  write("p/.claude/skills/hidden/SKILL.md", "---\ndescription: d\nuser-invocable: false\n---\nHidden.");
  write("p/.claude/commands/deploy.md", "Not this one.");
  const found = findCommands(places);
  expect(found.map(({ name, tool, scope }) => `${scope} ${tool} ${name}`)).toEqual([
    "project skill deploy",
    "project claude ship",
    "project claude git:commit",
    "project opencode test",
    "project gemini git:plan",
    "project copilot form",
    "user codex review",
  ]);
  expect(expand("ship", "it")).toEqual({ text: "Ship it.", notes: [] });
  expect(expand("commit")).toMatchObject({ text: "Commit." });
  expect(expand("deploy", "now")).toMatchObject({
    text: expect.stringMatching(/^Deploy now\.\n\n\(Other files/),
  });
  expect(commandNamed("git", found)).toBeUndefined();
});

test("files of a project that is not trusted are found and say so, and a link out of it is not read", () => {
  write("p/.claude/commands/ship.md", "Ship.");
  write("outside.md", "A secret.");
  symlinkSync(join(folder, "outside.md"), join(folder, "p/.claude/commands/out.md"));
  expect(findCommands({ ...places, trustsProject: false }).map(({ isTrusted }) => isTrusted)).toEqual([
    false,
    false,
  ]);
  expect(expand("out")).toMatch(/link that leads out of the project/);
});

test("a command of a project that is not trusted hides none of the user, by its whole or its short name", () => {
  write("p/.claude/commands/review.md", "Evil.");
  write("p/.claude/commands/plan.md", "Evil.");
  write("h/.codex/prompts/review.md", "Review.");
  write("h/.claude/commands/git/plan.md", "Plan.");
  const of = (trustsProject: boolean, name: string) =>
    commandNamed(name, findCommands({ ...places, trustsProject }))?.scope;
  expect([of(false, "review"), of(false, "plan"), of(true, "review")]).toEqual(["user", "user", "project"]);
});

test("rights, models and shell commands of a file have no effect, and the message says what was not run", () => {
  write(
    "p/.claude/commands/ship.md",
    "---\ndescription: Ships.\nallowed-tools: Bash(*)\nmodel: opus\n---\nState: !`git status`\nRead @a.txt.\n",
  );
  expect(expand("ship")).toEqual({
    text: "State: !`git status`\nRead @a.txt.\n\n(Shell commands behind ! in this text were not run. Run those that you need.)",
    notes: [
      "allowed-tools, model of the file: without effect, the agent's own rights hold",
      expect.stringContaining("commands behind ! are not run"),
    ],
  });
  expect(commandDescription(findCommands(places)[0]!)).toBe("Ships.");
  write(
    "p/.claude/commands/ship.md",
    "---\ndescription: Ships: all\nargument-hint: [a] [b]\n---\nShip $1.\n",
  );
  expect(expand("ship", "it")).toEqual({ text: "Ship it.", notes: [] });
  write("p/.gemini/commands/bad.toml", "prompt = ");
  expect(expand("bad")).toMatch(/it is no TOML/);
  write("p/.gemini/commands/none.toml", 'description = "d"\n');
  expect(expand("none")).toMatch(/it has no text/);
});

describe("arguments", () => {
  test.each<readonly [tool: CommandTool, text: string, typed: string, filled: string]>([
    ["claude", "All: $ARGUMENTS!", 'a "b c"', 'All: a "b c"!'],
    ["claude", "$1, then $2.", 'a "b c"', "a, then b c."],
    ["claude", "$0, then $1.", "a b", "a, then b."],
    ["claude", "$ARGUMENTS[1]", "a b", "b"],
    ["claude", "It costs $5 or $1.50.", "", "It costs $5 or $1.50."],
    ["claude", "Fix $1 and $2.", "a", "Fix a and $2."],
    ["claude", "No place.", "a b", "No place.\n\nARGUMENTS: a b"],
    ["claude", "$1", "'$2 $ARGUMENTS' b", "$2 $ARGUMENTS"],
    ["claude", "$HOME $$ $1", "a", "$HOME $$ a"],
    ["claude", "$1", "it's", "it's"],
    ["opencode", "$1/$2", "a b", "a/b"],
    ["codex", "$FILE costs $$5, $HOME", 'FILE="a b"', "a b costs $5, $HOME"],
    ["codex", "$1 of $ARGUMENTS", "a b", "a of a b"],
    ["gemini", "Do {{args}}.", "$1 {{args}}", "Do $1 {{args}}."],
    ["gemini", "Do it.", "now", "Do it.\n\nARGUMENTS: now"],
    ["copilot", "Form ${input:name:a name} in ${file}", "of mine", "Form of mine in ${file}"],
    ["copilot", "${input:a}, ${input:b:hint}", "b=2 a=1", "1, 2"],
  ])("%s: %s with %s", (tool, text, typed, filled) => {
    expect(filledIn(text, tool, typed)).toBe(filled);
  });

  test("an input of Copilot that is missing is named", () => {
    write("p/.github/prompts/form.prompt.md", "${input:a} ${input:b}");
    expect(expand("form", "a=1")).toBe("it needs the argument b: write b=VALUE behind the command");
  });
});
