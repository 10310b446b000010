// Sandboxes that cannot be, in agent files and in the environment. Nothing starts, and each refusal says why.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { PublicCode } from "@holdfast/terminal/frame/command-error";
import { sampled } from "@holdfast/testkit/campaign";
import { expectError } from "../testing/expect-error.ts";
import { ModelProject } from "../testing/model-project.ts";

let project: ModelProject;
beforeEach(async () => void (project = await ModelProject.open()));
afterEach(() => project.dispose());

function write(path: string, text: string): void {
  mkdirSync(dirname(project.path(path)), { recursive: true });
  writeFileSync(project.path(path), text);
}
const agentFile = (name: string, fields: string): void =>
  write(`.holdfast/agents/${name}.md`, `---\nname: ${name}\ndescription: Helps.\n${fields}---\nYou help.\n`);
const sandbox = (value: string) => (): void => agentFile("boxed", `holdfast: { sandbox: ${value} }\n`);

interface Case {
  readonly what: string;
  readonly make: () => void;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly exit: number;
  readonly code: PublicCode;
  readonly says: readonly string[];
}

const plain = (): void => agentFile("boxed", "");
const refused = (what: string, make: () => void, ...says: readonly string[]): Case => ({
  what,
  make,
  exit: 3,
  code: "E_AGENT_INVALID",
  says,
});
const denied = (what: string, name: string, env: Case["env"], ...says: readonly string[]): Case => ({
  what,
  make: sandbox(name),
  env: env ?? {},
  exit: 12,
  code: "E_POLICY_DENIED",
  says: [`the sandbox "${name}" cannot run on this machine`, ...says],
});

const CASES: readonly Case[] = [
  refused("a misspelt name", sandbox("virtuel"), 'there is no sandbox "virtuel"; did you mean virtual?'),
  refused("an empty name", sandbox('""'), "holdfast.sandbox: wrong value", "the name of a sandbox backend"),
  refused("a list of names", sandbox("[virtual]"), "holdfast.sandbox: wrong value"),
  refused("a number", sandbox("7"), "holdfast.sandbox: wrong value"),
  refused("a path", sandbox("../virtual"), 'there is no sandbox "../virtual"'),
  refused("a name with a space at its end", sandbox('"virtual "'), 'there is no sandbox "virtual "'),
  refused("a name of every object", sandbox("constructor"), 'there is no sandbox "constructor"'),
  refused("the prototype of every object", sandbox("__proto__"), 'there is no sandbox "__proto__"'),
  refused(
    "a folder that is none",
    () => agentFile("boxed", "holdfast: { workspace: nowhere }\n"),
    "holdfast.workspace: wrong value",
  ),
  refused(
    "a program of MCP beside it",
    () => agentFile("boxed", "mcpServers: [{ a: { command: x } }]\nholdfast: { sandbox: virtual }\n"),
    "which would run outside of the sandbox",
  ),
  refused(
    "a sandbox of an agent that it may start",
    () => {
      agentFile("boxed", "holdfast: { agents: [child] }\n");
      agentFile("child", "holdfast: { sandbox: nope }\n");
    },
    'there is no sandbox "nope"',
  ),
  {
    what: "a misspelt name in the environment",
    make: plain,
    env: { SANDBOX_TYPE: "dokcer" },
    exit: 2,
    code: "E_USAGE",
    says: ['there is no sandbox "dokcer"; did you mean docker?', "at: SANDBOX_TYPE", "correct the variable"],
  },
  denied("no key of the service", "daytona", { DAYTONA_API_KEY: undefined }, "DAYTONA_API_KEY"),
  denied("no key of the other service", "e2b", { E2B_API_KEY: undefined }, "E2B_API_KEY"),
  {
    ...denied("the default of mode cloud without its key", "daytona", { HOLDFAST_MODE: "cloud" }),
    make: plain,
    says: ["DAYTONA_API_KEY is not set. It is the default of mode cloud", "HOLDFAST_SANDBOX"],
  },
  {
    what: "a folder for sandboxes that is a file",
    make: () => (plain(), write("file", "")),
    env: { SANDBOX_ROOT_DIR: "file/below" },
    exit: 3,
    code: "E_CONFIG_INVALID",
    says: ["SANDBOX_ROOT_DIR", "the folder for sandboxes cannot be made"],
  },
];

test.each(
  sampled(
    CASES.map((one) => [one.what, one] as const),
    3,
  ),
)("%s starts nothing, and the refusal says why", async (_what, { make, env = {}, exit, code, says }) => {
  make();
  await project.run("agents", "trust");
  const finished = await project.finish(["run", "boxed", "x"], { stdin: "", env });
  expectError(finished, exit, code, says);
  expect(project.server.requests).toHaveLength(0);
  expect(existsSync(project.path(".holdfast/holdfast.db"))).toBe(false);
});

test("a misspelt name in the environment is an error for doctor, and for an agent that has no sandbox alone", async () => {
  const env = { SANDBOX_TYPE: "dokcer" };
  expect((await project.finish(["doctor"], { stdin: "", env })).stdout).toMatch(
    /✗ settings +there is no sandbox "dokcer"/,
  );
  agentFile("boxed", "holdfast: { sandbox: virtual }\n");
  await project.run("agents", "trust");
  const check = () => project.finish(["agents", "check"], { stdin: "", env });
  expect((await check()).code).toBe(0);
  agentFile("plain", "");
  await project.run("agents", "trust");
  const checked = await check();
  expect(checked.stdout).toContain("2 files, 0 refused");
  expectError({ ...checked, stdout: "" }, 2, "E_USAGE", ["did you mean docker?", "at: SANDBOX_TYPE"]);
  expect(await project.finish(["run", "boxed", "x"], { stdin: "", env })).toMatchObject({ code: 0 });
});

test("a misspelt name in the environment is no value of the setting", async () => {
  const get = (env: Readonly<Record<string, string>>) =>
    project.finish(["config", "get", "sandbox"], { stdin: "", env });
  expectError(await get({ SANDBOX_TYPE: "dokcer" }), 2, "E_USAGE", [
    'there is no sandbox "dokcer"; did you mean docker?',
    "at: SANDBOX_TYPE",
  ]);
  for (const name of ["docker", "podman"])
    expect((await get({ SANDBOX_TYPE: name })).stdout).toBe(`${name}\n`);
});
