// Environments through the real command: the order of their values, what reaches a command, secrets that
// leave no trace, and bad input.

import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PublicCode } from "@holdfast/terminal/frame/command-error";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { expectError } from "../testing/expect-error.ts";
import { ModelProject } from "../testing/model-project.ts";

const CANARY = "canary-5501-token-value";

let project: ModelProject;

beforeEach(async () => {
  project = await ModelProject.open();
  project.script = ({ messages }) =>
    messages.some(({ role }) => role === "assistant")
      ? { text: "Done." }
      : {
          toolCalls: [
            {
              name: "shell",
              input: {
                command:
                  'env | grep -E "^(API|REGION|OTHER|RELEASE)" | sort; echo "$TOKEN" > token.txt; echo "$TOKEN"',
              },
            },
          ],
        };
});

afterEach(() => project.dispose());

function writeAgent(fields: string): void {
  mkdirSync(project.path(".holdfast/agents"), { recursive: true });
  writeFileSync(
    project.path(".holdfast/agents/deployer.md"),
    `---\nname: deployer\ndescription: Deploys.\nholdfast:\n  approvals:\n    allow: [shell]\n${fields}---\nYou deploy.\n`,
  );
}
const run = (...args: string[]) => project.run(...args);
const AGENT = ".holdfast/agents/deployer.md";

/** Every file below a folder, as one text. */
function everything(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return files.map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1")).join("\n");
}

test("base, environments in order and the call are merged, and only declared variables reach a command", async () => {
  writeAgent("  environment: [first, second]\n  variables: [API_URL, REGION, API_MODE]\n");
  await run("env", "set", "base", "API_URL=base", "REGION=base", "OTHER=base");
  await run("env", "set", "first", "API_URL=first", "API_MODE=first");
  await run("env", "set", "second", "API_MODE=second");
  await run("env", "set", "third", "REGION=third");
  const { code, stderr } = await run(
    "run",
    AGENT,
    "go",
    "--session",
    "e",
    "--env-ref",
    "third",
    "--env",
    "API_MODE=a=b",
  );
  expect(code, stderr).toBe(0);
  const logs = (await run("logs", "e")).stdout;
  expect(logs).toContain("API_MODE=a=b");
  expect(logs).toContain("API_URL=first");
  expect(logs).toContain("REGION=third");
  expect(logs).not.toContain("OTHER=");
  const { system } = project.server.requests[0]?.conversation ?? { system: "" };
  expect(system).toContain("API_URL, REGION, API_MODE");
  expect(system).not.toContain("a=b");
});

test(
  "a secret reaches the command that declares it, and no record, output or prompt has its value",
  ofCampaign,
  async () => {
    writeAgent("  environment: staging\n  variables: [TOKEN]\n");
    expect((await run("env", "set", "staging", "TOKEN", "--secret")).code).toBe(0);
    const missing = await run("run", AGENT, "go", "--session", "s");
    expectError(missing, 5, "E_SECRET_MISSING", ["the secret TOKEN is missing"]);
    expect(project.server.requests).toHaveLength(0);
    const { code, stdout, stderr } = await project.finish(["run", AGENT, "go", "--session", "s"], {
      env: { TOKEN: CANARY },
    });
    expect(code, stderr).toBe(0);
    expect(readFileSync(project.path("token.txt"), "utf8")).toBe(`${CANARY}\n`);
    rmSync(project.path("token.txt"));
    const shown = await run("env", "show", "staging");
    expect(shown.stdout).toMatch(/TOKEN +\(secret\)/);
    const logs = (await run("logs", "s")).stdout;
    expect(logs).toContain("[secret]");
    const bodies = JSON.stringify(project.server.requests.map(({ body }) => body));
    for (const text of [
      stdout,
      stderr,
      logs,
      bodies,
      everything(project.path(".")),
      everything(project.home),
    ])
      expect(text).not.toContain(CANARY);
  },
);

test("a variable of this process that is not declared does not reach a command", async () => {
  writeAgent("  variables: [REGION]\n");
  const { code } = await project.finish(["run", AGENT, "go", "--session", "p", "--env", "REGION=eu"], {
    env: { API_KEY_OF_PROCESS: "inherited" },
  });
  expect(code).toBe(0);
  expect((await run("logs", "p")).stdout).not.toContain("inherited");
});

test("a parked session keeps the variables of its start", ofCampaign, async () => {
  writeAgent("  environment: staging\n  variables: [REGION]\n");
  writeFileSync(
    project.path(AGENT),
    readFileSync(project.path(AGENT), "utf8").replace("allow: [shell]", "ask: [shell]"),
  );
  await run("env", "set", "staging", "REGION=old");
  expect((await run("run", AGENT, "go", "--session", "k", "--park")).code).toBe(0);
  await run("env", "delete", "staging");
  expect((await run("approve", "k")).code).toBe(0);
  const { code, stderr } = await run("resume", "k");
  expect(code, stderr).toBe(0);
  expect((await run("logs", "k")).stdout).toContain("REGION=old");
});

test("env list, show and delete show what is set", async () => {
  await run("env", "set", "staging", "A=1", "B=");
  await run("env", "set", "staging", "C", "--required");
  expect((await run("env", "list")).stdout).toMatch(/^staging +3 keys +A, B, C\n$/);
  expect((await run("env", "show", "staging")).stdout).toMatch(/^A +1\s+B\s+C +\(no value\) +required\n$/);
  expect((await run("env", "delete", "staging", "A")).stdout).toBe("A of staging is deleted\n");
  expect((await run("env", "delete", "staging")).stdout).toBe("staging is deleted\n");
  expect((await run("env", "list")).stdout).toContain("no environments");
});

describe("bad input is refused before a session or a model call", () => {
  const file = (text: string) => (): void => {
    const path = join(project.home, ".local/share/holdfast/environments.json");
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(path, text, { mode: 0o600 });
  };
  test.each<readonly [string, () => void, readonly string[], number, PublicCode, readonly string[]]>([
    [
      "a missing variable",
      () => writeAgent("  variables: [REGION]\n"),
      ["run", AGENT, "x"],
      3,
      "E_AGENT_INVALID",
      ["REGION", "--env REGION=VALUE"],
    ],
    [
      "two missing variables",
      () => writeAgent("  variables: [A, B]\n"),
      ["run", AGENT, "x"],
      3,
      "E_AGENT_INVALID",
      ["A, B"],
    ],
    [
      "a required key without a value",
      () => (
        writeAgent("  environment: need\n"),
        file('{"environments":{"need":{"RELEASE":{"required":true}}}}')()
      ),
      ["run", AGENT, "x"],
      3,
      "E_AGENT_INVALID",
      ["the variable RELEASE has no value"],
    ],
    [
      "an environment that is not there",
      () => (writeAgent("  environment: stagng\n"), file('{"environments":{"staging":{}}}')()),
      ["run", AGENT, "x"],
      3,
      "E_AGENT_INVALID",
      ["did you mean staging"],
    ],
    [
      "--env-ref of nothing",
      () => writeAgent(""),
      ["run", AGENT, "x", "--env-ref", "none"],
      3,
      "E_AGENT_INVALID",
      ['the environment "none"'],
    ],
    [
      "--env without =",
      () => writeAgent(""),
      ["run", AGENT, "x", "--env", "REGION"],
      2,
      "E_USAGE",
      ["KEY=VALUE"],
    ],
    [
      "--env of a wrong key",
      () => writeAgent(""),
      ["run", AGENT, "x", "--env", "a-b=1"],
      2,
      "E_USAGE",
      ["the key of an environment is wrong"],
    ],
    [
      "--env of a key of Holdfast",
      () => writeAgent(""),
      ["run", AGENT, "x", "--env", "HOLDFAST_TOKEN=1"],
      2,
      "E_USAGE",
      ["HOLDFAST_"],
    ],
    [
      "--env twice",
      () => writeAgent(""),
      ["run", AGENT, "x", "--env", "A=1", "--env", "A=2"],
      2,
      "E_USAGE",
      ["A twice"],
    ],
    [
      "--env of a secret",
      () => (
        writeAgent("  variables: [TOKEN]\n  environment: s\n"),
        file('{"environments":{"s":{"TOKEN":{"secret":true}}}}')()
      ),
      ["run", AGENT, "x", "--env", `TOKEN=${CANARY}`],
      2,
      "E_USAGE",
      ["TOKEN is a secret"],
    ],
    [
      "a file of environments that is no JSON",
      () => (writeAgent(""), file("{")()),
      ["run", AGENT, "x"],
      3,
      "E_CONFIG_INVALID",
      ["the file of environments"],
    ],
    [
      "a secret with a value in the file",
      file('{"environments":{"s":{"T":{"secret":true,"value":"x"}}}}'),
      ["env", "list"],
      3,
      "E_CONFIG_INVALID",
      ["another form"],
    ],
    [
      "env set of a secret's value",
      file('{"environments":{"s":{"TOKEN":{"secret":true}}}}'),
      ["env", "set", "s", `TOKEN=${CANARY}`],
      2,
      "E_SECRET_ARG",
      ["TOKEN is a secret"],
    ],
    [
      "env set --secret with a value",
      () => {},
      ["env", "set", "s", `TOKEN=${CANARY}`, "--secret"],
      2,
      "E_SECRET_ARG",
      ["TOKEN is a secret"],
    ],
    ["env set without keys", () => {}, ["env", "set", "s"], 2, "E_USAGE", ["a key is missing"]],
    [
      "env set of a wrong name",
      () => {},
      ["env", "set", "../s", "A=1"],
      2,
      "E_USAGE",
      ["cannot be the name"],
    ],
    [
      "env set of a value that is too long",
      () => {},
      ["env", "set", "s", `A=${"x".repeat(32 * 1024 + 1)}`],
      2,
      "E_USAGE",
      ["the value of A"],
    ],
    ["env set of __proto__", () => {}, ["env", "set", "s", "__proto__=x"], 2, "E_USAGE", ["the key"]],
    [
      "env show of nothing",
      () => {},
      ["env", "show", "s"],
      2,
      "E_FILE_NOT_FOUND",
      ["there is no environment s"],
    ],
    [
      "env delete of no key",
      file('{"environments":{"s":{"ABC":{"value":"x"}}}}'),
      ["env", "delete", "s", "ABD"],
      2,
      "E_FILE_NOT_FOUND",
      ["did you mean ABC"],
    ],
    ["env show --secret", () => {}, ["env", "show", "s", "--secret"], 2, "E_USAGE", ["no option --secret"]],
    ["an unknown action", () => {}, ["env", "sett", "s"], 2, "E_USAGE", ["set"]],
  ])("%s", async (_name, make, args, exit, code, says) => {
    make();
    const finished = await run(...args);
    expectError(finished, exit, code, says);
    expect(finished.stderr).not.toContain(CANARY);
    expect(project.server.requests).toHaveLength(0);
    expect(existsSync(project.path(".holdfast/holdfast.db"))).toBe(false);
  });

  test("a file of environments that others may write", async () => {
    file('{"environments":{}}')();
    chmodSync(join(project.home, ".local/share/holdfast/environments.json"), 0o666);
    expectError(await run("env", "list"), 3, "E_CONFIG_INVALID", ["other users may write it"]);
  });
});
