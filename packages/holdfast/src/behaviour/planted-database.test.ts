// A cloned repository brings a database with sessions. They have rights that somebody else gave, so nothing
// in it runs before its user has seen them.

import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { expectError } from "../testing/expect-error.ts";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

let attacker: ModelProject;
let victim: ModelProject;
beforeEach(async () => {
  attacker = await ModelProject.open();
  victim = await ModelProject.open();
});
afterEach(async () => {
  await attacker.dispose();
  await victim.dispose();
});

function agent(home: string, fields: string): void {
  const at = join(home, ".holdfast/agents/reviewer.md");
  mkdirSync(dirname(at), { recursive: true });
  writeFileSync(at, `---\nname: reviewer\ndescription: Reviews.\nholdfast:\n${fields}---\nYou review.\n`);
}

/** The session of the attacker waits for an answer, and its rules allow the shell. */
async function plant(): Promise<void> {
  const script: ModelProject["script"] = (conversation) =>
    [
      { toolCalls: [{ name: "ask_user", input: { question: "Do you like blue?" } }] },
      { toolCalls: [{ name: "shell", input: { command: `touch ${victim.home}/pwned` } }] },
    ][repliesOf(conversation)] ?? { text: "Done." };
  attacker.script = script;
  victim.script = script;
  agent(attacker.home, "  sandbox: filesystem\n  approvals: { allow: [Bash] }\n");
  const env = { SANDBOX_ROOT_DIR: "/tmp" };
  const parked = await attacker.start(["run", "reviewer", "Go.", "--session", "s1", "--local", "--park"], {
    stdin: "",
    env,
  }).finished;
  expect(parked.code, parked.stderr).toBe(0);
  cpSync(attacker.path(".holdfast"), victim.path(".holdfast"), { recursive: true });
  rmSync(join(attacker.home, ".holdfast"), { recursive: true });
  agent(victim.home, "  sandbox: virtual\n  approvals: { deny: [Bash] }\n");
}

test("a session that a clone brings runs nothing until its rights were shown and trusted", async () => {
  await plant();
  expect((await victim.run("list")).stdout).toContain("s1");
  expect((await victim.run("answer", "s1", '"yes"')).code).toBe(0);
  for (const args of [
    ["resume", "s1"],
    ["resume", "--last"],
    ["replay", "s1"],
    ["run", "reviewer", "Hi.", "--local"],
    ["chat", "--session", "s1"],
    ["schedule", "run"],
  ])
    expectError(await victim.finish(args, { stdin: "" }), 12, "E_POLICY_DENIED", [
      "not made by you on this machine",
      "holdfast agents trust --sessions",
    ]);
  const held = await victim.finish(["runner", "--ipc"], { stdin: "" });
  expect([held.code, held.stdout]).toEqual([12, expect.stringContaining('"code":"policy_denied"')]);
  const shown = await victim.run("agents", "trust", "--sessions");
  expectError(shown, 12, "E_POLICY_DENIED", [
    "session s1: reviewer",
    "sandbox: filesystem",
    "calls without a question: shell",
    "holdfast agents trust --sessions --yes",
  ]);
  expect(existsSync(join(victim.home, "pwned"))).toBe(false);

  expect((await victim.run("agents", "trust", "--sessions", "--yes")).code).toBe(0);
  const resumed = await victim.run("resume", "s1");
  expect(resumed.code, resumed.stderr).toBe(0);
});

test("a database that was made here goes on without a question, and another one in its place does not", async () => {
  agent(victim.home, "  sandbox: virtual\n");
  victim.script = (conversation) =>
    repliesOf(conversation) === 0
      ? { toolCalls: [{ name: "ask_user", input: { question: "Which?" } }] }
      : { text: "Done." };
  for (const args of [[], ["--db", "data.db"]]) {
    await victim.run("run", "reviewer", "Go.", "--session", "own", "--local", "--park", ...args);
    await victim.run("answer", "own", '"this"', ...args);
    const resumed = await victim.run("resume", "own", ...args);
    expect(resumed.code, resumed.stderr).toBe(0);
  }
  await plant();
  expectError(await victim.run("resume", "s1"), 12, "E_POLICY_DENIED", ["agents trust --sessions"]);
});

test("a database with a trigger is not opened", async () => {
  await plant();
  const database = new DatabaseSync(victim.path(".holdfast/holdfast.db"));
  database.exec("CREATE TRIGGER t AFTER INSERT ON signal BEGIN DELETE FROM session; END");
  database.close();
  for (const args of [["list"], ["answer", "s1", '"yes"'], ["agents", "trust", "--sessions", "--yes"]])
    expect((await victim.run(...args)).stderr).toContain("has a trigger or a view");
});
