// The scripts of `holdfast completion`, each read by the shell that it is for.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectError } from "../testing/expect-error.ts";
import { Project } from "../testing/holdfast-process.ts";

/** A command line up to the word that is completed, and some of what may stand there. */
const CASES: readonly (readonly [
  words: readonly string[],
  has: readonly string[],
  not: readonly string[],
])[] = [
  [["resu"], ["result", "resume"], ["run"]],
  [["help", "sched"], ["schedule"], []],
  [["agents", "in"], ["install"], ["list"]],
  [
    ["agents", "show", "--"],
    ["--trust", "--json"],
    ["--registry", "--catalogue"],
  ],
  [["agents", "install", "x", "--"], ["--registry", "--yes"], ["--trust"]],
  [["local", "logs", "--"], ["--follow"], ["--db", "--agents"]],
  [["mcp", "--"], ["--parent"], ["--check"]],
  [["token", "create", "ada", "--kind", ""], ["admin", "registration", "user"], ["agent.md"]],
  [["schedule", "add", "--run", "agen"], ["agent.md"], []],
  [["runner", "--agents", "agent.md", "agen"], ["agent.md"], []],
  [["import", "agen"], ["agent.md"], []],
  [["completion", ""], ["bash", "zsh", "fish"], ["agent.md"]],
  [["list", "agen"], [], ["agent.md"]],
];

const BASH = `
. ./script
[[ $(complete -p holdfast) == "complete -F _holdfast holdfast" ]] || exit 9
COMP_WORDS=(holdfast "$@")
COMP_CWORD=$#
_holdfast
printf '%s\\n' "\${COMPREPLY[@]}"
`;

/** The real functions of zsh ask a terminal; these write what they are asked to offer, without the prefix's test. */
const ZSH = `
autoload -Uz compinit && compinit -D -u
. ./script
[[ $_comps[holdfast] == _holdfast ]] || exit 9
compadd() { local w; for w in "\${@:2}"; do [[ $w == "\${words[CURRENT]}"* ]] && print -r -- $w; done }
_files() { print -rl -- \${words[CURRENT]}*(N) }
words=(holdfast "$@")
CURRENT=$#words
_holdfast
exit 0
`;

const FISH = `
source ./script
complete -C "holdfast $argv" | string replace -r '\\t.*' ''; or true
`;

const project = new Project();
beforeAll(() => writeFileSync(project.path("agent.md"), ""));
afterAll(() => project.dispose());

describe.each([
  ["bash", ["-c", BASH, "bash"]],
  ["zsh", ["-f", "-c", ZSH, "zsh"]],
  ["fish", ["--no-config", "-c", FISH, "--"]],
])("completion in %s", (shell, args) => {
  const isThere = spawnSync(shell, ["--version"]).status === 0;

  test("the command writes the script", async () => {
    const { code, stdout, stderr } = await project.run("completion", shell);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(`Completion of holdfast for ${shell}`);
    writeFileSync(project.path("script"), stdout);
  });

  test.for(CASES)("after %j", ([words, has, not], t) => {
    if (!isThere) t.skip(`${shell} is not installed here`);
    const { status, stdout, stderr } = spawnSync(shell, [...args, ...words], {
      cwd: project.path("."),
      encoding: "utf8",
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const lines = stdout.split("\n").filter((line) => line !== "");
    expect(lines).toEqual(expect.arrayContaining([...has]));
    for (const word of not) expect(lines).not.toContain(word);
  });
});

test("another shell is refused by name", async () => {
  expectError(await project.run("completion", "tcsh"), 2, "E_USAGE", ["tcsh", "bash, zsh, fish"]);
  expectError(await project.run("completion"), 2, "E_USAGE", ["the shell is missing", "bash, zsh, fish"]);
});

test("--json has the script as a text", async () => {
  const json = (await project.json("completion", "bash")) as { readonly script: string };
  expect(json).toMatchObject({ shell: "bash", script: expect.stringContaining("complete -F") });
});
