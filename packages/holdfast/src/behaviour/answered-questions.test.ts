// An answer is for the question that a person has read: commands name it by its number.

import { spawnSync } from "node:child_process";
import { userInfo } from "node:os";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
beforeEach(() => void (project = new Project()));
afterEach(() => project.dispose());

// A person reads a call, and the session asks for another one before the answer arrives.
test("an answer to the question that was read never answers the next one", async () => {
  project.write(
    "ask-twice.ts",
    `import { defineAgent } from "holdfast";
export default defineAgent({ name: "ask-twice", run: async (ctx) => {
  await ctx.requestInput({ prompt: "Allow ls?" });
  return ctx.requestInput({ prompt: "Allow rm -rf /?" });
} });`,
  );
  await project.run("run", "ask-twice.ts", "--session", "q", "--park");
  const shown = await project.json<{ items: { commands: string[] }[] }>("inbox");
  const approve = shown.items[0]!.commands[0]!.split(" ").slice(1);
  expect(approve).toEqual(["approve", "q", expect.stringMatching(/^\d+$/)]);
  await project.run(...approve);
  await project.run("resume", "q", "--park");
  // The answer has its principal, in the same transaction.
  const by = userInfo().username;
  expect(await project.json("show", "q")).toMatchObject({ answers: [{ id: 0, prompt: "Allow ls?", by }] });
  expect((await project.run("show", "q")).stdout).toContain(`0 by ${by}: Allow ls?`);
  expect((await project.run("logs", "q")).stdout).toContain(`answered  yes  by ${by}`);
  const late = await project.run(...approve, "--reason", "again");
  expect(late.code).toBe(4);
  expect(late.stderr).toMatch(/has no open question \d+; it is input_required[^]*\d+: Allow rm -rf \/\?/);
  expect(await project.json("show", "q")).toMatchObject({ pendingSignals: [] });
  expect((await project.run("approve", "q", "x")).stderr).toContain("is not the number of a question");
});

test("an answer that names none of several open questions is refused, and the error lists them", async () => {
  project.write(
    "two.ts",
    `import { defineAgent } from "holdfast";
export default defineAgent({ name: "two", run: (ctx) => ctx.all([ctx.requestInput("A?"), ctx.requestInput("B?")]) });`,
  );
  await project.run("run", "two.ts", "--session", "q", "--park");
  const unclear = await project.run("approve", "q");
  expect(unclear.code).toBe(2);
  expect(unclear.stderr).toMatch(/2 open questions[^]*: A\?\n[^]*: B\?\n[^]*fix: holdfast approve q \d+ or/);
  expect(await project.json("show", "q")).toMatchObject({ pendingSignals: [] });
});

const HAS_SCRIPT = spawnSync("script", ["--version"], { encoding: "utf8" }).stdout?.includes("util-linux");

// `script` of util-linux makes the terminal.
test.skipIf(!HAS_SCRIPT)(
  "a typed line answers the question that was shown last, and never another one",
  ofCampaign,
  async () => {
    project.write(
      "tree.ts",
      `import { defineAgent, local } from "holdfast";
export const asking = defineAgent({ name: "asking", run: (ctx) => ctx.requestInput("Child?", { answer: "any" }) });
export default defineAgent({ name: "tree", agents: [asking], run: async (ctx) => {
  const two = ctx.all([ctx.requestInput("A?", { answer: "any" }), ctx.requestInput("B?", { answer: "any" })]);
  await ctx.waitForSignal("go");
  const child = await ctx.waitForChild(ctx.spawnAgent(local(asking)));
  return [await two, child];
} });`,
    );
    const running = project.startOnTerminal(["run", "tree.ts", "--session", "q"]);
    await running.says("? B?");
    // Another person answers B, which this terminal has shown last. The line is for no other question.
    await project.run("answer", "q", "1", '"from elsewhere"');
    await running.says("still open: A?");
    await project.run("signal", "q", "go");
    await running.says(/asks: Child\?[^]*type an answer as JSON/);
    running.type('"for the child"');
    await running.says(/still open: A\?[^]*still open: A\?[^]*type an answer as JSON/);
    running.type('"for A"');
    const { stdout, code } = await running.finished;
    expect(code, stdout).toBe(0);
    expect((await project.run("logs", "q")).stdout).toContain(`"for A"  by ${userInfo().username}`);
    expect(stdout).toMatch(/"for A",\s+"from elsewhere"\s+\],\s+"for the child"/);
  },
);
