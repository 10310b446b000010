// Bad input is reported in one paragraph, with the right exit code, without a stack and without side effects.
//
// Every wrong line is one process. The error as JSON takes a second process. That one is started once for
// each code, and for every line in the command-lines campaign (`HOLDFAST_CAMPAIGN`).

import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PublicCode } from "@holdfast/terminal/frame/command-error";
import { isCampaign, sampled } from "@holdfast/testkit/campaign";
import { expectError } from "../testing/expect-error.ts";
import { LAUNCHER, Project } from "../testing/holdfast-process.ts";

const AGENT = `import { defineAgent } from "holdfast";
const isText = { "~standard": { version: 1, vendor: "test", validate: (value) =>
  typeof value === "string" ? { value } : { issues: [{ message: "must be a text" }] } } };
export default defineAgent({ name: "good", input: isText, run: async (ctx, input) => {
  if (input === "ask") return ctx.requestInput("Go on?");
  return input;
} });
`;

const FILES: Readonly<Record<string, string>> = {
  "good.ts": AGENT,
  "other.ts": AGENT.replace('"good"', '"other"'),
  "none.ts": "export const x = 1;\n",
  "empty.ts": "",
  "class.mjs": "export default class Agent {}\n",
  "two.ts": `import { defineAgent } from "holdfast";
export const one = defineAgent({ name: "first", run: async () => 1 });
export const two = defineAgent({ name: "second", run: async () => 2 });
`,
  "throws.ts":
    "const a: number = 1;\nfunction load() {\n  throw new Error('no key');\n}\nload();\nexport default a;\n",
  "throws-text.mjs": "throw 'just a text';\n",
  "syntax.mjs": "export const a = 1;\nconst b = ;\n",
  "syntax.ts": "export const a: number = 1;\nconst b: = 1;\n",
  "missing-package.ts": 'import "no-such-package-here";\n',
  "missing-file.ts": 'import "./no-such-file.ts";\n',
  "missing-export.ts": 'import { nothing } from "holdfast";\nexport default nothing;\n',
  "missing-builtin.ts": 'import "node:fs/promise";\n',
  "missing-subpath.ts": 'import "holdfast/nothing";\n',
  "types.ts": "export interface Input {}\n",
  "nameless.ts":
    'import { defineAgent } from "holdfast";\nexport default defineAgent({ name: "", run: async () => 1 });\n',
  "agent.json": "{}",
  "input.json": "{oops",
  "latin1.json": "",
  control: "hf_reg_\u0001x",
};

describe("bad input", () => {
  const project = new Project();
  const codesInJson = new Set<string>();
  beforeAll(() => {
    for (const [name, text] of Object.entries(FILES)) writeFileSync(project.path(name), text);
    writeFileSync(project.path("latin1.json"), Buffer.from([0x22, 0xe9, 0x22]));
    mkdirSync(project.path("folder"));
    symlinkSync("circle.ts", project.path("circle.ts"));
    spawnSync("mkfifo", [project.path("pipe")]);
  });
  afterAll(() => project.dispose());

  const deep = "[".repeat(10_000) + "]".repeat(10_000);

  // These inputs are refused before a session begins, so no database may be made.
  const wrong: readonly [what: string, args: string[], exit: number, code: PublicCode, says: string[]][] = [
    ["an unknown command", ["rnu"], 2, "E_USAGE", ["rnu", "did you mean run?"]],
    ["a file as command", ["good.ts"], 2, "E_USAGE", ["holdfast run good.ts"]],
    ["an option before the command", ["--park", "run"], 2, "E_USAGE", ["the command comes first"]],
    ["an unknown option", ["run", "--agnet", "x"], 2, "E_USAGE", ["--agnet"]],
    ["an option without its value", ["run", "good.ts", "--input"], 2, "E_USAGE", ["--input", "JSON|@file|-"]],
    [
      "options at odds",
      ["run", "good.ts", "--session", "a", "--continue"],
      2,
      "E_USAGE",
      ["--session", "--continue"],
    ],
    [
      "an ephemeral session that parks",
      ["run", "good.ts", "--park", "--ephemeral"],
      2,
      "E_USAGE",
      ["--park", "--ephemeral"],
    ],
    ["config without a verb", ["config"], 2, "E_USAGE", ["get, list, export or import?"]],
    ["config with another verb", ["config", "set", "db", "x"], 2, "E_USAGE", ["set", "get, list, export"]],
    ["config get without a key", ["config", "get"], 2, "E_USAGE", ["the key is missing"]],
    ["a setting that there is not", ["config", "get", "dbb"], 2, "E_USAGE", ["dbb", "did you mean db?"]],
    ["a key too many", ["config", "list", "db"], 2, "E_USAGE", ["one argument too many"]],
    ["no file", ["run"], 2, "E_USAGE", ["the agent's file, or --agent NAME is missing"]],
    ["three arguments", ["run", "good.ts", "a text", "other.ts"], 2, "E_USAGE", ["one argument too many"]],
    ["a session id that cannot be one", ["run", "good.ts", "--session", "a/b"], 2, "E_USAGE", ['"a/b"']],
    ["a missing file", ["run", "nope.ts"], 2, "E_FILE_NOT_FOUND", ["nope.ts"]],
    ["a folder", ["run", "folder"], 3, "E_AGENT_INVALID", ["a folder"]],
    ["another kind of file", ["run", "input.json"], 3, "E_AGENT_INVALID", [".json", ".ts"]],
    ["a file without an agent", ["run", "none.ts"], 3, "E_AGENT_INVALID", ["exports named x", "defineAgent"]],
    ["an empty file", ["run", "empty.ts"], 3, "E_AGENT_INVALID", ["no exports"]],
    ["a class", ["run", "class.mjs"], 3, "E_AGENT_INVALID", ["exports no agent"]],
    ["two agents", ["run", "two.ts"], 3, "E_AGENT_INVALID", ['"first" and "second"']],
    ["a file that throws", ["run", "throws.ts"], 3, "E_AGENT_INVALID", ["no key", "throws.ts:3:9"]],
    ["a file that throws a text", ["run", "throws-text.mjs"], 3, "E_AGENT_INVALID", ["just a text"]],
    ["wrong JavaScript", ["run", "syntax.mjs"], 3, "E_AGENT_INVALID", ["syntax.mjs:2"]],
    ["wrong TypeScript", ["run", "syntax.ts"], 3, "E_AGENT_INVALID", ["syntax.ts:2"]],
    [
      "a package that is not installed",
      ["run", "missing-package.ts"],
      3,
      "E_AGENT_INVALID",
      ["no-such-package-here"],
    ],
    [
      "a file that imports a missing one",
      ["run", "missing-file.ts"],
      3,
      "E_AGENT_INVALID",
      ["no-such-file.ts"],
    ],
    [
      "a module that Node does not have",
      ["run", "missing-builtin.ts"],
      3,
      "E_AGENT_INVALID",
      ["imports something that does not exist", "node:fs/promise", "missing-builtin.ts"],
    ],
    [
      "a part of a package that is not there",
      ["run", "missing-subpath.ts"],
      3,
      "E_AGENT_INVALID",
      ["imports something that does not exist", "./nothing", "missing-subpath.ts"],
    ],
    ["an import that is not exported", ["run", "missing-export.ts"], 3, "E_AGENT_INVALID", ["nothing"]],
    [
      "an agent without a name",
      ["run", "nameless.ts"],
      3,
      "E_AGENT_INVALID",
      ["cannot be the name of an agent"],
    ],
    [
      "input that is not JSON",
      ["run", "good.ts", "--input", "hello"],
      2,
      "E_NOT_JSON",
      ["hello", `'"hello"'`, "line 1, column 1"],
    ],
    [
      "input that does not match",
      ["run", "good.ts", "--input", "7"],
      2,
      "E_INVALID_INPUT",
      ["must be a text", "7"],
    ],
    [
      "an integer that would be another one",
      ["run", "good.ts", "--input", "9007199254740993"],
      2,
      "E_NOT_JSON",
      ["9007199254740992"],
    ],
    [
      "a pipe of a name as input, which may never end",
      ["run", "good.ts", "--input", "@pipe"],
      2,
      "E_FILE_NOT_FOUND",
      ["not a file"],
    ],
    ["a link to itself as agent", ["run", "circle.ts"], 2, "E_FILE_NOT_FOUND", ["circle.ts"]],
    ["a session whose id is empty", ["cancel", ""], 2, "E_USAGE", ["the session's id is missing"]],
    ["a verb that is nearly one", ["schedule", "lst"], 2, "E_USAGE", ["did you mean list?"]],
    ["no input where one is needed", ["run", "good.ts"], 2, "E_INVALID_INPUT", ["must be a text"]],
    ["input that is too deep", ["run", "good.ts", "--input", deep], 2, "E_NOT_JSON", ["64 levels"]],
    [
      "a missing input file",
      ["run", "good.ts", "--input", "@nope.json"],
      2,
      "E_FILE_NOT_FOUND",
      ["nope.json"],
    ],
    ["a folder as input", ["run", "good.ts", "--input", "@folder"], 2, "E_FILE_NOT_FOUND", ["folder"]],
    [
      "an input file that is not JSON",
      ["run", "good.ts", "--input", "@input.json"],
      2,
      "E_NOT_JSON",
      ["input.json", "line 1, column 2"],
    ],
    [
      "an input file that is not UTF-8",
      ["run", "good.ts", "--input", "@latin1.json"],
      2,
      "E_NOT_JSON",
      ["UTF-8"],
    ],
    [
      "an unknown session",
      ["show", "ses_nope"],
      4,
      "E_SESSION_NOT_FOUND",
      ["ses_nope", "holdfast list", "--url URL"],
    ],
    ["resuming an unknown session", ["resume", "ses_nope"], 4, "E_SESSION_NOT_FOUND", ["ses_nope"]],
    ["resuming the last of none", ["resume", "--last"], 4, "E_SESSION_NOT_FOUND", ["no unfinished session"]],
    ["resuming nothing", ["resume"], 2, "E_USAGE", ["--last"]],
    ["resuming two things", ["resume", "ses_a", "--last"], 2, "E_USAGE", ["--last"]],
    ["a signal to nobody", ["signal", "ses_nope", "go"], 4, "E_SESSION_NOT_FOUND", ["ses_nope"]],
    ["a signal without a name", ["signal", "ses_nope"], 2, "E_USAGE", ["the signal's name is missing"]],
    [
      "a signal that is no name",
      ["signal", "ses_nope", " "],
      2,
      "E_USAGE",
      ["cannot be the name of a signal"],
    ],
    ["an answer sent as a signal", ["signal", "ses_nope", "answer:1"], 2, "E_USAGE", ["holdfast answer"]],
    [
      "a payload that is not JSON",
      ["signal", "ses_nope", "go", "{a:1}"],
      2,
      "E_NOT_JSON",
      ["{a:1}", "line 1, column 2"],
    ],
    ["a payload in pieces", ["signal", "ses_nope", "go", "{", "}"], 2, "E_USAGE", ["single quotes"]],
    ["an approval of nothing", ["approve"], 2, "E_USAGE", ["the session (its id, or --last) is missing"]],
    ["an answer that is missing", ["answer", "ses_nope"], 2, "E_USAGE", ["the answer is missing"]],
    ["a question that is no number", ["answer", "ses_nope", "first", "1"], 2, "E_USAGE", ['"first"']],
    ["cancelling nobody", ["cancel", "ses_nope", "--hard"], 4, "E_SESSION_NOT_FOUND", ["ses_nope"]],
    ["a status that is none", ["list", "--status", "wating"], 2, "E_USAGE", ["did you mean waiting?"]],
    ["a limit that is none", ["list", "--limit", "-1"], 2, "E_USAGE", ["-1"]],
    ["listing something", ["list", "x"], 2, "E_USAGE", ['"x"']],
    [
      "a coordinator that is not there",
      ["list", "--url", "http://127.0.0.1:9", "--token-file", "input.json"],
      7,
      "E_UNAVAILABLE",
      ["http://127.0.0.1:9"],
    ],
    [
      "a password in a coordinator's URL",
      ["list", "--url", "http://me:secret@127.0.0.1:9", "--token-file", "input.json"],
      2,
      "E_USAGE",
      ["no password in it"],
    ],
    [
      "a port that is none for a runner's health",
      ["runner", "--agents", "good.ts", "--health-port", "70000"],
      2,
      "E_USAGE",
      ["from 0 to 65535"],
    ],
    [
      "a runner's name that a terminal would not show as it is",
      ["runner", "--agents", "good.ts", "--name", "box\u001b[31m", "--url", "http://127.0.0.1:9"],
      2,
      "E_USAGE",
      ["the runner's name has a control character", "\\u001b"],
    ],
    [
      "a runner's label with a line break",
      ["runner", "--agents", "good.ts", "--label", "zone=eu\nus", "--url", "http://127.0.0.1:9"],
      2,
      "E_USAGE",
      ["the label zone has a control character"],
    ],
    [
      "a token that no header carries",
      ["runner", "--agents", "good.ts", "--token-file", "control"],
      2,
      "E_USAGE",
      ["the token contains"],
    ],
    [
      "a runner's coordinator that is none, by the option that all have",
      ["runner", "--agents", "good.ts", "--url", "nonsense"],
      2,
      "E_USAGE",
      ['"nonsense"'],
    ],
    ["a database that is not there", ["list", "--db", "no/such.db"], 2, "E_FILE_NOT_FOUND", ["no/such.db"]],
  ];
  test.concurrent.each(sampled(wrong, 30))("%s", async (_, args, exit, code, says) => {
    const plain = await project.run(...args);
    expectError(plain, exit, code, says);
    expect(readdirSync(project.folder).filter((name) => name.includes("holdfast") || name === "no")).toEqual(
      [],
    );

    if (codesInJson.has(code) && !isCampaign) return;
    codesInJson.add(code);
    const { code: jsonExit, stdout, stderr } = await project.run(...args, "--json");
    expect({ jsonExit, stdout }).toEqual({ jsonExit: exit, stdout: "" });
    expect(JSON.parse(stderr)).toMatchObject({ code, exitCode: exit, message: expect.any(String) });
  });

  test.each(["list", "runs", "runner --agents good.ts", "run --agent x", "push ses_x", "token list"])(
    "a URL that is none is named by its variable and by its flag, before a token is missed: %s",
    async (words) => {
      const args = words.split(" ");
      const variable = await project.finish(args, { env: { HOLDFAST_URL: "localhost:8765" }, stdin: "" });
      expectError(variable, 2, "E_USAGE", ["HOLDFAST_URL is not the address", "say http://localhost:8765"]);
      const flag = await project.run(...args, "--url", "ftp://fleet.example");
      expectError(flag, 2, "E_USAGE", ["--url is not the address", "not ftp"]);
    },
  );

  test("without arguments the usage goes to standard error, and nothing to standard output", async () => {
    const { code, stdout, stderr } = await project.run();
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("usage: holdfast COMMAND");
  });

  test("a folder that is gone is told in one paragraph", () => {
    const gone = project.path("gone");
    mkdirSync(gone);
    const { status, stdout, stderr } = spawnSync(
      "sh",
      ["-c", 'rmdir "$PWD" && exec "$0" "$@"', process.execPath, LAUNCHER, "list"],
      { cwd: gone, encoding: "utf8" },
    );
    expectError({ code: status, signal: null, stdout, stderr }, 2, "E_FILE_NOT_FOUND", [
      "the current folder",
    ]);
  });

  test("--debug shows where an error comes from", async () => {
    const { stderr } = await project.run("run", "throws.ts", "--debug");
    expect(stderr).toMatch(/^error\[E_AGENT_INVALID\]/);
    expect(stderr).toMatch(/\n\s+at load \(.*throws\.ts:3:9\)/);
  });
});

describe("conflicts with what is there", () => {
  let project: Project;
  let before: unknown;
  beforeAll(async () => {
    project = new Project();
    for (const [name, text] of Object.entries(FILES)) writeFileSync(project.path(name), text);
    await project.run("run", "good.ts", "--session", "done", "--input", '"x"');
    await project.run("run", "good.ts", "--session", "open-1", "--input", '"ask"', "--park");
    await project.run("run", "good.ts", "--session", "open-2", "--input", '"ask"', "--park");
    before = await project.json("list");
  });
  afterAll(() => project.dispose());

  test.each<[what: string, args: string[], exit: number, code: PublicCode, says: string[]]>([
    ["the beginning of two ids", ["show", "open"], 2, "E_AMBIGUOUS", ["open-1", "open-2"]],
    ["a signal to a session that has ended", ["signal", "done", "go"], 6, "E_SESSION_ENDED", ["completed"]],
    ["an approval of one", ["approve", "done"], 6, "E_SESSION_ENDED", ["completed"]],
    [
      "the result of one that has not",
      ["result", "open-1"],
      6,
      "E_SESSION_NOT_ENDED",
      ["input_required", "show open-1"],
    ],
    [
      "an answer to another question",
      ["answer", "open-1", "99", "1"],
      4,
      "E_QUESTION_NOT_FOUND",
      ["99", "Go on?"],
    ],
    [
      "an id of another agent",
      ["run", "other.ts", "--session", "done", "--input", '"x"'],
      6,
      "E_SESSION_EXISTS",
      ['"good"'],
    ],
    [
      "an id with another input",
      ["run", "good.ts", "--session", "open-1", "--input", '"y"'],
      6,
      "E_SESSION_EXISTS",
      ['"ask"'],
    ],
    [
      "a file without the session's agent",
      ["resume", "open-1", "--agent", "other.ts"],
      3,
      "E_AGENT_INVALID",
      ['"good"'],
    ],
    ["a file that is gone", ["resume", "open-1", "--agent", "gone.ts"], 2, "E_FILE_NOT_FOUND", ["gone.ts"]],
  ])("%s", async (_, args, exit, code, says) => {
    expectError(await project.run(...args), exit, code, says);
    expect(await project.json("list")).toEqual(before);
  });

  test("cancelling what has ended is done already, and no error", async () => {
    expect(await project.run("cancel", "done")).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("had already ended"),
    });
  });

  test("a session that ended tells its result again, and runs nothing", async () => {
    expect(await project.run("run", "good.ts", "--session", "done", "--input", '"x"')).toMatchObject({
      code: 0,
      stdout: "x\n",
    });
    expect(await project.run("resume", "done")).toMatchObject({ code: 0, stdout: "x\n" });
  });
});

describe("a database that cannot be used", () => {
  let project: Project;
  let sound: Buffer;
  beforeAll(async () => {
    project = new Project();
    writeFileSync(project.path("good.ts"), AGENT);
    for (const word of ["a", "b"])
      await project.run("run", "good.ts", "--db", "sound.db", "--session", word, "--input", '"x"');
    sound = readFileSync(project.path("sound.db"));
  });
  afterAll(() => project.dispose());

  test.each<[what: string, make: (path: string) => void, exit: number, code: PublicCode]>([
    [
      "its first 100 bytes zeroed",
      (path) => writeFileSync(path, Buffer.concat([Buffer.alloc(100), sound.subarray(100)])),
      10,
      "E_CORRUPT_RECORD",
    ],
    ["cut off", (path) => writeFileSync(path, sound.subarray(0, 8_192)), 10, "E_CORRUPT_RECORD"],
    [
      "no database",
      (path) => writeFileSync(path, "just a text, and a long one at that\n".repeat(100)),
      10,
      "E_CORRUPT_RECORD",
    ],
    ["empty", (path) => writeFileSync(path, ""), 10, "E_CORRUPT_RECORD"],
    ["a folder", (path) => mkdirSync(path), 10, "E_STORAGE_UNAVAILABLE"],
    [
      "newer than the program",
      (path) => {
        copyFileSync(project.path("sound.db"), path);
        const database = new DatabaseSync(path);
        database.exec("PRAGMA user_version = 99");
        database.close();
      },
      11,
      "E_VERSION_UNSUPPORTED",
    ],
  ])("a wrong database (%s) is refused by every command, and not changed", async (what, make, exit, code) => {
    const path = project.path(`${what.replaceAll(" ", "-")}.db`);
    make(path);
    const before = existsSync(path) && what !== "a folder" ? readFileSync(path) : undefined;
    for (const args of [
      ["run", "good.ts", "--input", '"x"'],
      ["list"],
      ["show", "a"],
      ["signal", "a", "go"],
      ["resume", "--last"],
    ]) {
      expectError(await project.run(...args, "--db", path), exit, code, [path]);
    }
    expect((await project.run("doctor", "--db", path)).code).toBe(exit);
    if (before !== undefined) expect(readFileSync(path).equals(before)).toBe(true);
  });

  // SQLite does not notice this: the row has a checksum of its own.
  test("a damaged row is found by doctor, which exits with 10", async () => {
    const path = project.path("row.db");
    const damaged = Buffer.from(sound);
    const at = damaged.lastIndexOf('"complete"');
    expect(at).toBeGreaterThan(0);
    damaged.write('"compleet"', at);
    writeFileSync(path, damaged);
    const { code, stdout } = await project.run("doctor", "--db", path);
    expect(code).toBe(10);
    expect(stdout).not.toContain("no problem was found");
  });
});
