// New code in the local stack, as people meet it: sessions that live while the files of their agents change.
//
// The tasks of these agents wait for files, which a test makes when it has seen enough. No time decides a
// test.

import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import type { Session } from "@holdfast/core";
import { startSession } from "../testing/coordinator-client.ts";
import { Project } from "../testing/holdfast-process.ts";
import { LocalStack, textOf } from "../testing/local-stack.ts";

let project: Project;
let stack: LocalStack;
beforeEach(async () => {
  project = new Project({ eachAsProcess: true });
  stack = new LocalStack(project);
  writeFileSync(project.path("agents.ts"), code("one"));
  expect(await stack.start()).toMatchObject({ code: 0 });
});
afterEach(() => stack.dispose());

/** Agents whose tasks note their name, this word, their attempt and their process. */
function code(word: string, firstStep = "first"): string {
  return `
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineAgent } from "holdfast";

const step = (ctx, name, gate) =>
  ctx.run(name, async (task) => {
    appendFileSync("ledger", [name, "${word}", task.attempt, process.pid].join(" ") + "\\n");
    while (!existsSync(gate)) await delay(10);
    return "${word}";
  });

export const greet = defineAgent({ name: "greet", run: async () => "${word}" });

export const turns = defineAgent({
  name: "turns",
  run: async (ctx) => {
    const words = [...(ctx.state ?? []), await step(ctx, "turn-" + ctx.turn, "gate-" + ctx.turn)];
    return words.length === 3 ? words : ctx.checkpoint(words);
  },
});

export const talk = defineAgent({
  name: "talk",
  run: async (ctx) => {
    const before = await step(ctx, "${firstStep}", "gate-0");
    await ctx.waitForSignal("go");
    return [before, await step(ctx, "second", "gate-1")];
  },
});

export const both = defineAgent({
  name: "both",
  run: async (ctx) => {
    if (ctx.turn > 0) return [...ctx.state, await step(ctx, "after", "gate-1")];
    const before = await step(ctx, "${firstStep}", "gate-0");
    await ctx.waitForSignal("go");
    return ctx.checkpoint([before]);
  },
});
`;
}

interface Step {
  readonly name: string;
  readonly word: string;
  readonly attempt: number;
  readonly pid: number;
}

const ledger = (): readonly Step[] =>
  textOf(project.path("ledger"))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [name, word, attempt, pid] = line.split(" ");
      return { name: name!, word: word!, attempt: Number(attempt), pid: Number(pid) };
    });

/** The last line of a step, once it has begun. */
async function begun(name: string, attempt = 1): Promise<Step> {
  for (;;) {
    const found = ledger().find((step) => step.name === name && step.attempt === attempt);
    if (found !== undefined) return found;
    await delay(10);
  }
}

const open = (...gates: readonly number[]): void => {
  for (const gate of gates) writeFileSync(project.path(`gate-${gate}`), "");
};

const access = async (): Promise<{ readonly url: string; readonly adminToken: string }> => ({
  url: (await stack.until("reachable", ({ url }) => url !== undefined)).url!,
  adminToken: readFileSync(project.path(".local/share/holdfast/admin-token"), "utf8").trim(),
});

const start = async (agent: string): Promise<string> => startSession(await access(), { agent, input: null });

async function until(
  sessionId: string,
  statuses: readonly string[],
): Promise<Session & { output?: unknown }> {
  const { url, adminToken } = await access();
  const headers = { authorization: `Bearer ${adminToken}` };
  for (;;) {
    const answer = await fetch(`${url}/v1/sessions/${sessionId}`, { headers }).catch(() => undefined);
    const session = answer?.ok === true ? ((await answer.json()) as Session) : undefined;
    if (session !== undefined && statuses.includes(session.status)) return session;
    expect(["failed", "cancelled", "completed", "paused"]).not.toContain(session?.status);
    await delay(20);
  }
}

const outputOf = async (sessionId: string): Promise<unknown> =>
  (await until(sessionId, ["completed"])).output;

/** Changes the file of the agents, and waits for the runner that has loaded it. @returns the process of the one before. */
async function change(text: string): Promise<number> {
  const { processes } = await stack.until("ready", (state) => state.processes[1]?.status === "ready");
  const { pid } = processes[1]!;
  writeFileSync(project.path("agents.ts"), text);
  await stack.until(
    "renewed",
    (state) => state.processes[1]!.status === "ready" && state.processes[1]!.pid !== pid,
  );
  return pid!;
}

const isThere = (pid: number): boolean => stack.processes().includes(pid);

/** Waits until no old runner is left. */
const settled = (): Promise<unknown> => stack.until("settled", ({ processes }) => processes.length === 2);

test(
  "a live session continues with the new code after its next checkpoint, and a new session gets it at once",
  ofCampaign,
  async () => {
    const sessionId = await start("turns");
    const first = await begun("turn-0");
    const old = await change(code("two"));
    expect(first.pid).toBe(old);
    expect(await outputOf(await start("greet"))).toBe("two");
    expect(isThere(old)).toBe(true); // Its task runs there.
    open(0);
    const second = await begun("turn-1");
    expect(second).toMatchObject({ word: "two" });
    expect(second.pid).not.toBe(old);
    open(1, 2);
    expect(await outputOf(sessionId)).toEqual(["one", "two", "two"]);
    expect(ledger().map(({ attempt }) => attempt)).toEqual([1, 1, 1]);
    await settled();
    expect(isThere(old)).toBe(false);
  },
);

test(
  "a session that diverges from the new code goes back to the old process, which ends with it",
  ofCampaign,
  async () => {
    const sessionId = await start("talk");
    await begun("first");
    open(0);
    await until(sessionId, ["waiting"]);
    const old = await change(code("two", "opening"));
    expect(isThere(old)).toBe(true);
    expect(await project.run("signal", sessionId, "go")).toMatchObject({ code: 0 });
    expect(await begun("second")).toMatchObject({ word: "one", pid: old });
    open(1);
    expect(await outputOf(sessionId)).toEqual(["one", "one"]);
    expect(ledger().map(({ name, attempt }) => [name, attempt])).toEqual([
      ["first", 1],
      ["second", 1],
    ]);
    await settled();
    expect((await project.run("local", "logs", "-c", "runner")).stdout).toContain(
      "diverged from its journal",
    );
  },
);

test(
  "a session that went back continues with the new code after its next checkpoint, also when that runner is killed",
  ofCampaign,
  async () => {
    const sessionId = await start("both");
    await begun("first");
    open(0);
    await until(sessionId, ["waiting"]);
    const old = await change(code("two", "opening"));
    await stack.kill("runner"); // The new one. The old one still keeps the session.
    await stack.until(
      "restarted",
      ({ processes }) => processes[0]?.restarts === 0 && processes[1]?.restarts === 1,
    );
    await stack.ready();
    expect(isThere(old)).toBe(true);
    expect(await project.run("signal", sessionId, "go")).toMatchObject({ code: 0 });
    expect(await begun("after")).toMatchObject({ word: "two" });
    await settled();
    open(1);
    expect(await outputOf(sessionId)).toEqual(["one", "two"]);
    expect(ledger().map(({ name, attempt }) => [name, attempt])).toEqual([
      ["first", 1],
      ["after", 1],
    ]);
    expect((await project.run("local", "logs", "-c", "runner")).stdout).toContain(
      "diverged from its journal",
    );
  },
);

test(
  "a session that waits continues with new code that fits its journal, and the old process ends",
  ofCampaign,
  async () => {
    const sessionId = await start("talk");
    await begun("first");
    open(0);
    await until(sessionId, ["waiting"]);
    const old = await change(code("two"));
    expect(await project.run("signal", sessionId, "go")).toMatchObject({ code: 0 });
    expect(await begun("second")).toMatchObject({ word: "two" });
    await settled(); // The session has moved, so nothing keeps the old process.
    expect(isThere(old)).toBe(false);
    open(1);
    expect(await outputOf(sessionId)).toEqual(["one", "two"]);
  },
);

test(
  "a session goes back to its old process also after a restart of the coordinator and a second change",
  ofCampaign,
  async () => {
    const sessionId = await start("talk");
    await begun("first");
    open(0);
    await until(sessionId, ["waiting"]);
    const old = await change(code("two", "opening"));
    await change(code("three", "opening"));
    expect(await project.run("local", "restart")).toMatchObject({ code: 0 });
    expect(isThere(old)).toBe(true);
    expect(await project.run("signal", sessionId, "go")).toMatchObject({ code: 0 });
    expect(await begun("second")).toMatchObject({ word: "one", pid: old });
    open(1);
    expect(await outputOf(sessionId)).toEqual(["one", "one"]);
    await settled();
  },
);

test(
  "a session that diverges when its old process was killed is paused, and nothing of it runs",
  ofCampaign,
  async () => {
    const sessionId = await start("talk");
    await begun("first");
    open(0);
    await until(sessionId, ["waiting"]);
    const old = await change(code("two", "opening"));
    process.kill(old, "SIGKILL");
    await settled();
    expect(await project.run("signal", sessionId, "go")).toMatchObject({ code: 0 });
    expect(await until(sessionId, ["paused"])).toMatchObject({ pauseReason: "nondeterminism" });
    expect(ledger().map(({ name }) => name)).toEqual(["first"]);
  },
);

test(
  "killed runners of either code lose no turn of a session that moves between them",
  ofCampaign,
  async () => {
    const sessionId = await start("turns");
    const { pid } = await begun("turn-0");
    await change(code("two"));
    process.kill(pid, "SIGKILL"); // The old one, in its task.
    const again = await begun("turn-0", 2);
    expect(again).toMatchObject({ word: "two" });
    open(0);
    const { pid: next } = await begun("turn-1");
    process.kill(next, "SIGKILL"); // The new one, in the task after the checkpoint.
    await begun("turn-1", 2);
    open(1, 2);
    expect(await outputOf(sessionId)).toEqual(["two", "two", "two"]);
    expect(ledger().map(({ name, attempt }) => [name, attempt])).toEqual([
      ["turn-0", 1],
      ["turn-0", 2],
      ["turn-1", 1],
      ["turn-1", 2],
      ["turn-2", 1],
    ]);
  },
);

test(
  "a restart hands a running session over at its checkpoint, and every task has one attempt",
  ofCampaign,
  async () => {
    const sessionId = await start("turns");
    const { pid } = await begun("turn-0");
    expect(await project.run("local", "restart")).toMatchObject({ code: 0 });
    open(0);
    const { pid: next } = await begun("turn-1");
    expect(next).not.toBe(pid);
    open(1, 2);
    expect(await outputOf(sessionId)).toEqual(["one", "one", "one"]);
    expect(ledger().map(({ attempt }) => attempt)).toEqual([1, 1, 1]);
    await settled();
  },
);
