// Tasks that the process of their session has no handler for: done by a runner that has, as sessions of their
// own (K10b).

import {
  createRuntime,
  defineAgent,
  defineTask,
  NonRetryableError,
  type TaskContext,
} from "@holdfast/runtime";
import { coordinatorQueue, queuedTasks } from "@holdfast/runner";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import { openSqliteStorage } from "@holdfast/storage/sqlite";
import { gate } from "@holdfast/testkit/test-runtime";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { startSession } from "../testing/coordinator-client.ts";
import { ended, outputOf, PATIENCE, sessionsOf } from "../testing/fleet-sessions.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet | undefined;
afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

/** Schedules a task by its name alone, as a process without the handler does. */
const asks = defineAgent({ name: "asks", run: async (ctx, input) => ctx.scheduleTask("work", input) });

describe("a queued task", () => {
  test("a queued task runs at a runner that has its handler, and its handler sees the same context", async () => {
    fleet = await openFleet();
    const seen: Partial<TaskContext>[] = [];
    const work = defineTask({
      name: "work",
      run: (input: { n: number }, { sessionId, taskId, attempt, idempotencyKey }) => {
        seen.push({ sessionId, taskId, attempt, idempotencyKey });
        return { doubled: input.n * 2 };
      },
    });
    await fleet.runner({ agents: [asks] });
    await fleet.runner({ tasks: [work] });
    const sessionId = await startSession(fleet, { agent: "asks", input: { n: 21 } });
    expect(await outputOf(fleet, sessionId)).toEqual({ doubled: 42 });
    const taskId = `${sessionId}-0`;
    expect(seen).toEqual([{ sessionId, taskId, attempt: 1, idempotencyKey: taskId }]);
    // It was only there for its outcome, which is committed.
    await vi.waitFor(async () => expect(await sessionsOf(fleet!, "task:work")).toEqual([]), PATIENCE);
  });

  test("a task is not queued where the handler is", async () => {
    fleet = await openFleet();
    const work = defineTask({ name: "work", run: (input: unknown) => input });
    await fleet.runner({ agents: [asks], tasks: [work] });
    expect(await outputOf(fleet, await startSession(fleet, { agent: "asks", input: 1 }))).toBe(1);
    const rows = await fleet.storage.reader.audit({ limit: 1_000 });
    expect(rows.filter(({ action }) => action === "session.start")).toHaveLength(1);
  });

  test("a failed queued task is tried again by the policy of its session, and fails with its handler's error", async () => {
    fleet = await openFleet();
    const attempts: number[] = [];
    const work = defineTask({
      name: "work",
      run: (final: boolean, { attempt }) => {
        attempts.push(attempt);
        if (final) throw new NonRetryableError("never");
        throw new Error(`no ${attempt}`);
      },
    });
    const twice = defineAgent({
      name: "twice",
      run: async (ctx, input) => {
        try {
          await ctx.scheduleTask("work", input, { retry: { maxAttempts: 2, initialDelayMs: 1 } });
        } catch (error) {
          const { code, attempts: tried, cause } = error as { code: string; attempts: number; cause: Error };
          return { code, tried, name: cause.name, message: cause.message };
        }
      },
    });
    await fleet.runner({ agents: [twice] });
    await fleet.runner({ tasks: [work] });
    expect(await outputOf(fleet, await startSession(fleet, { agent: "twice", input: false }))).toEqual({
      code: "task_failed",
      tried: 2,
      name: "Error",
      message: "no 2",
    });
    expect(await outputOf(fleet, await startSession(fleet, { agent: "twice", input: true }))).toMatchObject({
      tried: 1,
      name: "NonRetryableError",
    });
    expect(attempts).toEqual([1, 2, 1]);
  });

  test("a queued task outlives its session's runner: the next runner finds the task and does not start it again", async () => {
    fleet = await openFleet();
    const done = gate<string>();
    let begun = 0;
    const work = defineTask({ name: "work", run: () => (begun++, done.opened) });
    const first = await fleet.runner({ agents: [atMostOnce], graceMs: 1 });
    await fleet.runner({ tasks: [work] });
    const sessionId = await startSession(fleet, { agent: "at-most-once" });
    await vi.waitFor(() => expect(begun).toBe(1), PATIENCE);
    await first.stop();
    const second = await fleet.runner({ agents: [atMostOnce] });
    await vi.waitFor(() => expect(second.health().held).toBe(1), PATIENCE);
    done.open("done");
    expect(await outputOf(fleet, sessionId)).toBe("done");
    expect(begun).toBe(1);
    const journal = await fleet.storage.reader.journal(sessionId, 0, 100);
    expect(journal.map(({ type }) => type)).not.toContain("attempt_lost");
  });

  // Or it would be done once more, after its outcome was committed.
  test("H7: a queued task is withdrawn by the next runner of its session when that has the handler", async () => {
    fleet = await openFleet();
    const begun: number[] = [];
    const work = defineTask({
      name: "work",
      run: (_: unknown, { attempt }) => {
        begun.push(attempt);
        return attempt;
      },
    });
    const first = await fleet.runner({ agents: [asks], graceMs: 1 });
    const sessionId = await startSession(fleet, { agent: "asks" });
    await vi.waitFor(async () => expect(await sessionsOf(fleet!, "task:work")).toHaveLength(1), PATIENCE);
    await first.stop();
    await fleet.runner({ agents: [asks], tasks: [work], maxRuns: 1 });
    expect(await outputOf(fleet, sessionId)).toBe(2);
    expect(await sessionsOf(fleet, "task:work")).toEqual([]);
    expect(begun).toEqual([2]);
  });

  test("a queued task continues at another runner when its own is stopped in the middle", async () => {
    fleet = await openFleet();
    const begun: string[] = [];
    const on = (name: string, ends: boolean) =>
      defineTask({
        name: "work",
        run: async (_: unknown, { signal }: TaskContext) => {
          begun.push(name);
          if (!ends) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
          return name;
        },
      });
    await fleet.runner({ agents: [asks] });
    const first = await fleet.runner({ tasks: [on("first", false)], graceMs: 1 });
    const sessionId = await startSession(fleet, { agent: "asks" });
    await vi.waitFor(() => expect(begun).toEqual(["first"]), PATIENCE);
    await fleet.runner({ tasks: [on("second", true)] });
    await first.stop();
    expect(await outputOf(fleet, sessionId)).toBe("second");
  });

  test("a queued task is aborted where it runs at its session's deadline, and is not started again", async () => {
    fleet = await openFleet();
    const seen: string[] = [];
    const work = defineTask({
      name: "work",
      run: async (_: unknown, { signal }: TaskContext) => {
        seen.push("begun");
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        seen.push("aborted");
      },
    });
    const hasty = defineAgent({
      name: "hasty",
      run: (ctx) =>
        ctx
          .scheduleTask("work", 1, { deadlineMs: 1_500, retry: { maxAttempts: 9, initialDelayMs: 1 } })
          .catch((error: { cause: { code: string } }) => error.cause.code),
    });
    await fleet.runner({ agents: [hasty] });
    await fleet.runner({ tasks: [work] });
    const sessionId = await startSession(fleet, { agent: "hasty" });
    expect(await outputOf(fleet, sessionId)).toBe("task_timeout");
    await vi.waitFor(() => expect(seen).toEqual(["begun", "aborted"]), PATIENCE);
    await vi.waitFor(async () => expect(await sessionsOf(fleet!, "task:work")).toEqual([]), PATIENCE);
  });

  test("that is not wanted any more is cancelled where it runs, and removed", async () => {
    fleet = await openFleet();
    const seen: string[] = [];
    const work = defineTask({
      name: "work",
      run: async (_: unknown, { signal }: TaskContext) => {
        seen.push("begun");
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        seen.push("aborted");
      },
    });
    await fleet.runner({ agents: [asks] });
    await fleet.runner({ tasks: [work] });
    const sessionId = await startSession(fleet, { agent: "asks" });
    await vi.waitFor(() => expect(seen).toEqual(["begun"]), PATIENCE);
    await fleet.remote.commit(
      [{ type: "request_cancel", sessionId, mode: "graceful", graceMs: 50 }],
      Date.now(),
    );
    expect(await ended(fleet, sessionId)).toMatchObject({ status: "cancelled" });
    await vi.waitFor(() => expect(seen).toEqual(["begun", "aborted"]), PATIENCE);
    await vi.waitFor(async () => expect(await sessionsOf(fleet!, "task:work")).toEqual([]), PATIENCE);
  });

  // The asking process may die between the cancel and the removal of an attempt that it withdraws.
  test.each([
    ["the asking session has withdrawn is made again", "withdrawn by the session that asked for it", "done"],
    ["a person cancels fails its task", "not today", undefined],
  ])("an attempt that %s", async (_, reason, output) => {
    fleet = await openFleet();
    await fleet.runner({ agents: [asks] });
    const sessionId = await startSession(fleet, { agent: "asks" });
    await vi.waitFor(async () => expect(await sessionsOf(fleet!, "task:work")).toHaveLength(1), PATIENCE);
    const [attempt] = await sessionsOf(fleet, "task:work");
    const cancel = { type: "request_cancel", sessionId: attempt!.sessionId, mode: "hard", reason } as const;
    await fleet.remote.commit([{ ...cancel, graceMs: 0 }], Date.now());
    await fleet.runner({ tasks: [defineTask({ name: "work", run: () => "done" })] });
    const session = await ended(fleet, sessionId);
    if (output === undefined)
      expect(session.error?.message).toContain("the queued task was cancelled: not today");
    else expect(session.output).toBe(JSON.stringify(output));
  });

  test("a queued task belongs to its session's user, and a runner of another user never sees it", async () => {
    fleet = await openFleet();
    const work = (name: string) => defineTask({ name: "work", run: () => name });
    const token = await fleet.token("user", "ada");
    await fleet.runner({ agents: [asks] });
    await fleet.runner({ tasks: [work("bob")], owner: "bob" });
    const sessionId = await startSession(fleet, { agent: "asks" }, token);
    await vi.waitFor(async () => expect(await sessionsOf(fleet!, "task:work")).toHaveLength(1), PATIENCE);
    expect((await sessionsOf(fleet, "task:work"))[0]).toMatchObject({ placement: { owner: "ada" } });
    await fleet.runner({ tasks: [work("ada")], owner: "ada" });
    expect(await outputOf(fleet, sessionId)).toBe("ada");
  });
});

// The session lives in a file of its user, and only its tasks are at the coordinator.
describe("hybrid: a runtime with its own SQLite file", () => {
  test("runners do the runtime's tasks, and a later runtime continues with them", async () => {
    fleet = await openFleet();
    const done = gate<string>();
    let begun = 0;
    const work = defineTask({
      name: "work",
      run: (input: unknown) => (begun++, done.opened.then((by) => [by, input])),
    });
    await fleet.runner({ tasks: [work] });
    const token = await fleet.token("user", "ada");
    const path = join(mkdtempSync(join(tmpdir(), "holdfast-hybrid-")), "own.db");

    const first = await openHybrid(path, token);
    await first.runtime.start(atMostOnce, "input", { sessionId: "s" });
    await vi.waitFor(() => expect(begun).toBe(1), PATIENCE);
    await first.close();

    const second = await openHybrid(path, token);
    const handle = await second.runtime.resume("s");
    done.open("runner");
    expect(await handle.result()).toEqual(["runner", "input"]);
    expect(begun).toBe(1);
    await vi.waitFor(async () => expect(await sessionsOf(fleet!, "task:work")).toEqual([]), PATIENCE);
    await second.close();
  });

  async function openHybrid(path: string, token: string) {
    const storage = await openSqliteStorage({ path });
    const connection = new CoordinatorConnection({ url: fleet!.url, token });
    const runtime = createRuntime({
      storage,
      agents: [atMostOnce],
      queue: queuedTasks({ queue: coordinatorQueue(connection) }),
    });
    return {
      runtime,
      async close() {
        await runtime.close();
        await storage.close();
        connection.close();
      },
    };
  }
});

const atMostOnce = defineAgent({
  name: "at-most-once",
  run: async (ctx, input) => ctx.scheduleTask("work", input, { retry: { maxAttempts: 1 } }),
});
