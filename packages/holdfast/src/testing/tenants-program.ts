// A server whose requests belong to 64 tenants, which it keeps in an `AsyncLocalStorage`. A test shows with
// it that no agent and no step sees the context of another request.
//
// Arguments: the place of the first import of Holdfast ("outside" or "inside" of a request), and the storage
// ("memory", "sqlite" PATH, "postgres" URL SCHEMA, "fleet"). The first runtime and the first start are always
// inside a request. The program prints one line of JSON: how often each place saw which context. "own" is
// what the agent's code set around a call, "another" any other context.

import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { MessageChannel } from "node:worker_threads";
import type { AgentStorage, Session } from "@holdfast/core";
import type { Agent, Runtime } from "@holdfast/runtime";

const TENANTS = 64;

const [imported, storagePlace, at = "", schema = ""] = process.argv.slice(2);
/** The tenant of each request. */
const tenant = new AsyncLocalStorage<string>();
/** Set by the agent's own code. */
const job = new AsyncLocalStorage<string>();
const seen: Record<string, Record<string, number>> = {};

/** Count what a place sees. @param own what it should see of `job`, which is nothing for most places. */
function look(where: string, own?: string): void {
  const isOwn = tenant.getStore() === undefined && job.getStore() === own;
  const what = isOwn ? (own === undefined ? "none" : "own") : "another";
  const counts = (seen[where] ??= {});
  counts[what] = (counts[what] ?? 0) + 1;
}

const load = () => import("@holdfast/runtime");
if (imported === "outside") await load();

interface Stand {
  readonly runtime: Runtime;
  start(id: string): Promise<void>;
  close(): Promise<void>;
}

/** Opened by the first request. */
let stand: Promise<Stand> | undefined;

async function open(): Promise<Stand> {
  const { createRuntime, defineAgent, defineTask, local } = await load();
  const registered = defineTask({
    name: "registered",
    run: async (id: string) => {
      look("registered task");
      await pause(1);
      look("registered task after its await");
      return id;
    },
  });
  const answer = defineTask({ name: "answer", run: () => look("handler of a child's request") });
  const checked = {
    "~standard": {
      version: 1 as const,
      vendor: "test",
      validate: (value: unknown) => (look("schema of a signal"), { value }),
    },
  };
  const child = defineAgent({
    name: "child",
    run: async (ctx) => {
      look("child");
      await ctx.requestFromParent("ask", null);
      look("child after its request");
      await ctx.run("helping", () => look("step of a child"));
    },
  });
  const agent = defineAgent({
    name: "order",
    tasks: [registered],
    agents: [child],
    handlers: { ask: answer },
    run: async (ctx, id: unknown) => {
      const own = `job of ${String(id)}`;
      look("agent");
      // A context that outlives its call, which would stay in a context that is shared.
      job.enterWith(own);
      await ctx.run("first", () => look("step under enterWith", own));
      look("agent after enterWith", own);
      job.enterWith(undefined as unknown as string);
      await ctx.run("step", async () => {
        look("step");
        await pause(1);
        look("step after its await");
      });
      await job.run(own, () => ctx.run("bound", async () => (look("step within run", own), await pause(1))));
      const inParallel = (mine: string) =>
        job.run(mine, () => ctx.run("all", () => look("parallel step", mine)));
      await Promise.all([1, 2, 3].map((n) => inParallel(`${own} ${n}`)));
      let attempt = 0;
      const failing = (): void => {
        look("attempts of a step", own);
        if (++attempt < 3) throw new Error("again");
      };
      await job.run(own, () => ctx.run("retried", failing, { retry: { maxAttempts: 3, initialDelayMs: 1 } }));
      await ctx.scheduleTask(registered, String(id));
      look("agent after a task");
      await ctx.sleep(5);
      look("agent after a timer");
      await ctx.waitForSignal("go", { schema: checked });
      look("agent after a signal");
      const spawned = ctx.spawnAgent(local("child"), null);
      await ctx.waitForChild(spawned);
      look("agent after a child");
      const long = ctx.run("aborted", async (task) => {
        await new Promise<void>((resolve) => {
          task.signal.addEventListener("abort", () => (look("listener of an abort"), resolve()));
        });
        look("step after an abort");
      });
      await ctx.race([long, ctx.waitForSignal("end")]);
      look("agent at its end");
    },
  });
  const agents = [agent, child];
  if (storagePlace === "fleet") return openFleetStand(agents);
  const storage = await openStorage();
  const runtime = createRuntime({ storage, agents, development: true, warmMs: 20 });
  const close = async (): Promise<void> => {
    await runtime.close();
    await storage.close();
  };
  const start = async (id: string): Promise<void> => {
    await runtime.start(agent, id, { sessionId: idOf(id) });
  };
  return { runtime, start, close };
}

async function openStorage(): Promise<AgentStorage> {
  if (storagePlace === "memory") return new (await load()).MemoryStorage();
  if (storagePlace === "sqlite") {
    const { openSqliteStorage } = await import("@holdfast/storage/sqlite");
    return openSqliteStorage({ path: at });
  }
  const { openPostgresStorage } = await import("@holdfast/storage/postgres");
  return openPostgresStorage({ url: at, schema });
}

/** A coordinator, a runner with the agents, and a program that only asks, all in this process. */
async function openFleetStand(agents: readonly Agent[]): Promise<Stand> {
  const { openFleet } = await import("./fleet.ts");
  const { startSession } = await import("./coordinator-client.ts");
  const { createRuntime } = await load();
  const fleet = await openFleet();
  await fleet.runner({ agents: [...agents], maxRuns: 2 * TENANTS });
  const runtime = createRuntime({ storage: fleet.remote, adopt: false });
  return {
    runtime,
    start: async (id) => void (await startSession(fleet, { agent: "order", input: id, sessionId: idOf(id) })),
    close: async () => {
      await runtime.close();
      await fleet.close();
    },
  };
}

const idOf = (id: string): string => `t-${id}`;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function act(id: string, what: string): Promise<void> {
  const { runtime, start } = await (stand ??= open());
  if (what === "start") return start(id);
  if (what === "pause") return void (await runtime.pause(idOf(id)));
  if (what === "unpause") return void (await runtime.unpause(idOf(id)));
  await runtime.signal(idOf(id), what, id);
}

const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? "/", "http://here");
  const [id, what] = [searchParams.get("id") ?? "", searchParams.get("what") ?? ""];
  void tenant
    .run(`tenant ${id}`, () => act(id, what))
    .then(
      () => response.end("done"),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
}).listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = server.address() as AddressInfo;

/** Act for a tenant: by a request, or by a message on a port that was made in its context. */
async function ask(n: number, what: string): Promise<void> {
  if (n % 2 === 0) {
    const response = await fetch(`http://127.0.0.1:${port}/?id=${n}&what=${what}`);
    if (!response.ok) throw new Error(await response.text());
    return;
  }
  await tenant.run(`tenant ${n}`, async () => {
    const { port1, port2 } = new MessageChannel();
    const acted = new Promise<void>((resolve, reject) => {
      port1.on("message", (id: string) => void act(id, what).then(resolve, reject));
    });
    port2.postMessage(String(n));
    await acted.finally(() => port1.close());
  });
}

const tenants = Array.from({ length: TENANTS }, (_, n) => n);
await ask(0, "start");
await Promise.all(tenants.slice(1).map((n) => ask(n, "start")));
const { runtime, close } = await stand!;
const all = tenants.map((n) => idOf(String(n)));

/** Look at the sessions until every one of them is as wanted. */
async function become(isWanted: (session: Session) => boolean): Promise<void> {
  for (const sessionId of all) {
    while (!isWanted(await runtime.handle(sessionId).session())) await pause(50);
  }
}

const waitsFor = (name: string) => (session: Session) =>
  session.waits.some((wait) => wait.type === "signal" && wait.name === name);

await become(waitsFor("go"));
await Promise.all(tenants.map((n) => ask(n, "pause")));
await Promise.all(tenants.map((n) => ask(n, "unpause")));
// Another tenant than the one of the session.
await Promise.all(tenants.map((n) => tenant.run("support", () => act(String(n), "go"))));
await become(waitsFor("end"));
await Promise.all(tenants.map((n) => ask(n, "end")));
await become((session) => session.status === "completed");
await close();
server.close();
console.log(JSON.stringify(seen));
process.exit();
