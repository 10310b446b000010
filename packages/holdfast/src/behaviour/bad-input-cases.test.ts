// The cases of agent files, command, configuration, scripts and executors that every release is tried with.
// The short ones run here, over the real command, and the others are found by the name of their test.
//
// A case's server is our coordinator, its TOML our JSON. `NOT_OURS` has the cases of features that we do not
// have.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PublicCode } from "@holdfast/terminal/frame/command-error";
import { sampled } from "@holdfast/testkit/campaign";
import { expectError } from "../testing/expect-error.ts";
import { LAUNCHER, Project } from "../testing/holdfast-process.ts";

let project: Project;
beforeAll(() => {
  project = new Project();
  mkdirSync(project.path("work"));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(project.path(name), text);
});
afterAll(() => project.dispose());

const FILES: Readonly<Record<string, string>> = {
  "a.mjs":
    'import { defineAgent } from "holdfast";\nexport default defineAgent({ name: "a", run: async () => 1 });\n',
  "key.json": '{"prot":1}',
  "large.json": " ".repeat(2_000_000),
  "losses.json": '{"poisonLosses":1000000000}',
  "limits.json": '{"limits":{"connections":0}}',
  "policy-runs.json": '{"concurrency":-1}',
  "policy-word.json": '{"concurency":1}',
  "policy-half.json": '{"executors":[',
};
const PASSWORD = "hunter2-canary";
const AWAY = "http://127.0.0.1:1";

interface Tried {
  readonly id: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly exit: number;
  readonly code: PublicCode;
  readonly says: readonly string[];
}

const tried = (
  id: string,
  args: string,
  exit: number,
  code: PublicCode,
  says: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Tried => ({ id, args: args.split(" "), env, exit, code, says });

const TRIED: readonly Tried[] = [
  tried("C03", "run --agnet x", 2, "E_USAGE", ["--agnet"]),
  tried("C05", "runner --executor a --executor-path b", 2, "E_USAGE", ["--executor and --executor-path"]),
  tried("C07", "coordinator --port 0x", 2, "E_USAGE", ['"0x" is no port']),
  tried("C07", "coordinator --port 70000", 2, "E_USAGE", ['"70000" is no port']),
  tried("C07", "coordinator --port -1", 2, "E_USAGE", ['"-1" is no port']),
  tried("C07", "runner --agents a.mjs --health-port 65536", 2, "E_USAGE", ["--health-port"]),
  tried("C09", `runs --url ${AWAY}`, 7, "E_UNAVAILABLE", [AWAY], {
    HOLDFAST_TOKEN: `hf_usr_${"0".repeat(72)}`,
  }),
  tried("C11", "token list", 5, "E_UNAUTHENTICATED", ["HOLDFAST_TOKEN", "--token-file"]),
  tried("C19", "secret set K v", 2, "E_SECRET_ARG", ["standard input"]),
  tried("C21", "run a.mjs --input @nope.json", 2, "E_FILE_NOT_FOUND", ["nope.json"]),
  tried("F01", "coordinator --config nope.json", 3, "E_CONFIG_INVALID", ["nope.json"]),
  tried("F01", "runner --agents a.mjs --policy nope.json", 3, "E_CONFIG_INVALID", ["nope.json"]),
  tried("F03", "coordinator --config key.json", 3, "E_CONFIG_INVALID", ['"prot"', "did you mean port?"]),
  tried("F03", "runner -p work --agents a.mjs --policy policy-word.json", 3, "E_CONFIG_INVALID", [
    "did you mean concurrency?",
  ]),
  tried("F03", "runner -p work --agents a.mjs --policy policy-half.json", 3, "E_CONFIG_INVALID", [
    "is not JSON",
  ]),
  tried("F07", "coordinator --host 0.0.0.0", 3, "E_CONFIG_INVALID", ["unencrypted", "--insecure"]),
  tried("F09", "coordinator --storage sqlite:/proc/x/y.db", 10, "E_STORAGE_UNAVAILABLE", [
    "/proc/x/y.db",
    "ENOENT",
  ]),
  tried("F09", "coordinator --storage sqlite:work", 10, "E_STORAGE_UNAVAILABLE", ["is a folder"]),
  tried("F09", "coordinator --port 0", 10, "E_STORAGE_UNAVAILABLE", ["/sys/.local"], { HOME: "/sys" }),
  tried("F09", "runner --agents a.mjs", 10, "E_STORAGE_UNAVAILABLE", ["/sys/.local", "XDG_DATA_HOME"], {
    HOME: "/sys",
    HOLDFAST_TOKEN: `hf_reg_${"0".repeat(72)}`,
  }),
  tried("F13", "runner --agents a.mjs --max-runs -1", 2, "E_USAGE", ["--max-runs"]),
  tried("F13", "runner --agents a.mjs --max-runs 1e9", 2, "E_USAGE", ["--max-runs"]),
  tried("F13", "runner --agents a.mjs --max-runs 0", 2, "E_USAGE", ["--max-runs"]),
  tried("F13", "runner -p work --agents a.mjs --policy policy-runs.json", 3, "E_CONFIG_INVALID", [
    "1 to 10000",
  ]),
  tried("F13", "coordinator --config losses.json", 3, "E_CONFIG_INVALID", ["from 1 to 1000"]),
  tried("F13", "coordinator --config limits.json", 3, "E_CONFIG_INVALID", ["#/limits/connections"]),
  tried("F15", "coordinator --config large.json", 3, "E_CONFIG_INVALID", ["the limit is 1048576"]),
  tried("F17", `coordinator --storage postgres://u:${PASSWORD}@127.0.0.1:1/db`, 10, "E_STORAGE_UNAVAILABLE", [
    "postgres://u:***@127.0.0.1:1/db",
  ]),
];

describe("a case of the list is refused in one paragraph", () => {
  // HOME=/sys is a read-only home on Linux, also for root; other systems have no such folder.
  const cases = TRIED.filter(({ env }) => env?.["HOME"] === undefined || process.platform === "linux");
  test.each(
    sampled(
      cases.map((one) => [one.id, one.args.join(" "), one] as const),
      5,
    ),
  )("case %s: %s", { timeout: 60_000 }, async (_id, _args, { args, env = {}, exit, code, says }) => {
    const finished = await project.finish(args, { env, stdin: "" });
    expectError(finished, exit, code, says);
    expect(finished.stderr).not.toContain(PASSWORD);
  });
});

// /sys refuses each write, also of root.
test.runIf(process.platform === "linux")(
  "a home that is read-only is named by the command that needs it",
  async () => {
    const env = { HOME: "/sys", HOLDFAST_SECRET_KEY_FILE: project.path("key") };
    writeFileSync(project.path("key"), "0".repeat(64), { mode: 0o600 });
    const set = await project.finish(["secret", "set", "K", "--to", "file"], { env, stdin: PASSWORD });
    expectError(set, 10, "E_STORAGE_UNAVAILABLE", ["/sys/.local", "XDG_DATA_HOME"]);
    for (const home of ["/sys", "/proc"]) {
      const { code } = await project.finish(["run", "a.mjs"], { env: { HOME: home }, stdin: "" });
      expect([home, code]).toEqual([home, 0]);
      // A home without a key gives a database no mark, so nothing in it runs again.
      rmSync(project.path(".holdfast"), { recursive: true });
    }
  },
);

test("a reader that closes the output early is no error", async () => {
  const child = spawn(process.execPath, [LAUNCHER, "run", "--help"], { cwd: project.folder });
  child.stdout.destroy();
  child.stdin.end();
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => void (stderr += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  expect([[0, 141], stderr]).toEqual([expect.arrayContaining([code]), ""]);
});

const EXECUTORS = "packages/programs/src/adapters/executor/executor-agent.test.ts";
const PROFILES = "packages/programs/src/adapters/executor/profile.test.ts";
const SCRIPTS = "packages/agents/src/scripts/scripts.test.ts";
const COMMANDS = "packages/holdfast/src/behaviour/commands.test.ts";
const BAD_INPUT = "packages/holdfast/src/behaviour/bad-input.test.ts";

const AGENTS = "packages/holdfast/src/behaviour/agent-cases.test.ts";

/** Cases whose test stands elsewhere: its file, and a text of the test. */
const ELSEWHERE: Readonly<Record<string, readonly [file: string, text: string]>> = {
  B01: [AGENTS, '"B01",'],
  B03: [AGENTS, '"B03",'],
  B05: [AGENTS, '"B05",'],
  B07: [AGENTS, "case B07: a skill, a script and a server that are not there"],
  B09: [AGENTS, '"B09",'],
  B11: [AGENTS, "case B11: agents that start each other without end"],
  B13: [AGENTS, '"B13",'],
  C01: [BAD_INPUT, "without arguments the usage goes to standard error"],
  C15: ["packages/holdfast/src/behaviour/running.test.ts", '["SIGINT", 130]'],
  C17: ["packages/holdfast/src/behaviour/bad-input-cases.test.ts", "a reader that closes the output early"],
  C23: [COMMANDS, "the error is one object on standard error"],
  C25: [
    "packages/holdfast/src/behaviour/coordinator.test.ts",
    "a second one on the same file refuses and names the first",
  ],
  C27: [BAD_INPUT, "its first 100 bytes zeroed"],
  C29: [COMMANDS, 'LANG: "C", NO_COLOR: "1", COLUMNS: "20"'],
  F11: ["packages/agents/src/servers/mcp-http.test.ts", "a placeholder of Holdfast's own token"],
  S01: [SCRIPTS, 'script_file: "../good/main.sh"'],
  S03: [SCRIPTS, "an empty script_file"],
  S05: [SCRIPTS, "a link in the folder"],
  S07: [SCRIPTS, "a link at the place where scripts are written is refused"],
  S09: [SCRIPTS, "two files that are one on other systems"],
  S11: [
    "packages/agents/src/contents/folder-content.test.ts",
    "a kept content is there as a whole, and a damaged one counts as missing",
  ],
  S13: [SCRIPTS, "a script with setuid that all may write"],
  S15: [EXECUTORS, "it takes longer than its time"],
  S17: [EXECUTORS, "leaves a process that holds its output"],
  S19: [EXECUTORS, "writes a megabyte of errors first"],
  S21: [EXECUTORS, "exits as a shell does after a signal"],
  S23: [PROFILES, "an argument with NUL"],
  S25: [EXECUTORS, "a prompt with the characters of shells arrives as it is"],
  S27: ["packages/holdfast/src/behaviour/skills.test.ts", "a changed content needs a new approval"],
  S29: [
    "packages/holdfast/src/fleet/secrets.test.ts",
    "an executor calls its model with a key of its runner",
  ],
  X01: [EXECUTORS, "prints garbage"],
  X03: [EXECUTORS, "ends in the middle of a message"],
  X05: [EXECUTORS, '{"type":"later"}'],
  X07: [EXECUTORS, "completes without a result"],
  X11: [EXECUTORS, "ends without a result"],
  X13: [EXECUTORS, "never completes"],
  X15: [EXECUTORS, "it closes its input before a long invocation is written"],
  X17: [EXECUTORS, "please login"],
  X21: ["packages/runtime/src/gateway/run-gateway.test.ts", "401"],
  X23: ["packages/holdfast/src/fleet/runner-executors.test.ts", "a killed runner leaves no executor"],
};

const NOT_OURS: Readonly<Record<string, string>> = {
  C13: "a session is named by its whole id, not by a prefix",
  F05: "there is no provider of authentication but tokens, which are always required",
  X09: "reports are requests with an answer each, and have no sequence numbers",
  X19: "an executor gets no grants of permissions",
};

test.each(Object.entries(ELSEWHERE))("the test of case %s is there", (_id, [file, text]) => {
  expect(readFileSync(new URL(`../../../../${file}`, import.meta.url), "utf8")).toContain(text);
});

const CASES_FILE = new URL("../../../../../shared/bad-inputs.jsonl", import.meta.url);

// Skipped where the list of cases is not beside the repository: the cases above run all the same.
test.skipIf(!existsSync(fileURLToPath(CASES_FILE)))(
  "every case of the list has a test, or a reason why not",
  () => {
    const ids = readFileSync(CASES_FILE, "utf8")
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { readonly id: string }).id)
      .filter((id) => /^[BCFSX]/.test(id));
    const known = new Set([
      ...TRIED.map(({ id }) => id),
      ...Object.keys(ELSEWHERE),
      ...Object.keys(NOT_OURS),
    ]);
    expect(ids.filter((id) => !known.has(id))).toEqual([]);
    expect([...known].filter((id) => !ids.includes(id))).toEqual([]);
  },
);
