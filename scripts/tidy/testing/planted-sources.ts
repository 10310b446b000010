// Violations of the rules about the code of sources.

import { classOf, functionOf, type Planted } from "./planted.ts";

const INPUTS = {
  "packages/agents/src/places/project-inputs.ts":
    'export const PROJECT_FILES = { ".known": {} } as const satisfies object;\nexport const VARIABLES = { HOME: "folder" } as const;\n',
};

export const inSources: readonly Planted[] = [
  {
    rule: "thrown-text",
    promise: "what was thrown is read by the one function that never throws",
    wrong: { "packages/runtime/src/a.ts": "try { f(); } catch (error) { say(String(error)); }" },
    right: {
      "packages/runtime/src/a.ts": "try { f(); } catch (error) { say(toError(error).message, String(n)); }",
    },
  },
  {
    rule: "private-file",
    promise: "files of secrets are made in one place",
    wrong: { "packages/runner/src/a.ts": "writeFileSync(path, token, { mode: 0o600 });" },
    right: {
      "packages/runner/src/a.ts": "createPrivate(path, token); writeFileSync(path, text, { mode: 0o644 });",
    },
  },
  {
    rule: "private-file",
    promise: "folders are made in one place",
    wrong: { "packages/runner/src/a.ts": "mkdirSync(path, { recursive: true });" },
    right: { "packages/runner/src/a.ts": "makePrivateFolder(path); mkdirSync(path);" },
  },
  ...[
    'io.env["HOLDFAST_NEW"]',
    "const { NEW_FOLDER: folder } = io.env;",
    'givenBy(env, "NEW_FOLDER")',
    'const NAME = "NEW_FOLDER"; env[NAME];',
    'join(project, ".new", "settings.json")',
  ].map((read): Planted => ({
    rule: "input",
    promise: `what ${read} reads has a row with the trust that it needs`,
    wrong: { "packages/agents/src/a.ts": read, ...INPUTS },
    right: {
      "packages/agents/src/a.ts":
        'io.env["HOME"]; const { HOME } = io.env; givenBy(env, "HOME"); join(project, ".known", "settings.json"); env[name];',
      ...INPUTS,
    },
  })),
  ...['execute(["git", "status"])', 'spawn("git", ["status"])', 'spawn("git", args)'].map(
    (call): Planted => ({
      rule: "git-call",
      promise: `${call} is no call of git that a repository cannot use`,
      wrong: { "packages/agents/src/a.ts": `${call};` },
      right: {
        "packages/agents/src/a.ts":
          'execute(["git", ...gitOptions(false), "status"]); spawn("git", [...gitOptions(false), ...args]); find("git");',
        "packages/agents/src/a.test.ts": `${call};`,
      },
    }),
  ),
  {
    rule: "sqlite-lock",
    promise: "beside SQLite only one file opens files",
    wrong: { "packages/storage/src/sqlite/a.ts": 'import { statSync, openSync } from "node:fs";' },
    right: {
      "packages/storage/src/sqlite/a.ts": 'import { statSync } from "node:fs";',
      "packages/storage/src/sqlite/a.test.ts": 'import { openSync } from "node:fs";',
      "packages/storage/src/sqlite/file/plain-files.ts": 'import { openSync } from "node:fs";',
      "packages/runtime/src/a.ts": 'import { openSync } from "node:fs";',
    },
  },
  ...[
    "Date.now()",
    "new Date(0)",
    "Math.random()",
    "setTimeout(f, 1)",
    "process.pid",
    "fetch(url)",
    "console.log(1)",
  ].map((call): Planted => ({
    rule: "banned-global",
    promise: `core does not use ${call}`,
    wrong: { "packages/core/src/a.ts": `export const a = () => ${call};` },
    right: { "packages/core/src/a.test.ts": `export const a = () => ${call};` },
  })),
  {
    rule: "banned-global",
    promise: "a property, a type and a comment of that name are no use of it",
    wrong: { "packages/core/src/a.ts": "const { fetch = 1, now = Date.now } = {};" },
    right: {
      "packages/core/src/a.ts":
        "// Date.now() is for others\nexport type T = { process: Date };\nexport const f = (t: T, d: unknown) => [t.process, d instanceof Date];",
    },
  },
  {
    rule: "banned-global",
    promise: "only the command reads the environment",
    wrong: { "packages/runtime/src/a.ts": "export const home = process.env.HOME;" },
    right: { "packages/holdfast/src/a.ts": "export const home = process.env.HOME;" },
  },
  {
    rule: "old-node",
    promise: "no syntax that Node 22 cannot parse",
    wrong: { "examples/01/a.ts": "export const f = async () => { await using server = await start(); };" },
    right: { "examples/01/a.ts": "export const using = 1; const kind = 'using';" },
  },
  {
    rule: "glossary",
    promise: "a banned word inside a name of ours",
    wrong: { "packages/core/src/a.ts": "export class SessionManager {}" },
    right: { "packages/core/src/a.ts": "export const utilization = 1; export const simple = x.helper;" },
  },
  {
    rule: "glossary",
    promise: "a banned word as a file's name",
    wrong: { "packages/core/src/string-utils.ts": "" },
  },
  ...["const told = 1;", "class A { #goOn() {} }", "function letGoOf() {}", "interface Heir {}"].map(
    (code): Planted => ({
      rule: "glossary",
      promise: `a home-made word in a name, as in ${code}`,
      wrong: { "packages/core/src/a.ts": code },
      right: { "packages/core/src/a.ts": 'export interface TellSession { go: "told"; on: x.heard; let: 1 }' },
    }),
  ),
  {
    rule: "glossary",
    promise: "a home-made word as a file's name",
    wrong: { "packages/core/src/told-again.ts": "" },
  },
  {
    rule: "size",
    promise: "a source of more than 450 lines",
    wrong: { "packages/core/src/a.ts": "\n".repeat(451) },
    right: { "packages/core/src/a.ts": "\n".repeat(450) },
  },
  ...[
    functionOf(81),
    `const a = ${functionOf(81).replace("export ", "")};`,
    `const a = () => {${"\n".repeat(80)}};`,
  ].map((wrong): Planted => ({
    rule: "size",
    promise: `a function of more than 80 lines, as in ${wrong.slice(0, 20).trimEnd()}`,
    wrong: { "packages/core/src/a.ts": wrong },
    right: {
      "packages/core/src/a.ts": functionOf(80),
      "packages/core/src/a.test.ts": wrong,
      "packages/core/src/testing/a.ts": wrong,
      "packages/core/src/behaviour/a.ts": wrong,
      "packages/testkit/src/a.ts": wrong,
      "packages/simulator/src/a.ts": wrong,
      "scripts/a.ts": wrong,
    },
  })),
  ...(
    [
      [
        "16 fields",
        classOf(16, (index) => `readonly f${index}: string;`),
        classOf(15, (index) => `#f${index} = 1;`),
      ],
      [
        "four booleans",
        classOf(4, (index) => `#f${index} = false;`),
        classOf(3, (index) => `f${index}?: boolean;`),
      ],
      [
        "26 methods",
        classOf(26, (index) => `m${index}() {}`),
        classOf(25, (index) => `get m${index}() { return 1; }`),
      ],
      [
        "26 methods beside the calls of its service",
        classOf(26, (index) => `#m${index}() {}`).replace("{", "implements ServiceImpl<typeof Contract> {"),
        classOf(26, (index) => `m${index}() {}`).replace("{", "implements ServiceImpl<typeof Contract> {"),
      ],
    ] as const
  ).map(([promise, wrong, right]): Planted => ({
    rule: "size",
    promise: `a class with ${promise}`,
    wrong: { "packages/core/src/a.ts": wrong },
    right: { "packages/core/src/a.ts": right },
  })),
  {
    rule: "skip",
    promise: "a skip says why, on its line or above it",
    wrong: { "packages/core/src/a.test.ts": 'test.skipIf(isOld)("x", () => {});' },
    right: {
      "packages/core/src/a.test.ts":
        '// needs strace\ntest.skipIf(isOld)("x", () => {});\n\nit.skip("z", f); // slow\ntest("y", (t) => t.skip("no strace"));',
    },
  },
  {
    rule: "todo",
    promise: "what is left for later links a decision",
    wrong: { "packages/core/src/a.ts": "// TODO: later" },
    right: { "packages/core/src/a.ts": '// TODO: later, docs/decisions/0007-later.md\nconst a = "TODO";' },
  },
  {
    rule: "todo",
    promise: "what is known to be broken does not go in, linked or not",
    wrong: { "packages/core/src/a.ts": "// FIXME: docs/decisions/0007-later.md" },
  },
  ...(
    [
      [
        "a timer that sets itself again",
        "class A {\n  #look() {\n    clock.setTimer(() => void this.#look().then(() => this.#wait()), 9);\n  }\n  #wait() {\n    this.#look();\n  }\n}",
      ],
      [
        "an alarm whose callback sets it again",
        "class A {\n  #again = alarm(() => this.#look());\n  #look() {\n    timers.after(this.#again, 9);\n  }\n}",
      ],
      [
        "an endless loop that waits",
        "async function a() {\n  for (;;) {\n    await look();\n    await pause(9);\n  }\n}",
      ],
      [
        "a loop until a signal that waits",
        "async function a() {\n  while (!signal.aborted) {\n    await look();\n    await sleep(9);\n  }\n}",
      ],
      ["an interval of work that may fail", "setInterval(() => void look().catch(() => {}), 9);"],
    ] as const
  ).map(([promise, wrong]): Planted => ({
    rule: "own-loop",
    promise: `${promise} is found`,
    wrong: { "packages/runtime/src/a.ts": wrong },
    right: {
      "packages/runtime/src/a.ts":
        "repeat({ clock, look, pauseMs });\nclock.setTimer(() => end(), 9);\nsetInterval(onNews, 9);\nasync function b() {\n  for (;;) {\n    if ((await read()).length === 0) return;\n  }\n}",
      "packages/simulator/src/a.ts": wrong,
    },
  })),
  {
    rule: "own-loop",
    promise: "a file that has no loop of its own any more is not among the exceptions",
    wrong: { "packages/runtime/src/loop/timers.ts": "export const a = 1;" },
  },
];
