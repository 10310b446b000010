// The SDK in a program of its own process.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { defineAgent } from "@holdfast/runtime";
import { tmpdir } from "node:os";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { openFleet } from "../testing/fleet.ts";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

/** The output of a program, and its exit code. */
function runProgram(text: string): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["--input-type=module", "--eval", text], { cwd: ROOT });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (piece: string) => void (output += piece));
    child.on("close", (code) => resolve({ code, output }));
  });
}

test(
  "after the result nothing of ours keeps a program alive, also when its agent used timers and waits",
  ofCampaign,
  async () => {
    const { code, output } = await runProgram(`
    import { createRuntime, defineAgent, MemoryStorage } from "holdfast";
    const agent = defineAgent({ name: "waits", run: async (ctx) => {
      await ctx.sleep(5);
      await ctx.waitForSignal("go");
      return "done";
    } });
    const runtime = createRuntime({ storage: new MemoryStorage() });
    const session = await runtime.start(agent);
    await session.signal("go");
    console.log(await session.result(), process.getActiveResourcesInfo().filter((what) => what === "Timeout"));
  `);
    expect({ code, output }).toEqual({ code: 0, output: "done []\n" });
  },
);

test("a signal to no session is refused by an error, as everything else is", ofCampaign, async () => {
  const { code, output } = await runProgram(`
    import { createRuntime, MemoryStorage } from "holdfast";
    const runtime = createRuntime({ storage: new MemoryStorage() });
    for (const ask of [() => runtime.signal("nosuch", "go"), () => runtime.answer("nosuch", {}), () => runtime.cancel("nosuch")])
      await ask().then(() => console.log("stored"), (error) => console.log(error.code));
  `);
  expect({ code, output }).toEqual({ code: 0, output: "session_not_found\n".repeat(3) });
});

describe("a program that only waits for the end of a session", () => {
  const PRELUDE = `
    import { createRuntime, defineAgent, MemoryStorage, openSqliteStorage, connectSqliteStorage } from "holdfast";
    const asks = defineAgent({ name: "asks", run: async (ctx) => {
      const { approved } = await ctx.requestInput("Publish?");
      return approved ? await ctx.waitForSignal("go") : "kept";
    } });
    const naps = defineAgent({ name: "naps", run: async (ctx) => { await ctx.sleep(100); return "rested"; } });
    /** Fires only while something else keeps the process alive. */
    const ifStillAlive = (work) => void setTimeout(work, 20).unref();
    const go = (session) => ifStillAlive(async () => {
      await session.answer({ approved: true });
      ifStillAlive(() => session.signal("go", "gone"));
    });
  `;

  test("a program over memory lives until an answer and a signal have come", ofCampaign, async () => {
    const ended = await runProgram(`${PRELUDE}
      const runtime = createRuntime({ storage: new MemoryStorage() });
      const session = await runtime.start(asks);
      go(session);
      console.log(await session.result());
    `);
    expect(ended).toEqual({ code: 0, output: "gone\n" });
  });

  test(
    "a program over a SQLite file lives until an answer and a signal have come, and then ends",
    ofCampaign,
    async () => {
      const path = await databasePath();
      const ended = await runProgram(`${PRELUDE}
      const storage = await openSqliteStorage({ path: ${path} });
      const runtime = createRuntime({ storage, agents: [asks] });
      await runtime.recover();
      const session = await runtime.start(asks);
      go(session);
      console.log((await session.settled()).output);
    `);
      expect(ended).toEqual({ code: 0, output: "gone\n" });
    },
  );

  test(
    "a program over the storage of another process lives while only that process runs the session",
    ofCampaign,
    async () => {
      const path = await databasePath();
      const ended = await runProgram(`${PRELUDE}
      const storage = await openSqliteStorage({ path: ${path} });
      const owner = createRuntime({ storage, agents: [asks] });
      const { sessionId } = await owner.start(asks);
      const runtime = createRuntime({ storage: await connectSqliteStorage({ path: ${path} }), adopt: false });
      const session = runtime.handle(sessionId);
      go(session);
      console.log(await session.result());
    `);
      expect(ended).toEqual({ code: 0, output: "gone\n" });
    },
  );

  test("a program lives until a timer of its session has fired, warm or released", ofCampaign, async () => {
    const path = await databasePath();
    const ended = await runProgram(`${PRELUDE}
      const storage = await openSqliteStorage({ path: ${path} });
      const runtime = createRuntime({ storage, agents: [naps] });
      const session = await runtime.start(naps);
      const over = session.result();
      runtime.releaseWaiting();
      console.log(await over, await (await runtime.start(naps)).result());
    `);
    expect(ended).toEqual({ code: 0, output: "rested rested\n" });
  });

  test("a program ends when it asked not to be kept, or when its runtime is closed", ofCampaign, async () => {
    const { code, output } = await runProgram(`${PRELUDE}
      const runtime = createRuntime({ storage: new MemoryStorage() });
      const session = await runtime.start(asks);
      void session.settled({ unref: true });
      void session.result({ unref: true }).catch(() => {});
      const other = createRuntime({ storage: new MemoryStorage() });
      void (await other.start(asks)).settled().then(({ status }) => console.log(status));
      await other.close();
      process.on("exit", () => console.log("ends"));
    `);
    expect({ code, output }).toEqual({ code: 0, output: "released\nends\n" });
  });

  test("an unknown option of the wait is refused", async () => {
    const { code, output } = await runProgram(`${PRELUDE}
      const runtime = createRuntime({ storage: new MemoryStorage() });
      const session = await runtime.start(asks);
      await session.result({ unref: "yes" }).catch(({ code, message }) => console.log(code, message));
    `);
    expect(code).toBe(0);
    expect(output).toMatch(/^usage .*unref/);
  });

  test("a program lives until the coordinator has the result", ofCampaign, async () => {
    const fleet = await openFleet();
    onTestFinished(() => fleet.close());
    const asks = defineAgent({ name: "asks", run: async (ctx) => ctx.waitForSignal("go") });
    await fleet.runner({ agents: [asks] });
    const ended = await runProgram(`
      import { createClient } from "holdfast/client";
      const client = createClient({ url: ${JSON.stringify(fleet.url)}, token: ${JSON.stringify(await fleet.token("user", "ada"))} });
      const session = await client.sessions.start("asks");
      setTimeout(() => session.signal("go", "gone"), 50).unref();
      console.log(await session.result());
    `);
    expect(ended).toEqual({ code: 0, output: "gone\n" });
  });
});

async function databasePath(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-program-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return JSON.stringify(join(folder, "agents.db"));
}
