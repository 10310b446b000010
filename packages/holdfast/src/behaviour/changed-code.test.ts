// The code of an agent is changed while its sessions wait for a person. Which changes a session survives, and
// what is done about the others.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { turns } from "@holdfast/testkit/test-runtime";
import { afterAll, describe, expect, test } from "vitest";
import {
  createRuntime,
  defineAgent,
  defineTask,
  MemoryStorage,
  openSqliteStorage,
  type Agent,
  type AgentStorage,
} from "../index.ts";

const folder = mkdtempSync(join(tmpdir(), "changed-code-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

const summarise = defineTask({ name: "summarise", run: (prompt: string) => `summary by ${prompt}` });

interface Changes {
  readonly closure?: number;
  readonly prompt?: string;
  readonly question?: string;
  readonly loadName?: string;
  readonly maxAttempts?: number;
  readonly now?: boolean;
  readonly inserted?: "plainly" | "behind a mark";
  readonly last?: boolean;
}

/** The deployed agent, and what it becomes by changes. */
const writer = (changes: Changes = {}): Agent =>
  defineAgent({
    name: "writer",
    tasks: [summarise],
    run: async (ctx) => {
      if (changes.now === true) ctx.now();
      const { loadName = "load", closure = 1, maxAttempts = 3 } = changes;
      const a = await ctx.run(loadName, () => closure, { retry: { maxAttempts } });
      if (changes.inserted === "plainly" || (changes.inserted !== undefined && ctx.patched("audit")))
        await ctx.run("audit", () => 0);
      const s = await ctx.scheduleTask(summarise, changes.prompt ?? "Sumarize");
      const ok = await ctx.requestInput(changes.question ?? "Publsh?", { answer: "any" });
      if (changes.last === true) await ctx.run("check", () => 0);
      return ctx.run("publish", () => `published ${a} ${s} ${String(ok)}`);
    },
  });

/** How the session goes on with other code. */
async function continuedBy(storage: AgentStorage, agent: Agent) {
  const runtime = createRuntime({ storage, agents: [agent], development: false });
  try {
    await runtime.recover();
    await runtime.answer("s", "yes");
    const first = await runtime.handle("s").settled();
    const { status, fault } = first as {
      readonly status: string;
      readonly fault?: { readonly at?: string; readonly fix?: string };
    };
    if (status !== "paused") return { status, output: (first as { readonly output?: unknown }).output };
    const drifting = await (await runtime.resume("s", { acceptDrift: true })).settled();
    return { status, at: fault?.at, fix: fault?.fix, drifting: drifting.status };
  } finally {
    await runtime.close();
  }
}

const STORAGES = [
  ["in memory", () => Promise.resolve(new MemoryStorage())],
  ["in SQLite", () => openSqliteStorage({ path: join(folder, `${files++}.db`) })],
] as const;

describe.each(STORAGES)("a waiting session %s", (_, open) => {
  /** A session of the deployed code that waits for its person. */
  async function waiting() {
    const storage = await open();
    const runtime = createRuntime({ storage, development: false });
    const handle = await runtime.start(writer(), undefined, { sessionId: "s" });
    while ((await handle.session()).status !== "input_required") await turns(5);
    await runtime.close();
    return storage;
  }

  test.each<readonly [string, Changes]>([
    ["nothing is changed", {}],
    ["the function of a done step is changed", { closure: 2 }],
    ["retries are changed", { maxAttempts: 9 }],
    ["ctx.now() is read", { now: true }],
    ["a step is added behind the wait", { last: true }],
    ["a step is added before the wait, behind ctx.patched", { inserted: "behind a mark" }],
  ])("the session goes on when %s", async (_what, changes) => {
    const storage = await waiting();
    const output = "published 1 summary by Sumarize yes";
    expect(await continuedBy(storage, writer(changes))).toEqual({ status: "completed", output });
    await storage.close();
  });

  test.each<readonly [string, Changes]>([
    ["the input of a done task is changed", { prompt: "Summarize" }],
    ["the open question is changed", { question: "Publish?" }],
  ])("the session is paused, and goes on by accepted drift, when %s", async (_what, changes) => {
    const storage = await waiting();
    const line = expect.stringMatching(/changed-code\.test\.ts:\d+:\d+$/);
    const paused = { status: "paused", at: line, drifting: "completed" };
    expect(await continuedBy(storage, writer(changes))).toMatchObject(paused);
    await storage.close();
  });

  test.each<readonly [string, Changes]>([
    ["a step is inserted", { inserted: "plainly" }],
    ["a done step is renamed", { loadName: "load all" }],
  ])("the session is paused with the line and a cure that works when %s", async (_what, changes) => {
    const storage = await waiting();
    const refused = await continuedBy(storage, writer(changes));
    expect(refused).toMatchObject({ status: "paused", drifting: "paused" });
    expect(refused.at).toMatch(/changed-code\.test\.ts:\d+:\d+$/);
    expect(refused.fix).toContain(
      '`if (ctx.patched("NAME"))` with the old code as its other side, and resume the session',
    );
    const runtime = createRuntime({
      storage,
      agents: [writer({ inserted: "behind a mark" })],
      development: false,
    });
    expect(await (await runtime.resume("s")).result()).toBe("published 1 summary by Sumarize yes");
    await runtime.close();
    await storage.close();
  });
});
