// The setting `commandNamespace`: whether the commands of the sandbox `filesystem` have a user namespace of
// their own.

import { mkdirSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findUserNamespace } from "@holdfast/system/processes";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

// A test starts up to a dozen commands.
vi.setConfig({ testTimeout: 120_000 });

let project: ModelProject;
let said: string;

beforeEach(async () => {
  project = await ModelProject.open();
  said = "";
  project.script = (conversation) => {
    if (repliesOf(conversation) === 0)
      return { toolCalls: [{ name: "shell", input: { command: "readlink /proc/self/ns/user" } }] };
    said = JSON.stringify(conversation.messages);
    return { text: "Done." };
  };
  project.write(
    "look.md",
    "---\nname: look\ndescription: L.\ntools: Bash\nholdfast: { sandbox: filesystem, approvals: { allow: [Bash] } }\n---\nWork.\n",
  );
});
afterEach(() => project.dispose());

const run = (env: Record<string, string> = {}) =>
  project.start(["run", "look.md", "Look."], { stdin: "", env }).finished;

async function hasNamespace(env?: Record<string, string>): Promise<boolean> {
  const { code, stderr } = await run(env);
  expect(code, stderr).toBe(0);
  expect(said).toMatch(/user:\[\d+\]/);
  return !said.includes(readlinkSync("/proc/self/ns/user"));
}

function configure(path: string, settings: object): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(settings));
}
const ofUser = (settings: object) => configure(join(project.home, ".config/holdfast/config.json"), settings);
const ofProject = (settings: object) => configure(project.path(".holdfast/config.json"), settings);

// Some systems allow no user namespace, and commands then have none whatever is set.
describe.runIf((await findUserNamespace()) !== undefined)("the sandbox filesystem", () => {
  test("a command has a user namespace unless a file of the user turns it off, and the variable goes before the file", async () => {
    expect(await hasNamespace()).toBe(true);
    ofUser({ commandNamespace: false });
    expect(await hasNamespace()).toBe(false);
    expect(await hasNamespace({ HOLDFAST_COMMAND_NAMESPACE: "on" })).toBe(true);
    expect((await project.run("config", "get", "commandNamespace", "--origin")).stdout).toBe(
      `false  (user file: ${join(project.home, ".config/holdfast/config.json")})\n`,
    );
    ofUser({ commandNamespace: true });
    expect(await hasNamespace({ HOLDFAST_COMMAND_NAMESPACE: "off" })).toBe(false);
  });

  test("a project that nobody has trusted does not turn it off, and may turn it on", async () => {
    ofProject({ commandNamespace: false });
    const refused = await run();
    expect(refused.code).toBe(12);
    expect(refused.stderr).toContain("config.json#/commandNamespace");
    expect(refused.stderr).toContain("HOLDFAST_COMMAND_NAMESPACE");
    await project.run("agents", "trust");
    expect(await hasNamespace()).toBe(false);
    ofProject({ commandNamespace: true });
    ofUser({ commandNamespace: false });
    expect(await hasNamespace()).toBe(true);
  });
});

test("another value of the variable is an error, and not a guess", async () => {
  const { code, stderr } = await run({ HOLDFAST_COMMAND_NAMESPACE: "false" });
  expect(code).toBe(2);
  expect(stderr).toContain('"false" is neither on nor off');
});
