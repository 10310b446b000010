// Runners and a coordinator together: sessions run on a runner that offers their agent, also through
// failures.

import type { HoldfastError } from "@holdfast/core";
import { startRunner, type RunnerEvent } from "@holdfast/runner";
import { defineAgent, defineTask, local, MemoryStorage, remote } from "@holdfast/runtime";
import { isUrgentAbort } from "@holdfast/system";
import { mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gate } from "@holdfast/testkit/test-runtime";
import { openSqliteStorage } from "@holdfast/storage/sqlite";
import { afterEach, describe, expect, test, vi } from "vitest";
import { startSession } from "../testing/coordinator-client.ts";
import { ended, outputOf, PATIENCE, sessionsOf, signal, sessionBecomes } from "../testing/fleet-sessions.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet | undefined;
afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

const echo = defineAgent({ name: "echo", run: async (ctx, input) => ctx.run("echo", () => input) });
const asks = defineAgent({
  name: "asks",
  run: async (ctx) => {
    const first = await ctx.waitForSignal("go");
    const second = await ctx.waitForSignal("go");
    return [first, second];
  },
});

describe("a runner", () => {
  test("a runner receives sessions that it offers, and each segment costs one request", async () => {
    fleet = await openFleet();
    const runner = await fleet.runner({ agents: [echo] });
    const before = await storageCalls(fleet);
    const sessionId = await startSession(fleet, { agent: "echo", input: { n: 1 } });
    await ended(fleet, sessionId);
    // The runner's requests and their results: claim and snapshot came with the poll.
    expect(before).toEqual({});
    expect(await storageCalls(fleet)).toEqual({ "StorageService.commit": 2 });
    expect(await fleet.storage.reader.session(sessionId)).toMatchObject({
      status: "completed",
      output: '{"n":1}',
    });
    expect(runner.events.map(({ type }) => type)).toEqual([
      "connecting",
      "registered",
      "started",
      "received",
    ]);
  });

  test("that registers again gives up at once, though nobody answers it", async () => {
    const storage = new MemoryStorage();
    fleet = await openFleet({ storage });
    const stateFolder = mkdtempSync(join(tmpdir(), "holdfast-runner-"));
    await (await fleet.runner({ agents: [echo], stateFolder })).stop();
    const commit = storage.commit.bind(storage);
    const asked = gate<undefined>();
    storage.commit = () => {
      asked.open(undefined);
      return new Promise(() => {});
    };
    const giveUp = new AbortController();
    const { signal: gaveUp } = giveUp;
    const options = { url: fleet.url, stateFolder, workspace: "/project", agents: [echo], signal: gaveUp };
    const again = startRunner(options);
    await asked.opened;
    giveUp.abort();
    await expect(again).rejects.toThrow();
    storage.commit = commit;
  });

  test("a runner resumes a waiting session when its signal arrives", async () => {
    fleet = await openFleet();
    await fleet.runner({ agents: [asks] });
    const sessionId = await startSession(fleet, { agent: "asks" });
    await sessionBecomes(fleet, sessionId, { status: "waiting" });
    await signal(fleet, sessionId, "go", 1);
    await signal(fleet, sessionId, "go", 2);
    await ended(fleet, sessionId);
    expect(await fleet.storage.reader.session(sessionId)).toMatchObject({ output: "[1,2]" });
  });

  test("the first run of a session is a start and each later one is a resume, also where storage counts tokens over all sessions", async () => {
    fleet = await openFleet({ storage: await openSqliteStorage({ path: join(newFolder(), "s.db") }) });
    const first = await fleet.runner({ agents: [asks] });
    const earlier = await startSession(fleet, { agent: "asks" });
    await sessionBecomes(fleet, earlier, { status: "waiting" });
    const sessionId = await startSession(fleet, { agent: "asks" });
    await sessionBecomes(fleet, sessionId, { status: "waiting" });
    await first.stop();
    const second = await fleet.runner({ agents: [asks] });
    for (const n of [1, 2]) await signal(fleet, sessionId, "go", n);
    await ended(fleet, sessionId);
    const runTypes = [first, second].map(({ events }) =>
      events.flatMap((event) =>
        event.type === "received" && event.sessionId === sessionId ? [event.runType] : [],
      ),
    );
    expect(runTypes).toEqual([["start_session"], ["resume_session"]]);
  });

  test("a runner holds no more than its limit, and releases waiting sessions for those with work", async () => {
    fleet = await openFleet();
    const runner = await fleet.runner({ agents: [echo, asks], maxRuns: 1 });
    const waiting = await startSession(fleet, { agent: "asks" });
    await sessionBecomes(fleet, waiting, { status: "waiting" });
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, n) => startSession(fleet!, { agent: "echo", input: n })),
    );
    for (const sessionId of ids) await ended(fleet, sessionId);
    expect(runner.health().held).toBeLessThanOrEqual(1);
  });

  test("a restarted runner keeps its identity without another registration token", async () => {
    fleet = await openFleet();
    const stateFolder = newFolder();
    const first = await fleet.runner({ agents: [echo], stateFolder });
    const [file] = readdirSync(stateFolder).filter((name) => name.endsWith(".json"));
    expect(statSync(join(stateFolder, file!)).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(stateFolder, file!), "utf8")).toContain("hf_rnr_");
    await expect(fleet.runner({ agents: [echo], stateFolder })).rejects.toMatchObject({ code: "locked" });
    await first.stop();
    const second = await fleet.runner({ agents: [echo], stateFolder, token: "" });
    expect(second.runnerId).toBe(first.runnerId);
    expect(await outputOf(fleet, await startSession(fleet, { agent: "echo", input: 1 }))).toBe(1);
  });

  test("a runner with another process's token waits until that process has gone, and names it", async () => {
    fleet = await openFleet();
    const stateFolder = newFolder();
    const first = await fleet.runner({ agents: [echo], stateFolder, hostname: "host-1" });
    const [file] = readdirSync(stateFolder).filter((name) => name.endsWith(".json"));
    const { token } = JSON.parse(readFileSync(join(stateFolder, file!), "utf8")) as { token: string };
    const lost = Promise.withResolvers<HoldfastError>();
    const log = (event: RunnerEvent) => void (event.type === "lost" && lost.resolve(event.error));
    const second = fleet.runner({ agents: [echo], token, log });
    expect(await lost.promise).toMatchObject({
      code: "duplicate_runner",
      message: expect.stringContaining("on host-1, since") as string,
    });
    await first.stop();
    expect((await second).runnerId).toBe(first.runnerId);
  });

  test("without a token, with a used one, or of another protocol is refused with what to do", async () => {
    fleet = await openFleet();
    await expect(fleet.runner({ agents: [echo], token: "" })).rejects.toMatchObject({
      code: "unauthenticated",
      fix: expect.stringContaining("HOLDFAST_TOKEN") as string,
    });
    const token = await fleet.token("registration", "once");
    await fleet.runner({ agents: [echo], token });
    await expect(fleet.runner({ agents: [echo], token })).rejects.toMatchObject({ code: "token_revoked" });
  });
});

describe("a session of a runner", () => {
  test("that is stopped is handed back at once, and goes on at another runner", async () => {
    fleet = await openFleet();
    const begun: string[] = [];
    const first = await fleet.runner({ agents: [slow("first", begun)], graceMs: 10 });
    const sessionId = await startSession(fleet, { agent: "slow" });
    await vi.waitFor(() => expect(begun).toEqual(["first"]), PATIENCE);
    await fleet.runner({ agents: [slow("second", begun, true)] });
    await first.stop();
    expect(await outputOf(fleet, sessionId)).toBe("second");
    expect(begun).toEqual(["first", "first aborted", "second"]);
    expect(await outcomes(fleet, sessionId)).toBe(1);
  });

  test("a draining runner finishes its session, however long that takes, and releases it once it only waits", async () => {
    fleet = await openFleet();
    const begun: string[] = [];
    const done = gate();
    const agent = defineAgent({
      name: "long",
      run: async (ctx) => {
        await ctx.run("work", async () => {
          begun.push("work");
          await done.opened;
        });
        return ctx.waitForSignal("go");
      },
    });
    const runner = await fleet.runner({ agents: [agent, asks], graceMs: 0 });
    const [long, waits] = [
      await startSession(fleet, { agent: "long" }),
      await startSession(fleet, { agent: "asks" }),
    ];
    await sessionBecomes(fleet, waits, { status: "waiting" });
    await vi.waitFor(() => expect(begun).toEqual(["work"]), PATIENCE);
    await drain(fleet, runner.runnerId);
    await vi.waitFor(async () => expect(await held(fleet!)).toEqual([long]), PATIENCE);
    done.open();
    expect(await runner.ended).toBeUndefined();
    await sessionBecomes(fleet, long, { status: "waiting" });
    expect(await held(fleet)).toEqual([]);
    expect(begun).toEqual(["work"]);
  });

  test("a draining runner that is stopped releases its session", async () => {
    fleet = await openFleet();
    const begun: string[] = [];
    const runner = await fleet.runner({ agents: [slow("first", begun)], graceMs: 0 });
    const sessionId = await startSession(fleet, { agent: "slow" });
    await vi.waitFor(() => expect(begun).toEqual(["first"]), PATIENCE);
    await drain(fleet, runner.runnerId);
    await vi.waitFor(() => expect(runner.health().status).toBe("draining"), PATIENCE);
    expect(await held(fleet)).toEqual([sessionId]);
    await runner.stop();
    expect(begun).toEqual(["first", "first aborted"]);
  });

  test("a session continues when the coordinator is away for a while, and nothing is done again", async () => {
    fleet = await openFleet();
    const begun: string[] = [];
    const done = gate();
    const agent = defineAgent({
      name: "long",
      run: async (ctx) => {
        await ctx.run("one", () => void begun.push("one"));
        await ctx.run("two", async () => {
          begun.push("two");
          await done.opened;
        });
        await ctx.waitForSignal("go");
        return ctx.run("three", () => begun.push("three"));
      },
    });
    const runner = await fleet.runner({ agents: [agent] });
    const sessionId = await startSession(fleet, { agent: "long" });
    await vi.waitFor(() => expect(begun).toEqual(["one", "two"]), PATIENCE);
    await fleet.restart();
    done.open();
    await sessionBecomes(fleet, sessionId, { status: "waiting" });
    await signal(fleet, sessionId, "go");
    expect(await outputOf(fleet, sessionId)).toBe(3);
    expect(begun).toEqual(["one", "two", "three"]);
    expect(runner.health()).toMatchObject({ status: "ok" });
  });

  test("a session whose deadline passes is cancelled without a request", async () => {
    fleet = await openFleet();
    await fleet.runner({ agents: [asks] });
    const sessionId = await startSession(fleet, { agent: "asks", timeoutMs: 300 });
    expect(await ended(fleet, sessionId)).toMatchObject({ status: "cancelled" });
  });

  test("that is cancelled hard is stopped at its runner", async () => {
    fleet = await openFleet();
    const begun: string[] = [];
    const work = defineTask({
      name: "work",
      run: async (_: null, task) => {
        begun.push("first");
        await new Promise((resolve) => task.signal.addEventListener("abort", resolve));
        // Its processes then get a moment to end, and no more.
        begun.push(isUrgentAbort(task.signal) ? "first aborted" : "first asked to stop");
      },
    });
    const runner = await fleet.runner({
      agents: [defineAgent({ name: "slow", tasks: [work], run: (ctx) => ctx.scheduleTask(work, null) })],
    });
    const sessionId = await startSession(fleet, { agent: "slow" });
    await vi.waitFor(() => expect(begun).toEqual(["first"]), PATIENCE);
    await fleet.remote.commit([{ type: "request_cancel", sessionId, mode: "hard", graceMs: 0 }], Date.now());
    await vi.waitFor(() => expect(begun).toEqual(["first", "first aborted"]), PATIENCE);
    await vi.waitFor(() => expect(runner.health().held).toBe(0), PATIENCE);
  });

  test("a session's remote children run on runners with their agent, also when its own runner does not know that agent", async () => {
    fleet = await openFleet();
    const parent = defineAgent({
      name: "parent",
      run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(remote("where"))),
    });
    await fleet.runner({ agents: [parent], hostname: "here" });
    // The parent's runner cannot know the child's version either.
    await fleet.runner({ agents: [where("there", "7")], hostname: "there" });
    expect(await outputOf(fleet, await startSession(fleet, { agent: "parent" }))).toBe("there");
    const [child] = await sessionsOf(fleet, "where");
    expect(child!.agent.version).toBe("7");
  });

  // The parent received the child's end in an earlier process on another machine, so only the child's row has
  // it now.
  test("a session receives a child's end again after a checkpoint, though the child ran elsewhere", async () => {
    fleet = await openFleet();
    const parent = defineAgent({
      name: "parent",
      run: async (ctx): Promise<unknown> => {
        const known = ctx.state as string | undefined;
        if (known !== undefined) return ctx.waitForChild(ctx.child(known));
        const child = ctx.spawnAgent(remote("where"));
        await ctx.waitForChild(child);
        return ctx.checkpoint(child.sessionId);
      },
    });
    await fleet.runner({ agents: [parent] });
    await fleet.runner({ agents: [where("there")] });
    expect(await outputOf(fleet, await startSession(fleet, { agent: "parent" }))).toBe("there");
  });

  test("a session shares its conversation with children elsewhere, and they with theirs", async () => {
    fleet = await openFleet();
    const read = defineTask({
      name: "read",
      run: (input) =>
        (input as { conversation: { content: unknown }[] }).conversation.map(({ content }) => content),
    });
    const says = (name: string, then: string | undefined) =>
      defineAgent({
        name,
        tasks: [read],
        run: async (ctx): Promise<unknown> => {
          ctx.appendEntry({ role: "user", content: name });
          if (then === undefined) return ctx.scheduleTask(read, { conversation: ctx.conversation() });
          return ctx.waitForChild(ctx.spawnAgent(remote(then), undefined, { shared: "conversation" }));
        },
      });
    await fleet.runner({ agents: [says("first", "second")] });
    await fleet.runner({ agents: [says("second", "third")] });
    await fleet.runner({ agents: [says("third", undefined)] });
    expect(await outputOf(fleet, await startSession(fleet, { agent: "first" }))).toEqual([
      "first",
      "second",
      "third",
    ]);
  });

  test("a session shares its conversation with its successor on any runner, and that with its own", async () => {
    fleet = await openFleet();
    const read = defineTask({
      name: "read",
      run: (input) =>
        (input as { conversation: { content: unknown }[] }).conversation.map(({ content }) => content),
    });
    const says = (name: string, then: string | undefined) =>
      defineAgent({
        name,
        tasks: [read],
        run: async (ctx): Promise<unknown> => {
          ctx.appendEntry({ role: "user", content: name });
          if (then === undefined) return ctx.scheduleTask(read, { conversation: ctx.conversation() });
          const options = { shared: "conversation", completion: "immediate" } as const;
          return ctx.handoffToAgent(remote(then), undefined, options);
        },
      });
    const top = defineAgent({
      name: "top",
      run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(remote("first"))),
    });
    await fleet.runner({ agents: [top] });
    await fleet.runner({ agents: [says("first", "second")] });
    await fleet.runner({ agents: [says("second", "third")] });
    await fleet.runner({ agents: [says("third", undefined)] });
    expect(await outputOf(fleet, await startSession(fleet, { agent: "top" }))).toEqual([
      "first",
      "second",
      "third",
    ]);
  });

  test("a session's local children and those with a machine or labels run where they are wanted", async () => {
    fleet = await openFleet();
    const spawns = defineAgent({
      name: "spawns",
      run: async (ctx) =>
        ctx.all([
          ctx.waitForChild(ctx.spawnAgent(local("where"))),
          ctx.waitForChild(ctx.spawnAgent(remote("where"), undefined, { machine: "there" })),
          ctx.waitForChild(ctx.spawnAgent(remote("where"), undefined, { labels: { gpu: "yes" } })),
        ]),
    });
    await fleet.runner({ agents: [spawns], hostname: "here" });
    await fleet.runner({ agents: [where("here")], hostname: "here" });
    await fleet.runner({ agents: [where("there")], hostname: "there" });
    await fleet.runner({ agents: [where("gpu")], hostname: "other", labels: { gpu: "yes" } });
    const sessionId = await startSession(fleet, { agent: "spawns" });
    expect(await outputOf(fleet, sessionId)).toEqual(["here", "there", "gpu"]);
    const children = await fleet.storage.reader.sessions({ parent: sessionId, limit: 9 });
    expect(children.map(({ placement }) => placement?.demands).reverse()).toEqual([
      { machine: "here" },
      { machine: "there" },
      { gpu: "yes" },
    ]);
  });
});

function where(name: string, version = "1") {
  return defineAgent({ name: "where", version, run: async (ctx) => ctx.run("where", () => name) });
}

/** A task that ends only if it is told to, or when it is aborted. */
function slow(name: string, begun: string[], ends = false) {
  return defineAgent({
    name: "slow",
    run: async (ctx) =>
      ctx.run("work", async (task) => {
        begun.push(name);
        if (ends) return name;
        await new Promise<void>((resolve) => task.signal.addEventListener("abort", () => resolve()));
        begun.push(`${name} aborted`);
        return "aborted";
      }),
  });
}

/** Calls of the StorageService so far, by method, as the coordinator counts them. */
async function drain({ url, adminToken }: Fleet, runnerId: string): Promise<void> {
  const headers = { authorization: `Bearer ${adminToken}` };
  await fetch(`${url}/v1/runners/${runnerId}/drain`, { method: "POST", headers });
}

/** Sessions that somebody holds. */
async function held({ storage }: Fleet): Promise<readonly string[]> {
  return (await storage.heldClaims({ now: Date.now(), limit: 10 })).map(({ sessionId }) => sessionId);
}

async function storageCalls({ url, adminToken }: Fleet): Promise<Record<string, number>> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${adminToken}` } });
  const lines = (await response.text()).matchAll(
    /^holdfast_requests_total\{method="(StorageService\.\w+)".*\} (\d+)$/gm,
  );
  return Object.fromEntries([...lines].map(([, method = "", count]) => [method, Number(count)]));
}

async function outcomes(on: Fleet, sessionId: string): Promise<number> {
  const journal = await on.storage.reader.journal(sessionId, 0, 1_000);
  return journal.filter(({ type }) => type === "task_completed").length;
}

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), "holdfast-state-"));
}
