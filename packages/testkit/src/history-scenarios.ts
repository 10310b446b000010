// One agent and its course per behaviour, for the golden histories.
//
// A history is never edited and never deleted, so the requests of an agent here never change. A changed
// behaviour gets a new scenario under a new name.

import { setTimeout } from "node:timers";
import {
  defineAgent,
  defineTask,
  local,
  type Agent,
  type SessionHandle,
  type TaskDefinition,
} from "@holdfast/runtime";
import { turns, type TestClock } from "./test-runtime.ts";

type Run = (ctx: Parameters<Agent["main"]>[0]) => Promise<unknown>;

export interface HistoryScenario {
  /** The name of its file. */
  readonly name: string;
  readonly shows: string;
  readonly input?: unknown;
  readonly run: Run;
  readonly tasks?: readonly TaskDefinition[];
  readonly agents?: readonly Agent[];
  /** The actions of the outside world. Without them the session runs through alone. */
  readonly course?: (handle: SessionHandle, clock: TestClock) => Promise<void>;
  /** The process ends after so many of its commits, and another goes on. */
  readonly diesAfter?: number;
}

/** Finds nothing, however often it is asked. */
const poll = defineTask({ name: "poll", guardRepeats: true, run: () => "nothing" }) as TaskDefinition;

async function pollTwelveTimes(ctx: Parameters<Run>[0]): Promise<unknown> {
  const seen: unknown[] = [];
  for (let n = 0; n < 12; n++) seen.push(await ctx.scheduleTask(poll, "x"));
  return [seen.length, new Set(seen).size];
}

const notifying = defineAgent<number>({
  name: "teller",
  run: async (ctx, n) => {
    ctx.signalParent("hello", n);
    return [n, await ctx.waitForSignal("word")];
  },
}) as Agent;

const say = (ctx: Parameters<Run>[0], content: unknown) => ctx.appendEntry({ role: "assistant", content });

export const HISTORY_SCENARIOS: readonly HistoryScenario[] = [
  {
    name: "sequence",
    shows: "tasks one after the other, each result used by the next",
    input: { start: 1 },
    async run(ctx) {
      const { start } = ctx.input as { start: number };
      const a = await ctx.run("double", () => start * 2);
      const b = await ctx.run("double", () => a * 2);
      return { a, b };
    },
  },
  {
    name: "fan-out",
    shows: "tasks at once under Promise.all, with functions of their own between",
    async run(ctx) {
      const branch = async (name: string) => {
        const first = await ctx.run(`${name} one`, () => 1);
        say(ctx, `${name} has ${first}`);
        return ctx.run(`${name} two`, () => first + 1);
      };
      return Promise.all(["a", "b", "c"].map(branch));
    },
  },
  {
    name: "race",
    shows: "ctx.race, select and any, whose losing waits are withdrawn",
    async run(ctx) {
      const first = await ctx.race([ctx.waitForSignal("never"), ctx.run("quick", () => "task")]);
      const second = await ctx.select({ late: ctx.sleep(60_000), go: ctx.waitForSignal("go") });
      const third = await ctx.any([ctx.sleep(5).then(() => "timer"), ctx.waitForSignal("never")]);
      return [first, second.key, third];
    },
    async course(handle, clock) {
      await turns(20);
      await handle.signal("go", 1);
      await clock.advance(10);
    },
  },
  {
    name: "signals",
    shows: "signals before and after their waits, ready, taken, drained, and one without a payload",
    async run(ctx) {
      await ctx.run("settle", () => null);
      const got: unknown[] = [ctx.hasSignal("early"), await ctx.waitForSignal("early")];
      got.push(await ctx.waitForSignal("late", { timeoutMs: 60_000 }));
      await ctx.signalReady("ci.done");
      got.push(ctx.drainSignals("ci.*"), ctx.takeSignal("bare"), ctx.takeSignal("bare") ?? "none");
      return got;
    },
    async course(handle) {
      await handle.signal("early", { n: 1 });
      await turns(20);
      await handle.signal("bare");
      await handle.signal("ci.failed", "x");
      await handle.signal("late", ["later"]);
      await turns(20);
      await handle.signal("ci.done", "y");
    },
  },
  {
    name: "timers",
    shows: "sleep, sleepUntil, a wait that times out, and now",
    async run(ctx) {
      const began = ctx.now();
      await ctx.sleep(1_000);
      await ctx.sleepUntil(began + 5_000);
      const code = await ctx
        .waitForSignal("never", { timeoutMs: 2_500.5 })
        .catch((error: { code: string }) => error.code);
      return [ctx.now() - began, code];
    },
    course: (_handle, clock) => clock.advance(20_000),
  },
  {
    name: "retries",
    shows: "a task that fails twice and then does not, and one that fails for good",
    async run(ctx) {
      const flaky = await ctx.run("flaky", ({ attempt }) =>
        attempt < 3 ? fail(`attempt ${attempt}`) : attempt,
      );
      const broken = await ctx
        .run("broken", () => fail("always"), { retry: { maxAttempts: 2, initialDelayMs: 10 } })
        .catch((error: Error) => error.message);
      return [flaky, broken];
    },
    course: (_handle, clock) => clock.advance(10_000),
  },
  {
    name: "checkpoints",
    shows:
      "turns with a state, entries and random numbers, signals living through them, and tasks waited for and cancelled",
    async run(ctx) {
      const state = (ctx.state as { turn: number; draws: number[] } | undefined) ?? { turn: 0, draws: [] };
      say(ctx, { turn: state.turn });
      if (state.turn === 3) return [state.draws.length, new Set(state.draws).size, ctx.takeSignal("kept")];
      const next = { turn: state.turn + 1, draws: [...state.draws, ctx.random()] };
      if (state.turn === 0) await ctx.run("work", () => 1);
      if (state.turn === 1) void ctx.run("waited for", () => 2);
      void ctx.sleep(99_000);
      return ctx.checkpoint(next, { openTasks: state.turn === 1 ? "wait" : "cancel" });
    },
    async course(handle) {
      await handle.signal("kept", 1);
    },
  },
  {
    name: "cancelled",
    shows: "a graceful cancel: waits reject, a task finishes, clean-up waits, the output is partial",
    async run(ctx) {
      const task = ctx.run(
        "running",
        ({ signal }) => new Promise((resolve) => void setTimeout(() => resolve(String(signal.aborted)), 0)),
      );
      const codes = [await ctx.waitForSignal("never").catch((error: { code: string }) => error.code)];
      codes.push(
        await ctx.sleep(5).then(
          () => "slept",
          (error: { code: string }) => error.code,
        ),
      );
      const tidied = await ctx.cleanup((c) => c.waitForSignal("tidy"));
      return [codes, tidied, await task];
    },
    async course(handle) {
      await turns(10);
      await handle.cancel({ reason: "enough" });
      await turns(20);
      await handle.signal("tidy", "tidied");
      await new Promise((resolve) => setTimeout(resolve, 20));
    },
  },
  {
    name: "failed",
    shows: "an agent that throws, with open tasks and waits",
    async run(ctx) {
      void ctx.run("unwanted", () => new Promise(() => {}));
      void ctx.sleep(99_000);
      await ctx.run("first", () => 1);
      throw new RangeError("out of range", { cause: new Error("root") });
    },
  },
  {
    name: "unobserved",
    shows: "tasks nobody looks at are awaited at the end",
    async run(ctx) {
      void ctx.run("one", () => 1);
      void ctx.run("two", () => 2);
      return "output";
    },
  },
  {
    name: "question",
    shows: "questions to a person, answered out of order",
    async run(ctx) {
      const [plain, detailed] = [
        ctx.requestInput("sure?"),
        ctx.requestInput({ prompt: "which?", details: ["a", "b"] }, { answer: "any" }),
      ];
      return [await detailed, await plain];
    },
    async course(handle) {
      await turns(20);
      const { waits } = await handle.session();
      await handle.answer("b", { question: waits[1]!.id });
      await turns(20);
      await handle.answer({ approved: true });
    },
  },
  {
    name: "withdrawn",
    shows: "tasks and waits cancelled by hand, before and after they started",
    async run(ctx) {
      const [never, soon] = [
        ctx.run("never started", () => 1),
        ctx.run("aborted", () => new Promise(() => {})),
      ];
      never.cancel();
      await ctx.run("meanwhile", () => null);
      soon.cancel();
      return Promise.all([never, soon].map((task) => task.catch((error: { code: string }) => error.code)));
    },
  },
  {
    name: "keyed",
    shows:
      "tasks of one idempotency key, time-outs and retry policies in the record, a conversation as input",
    async run(ctx) {
      const root = ctx.appendEntry({ role: "user", content: "hello" });
      say(ctx, "branch one");
      ctx.appendEntry({ role: "assistant", content: "branch two", parentId: root });
      const options = {
        idempotencyKey: "k",
        timeoutMs: 5_000,
        retry: { maxAttempts: 2, nonRetryable: ["TypeError"] },
      };
      const [a, b] = [ctx.run("once", () => 1, options), ctx.run("once", () => 2, options)];
      return [await a, await b, ctx.conversation()];
    },
  },
  {
    name: "lost-attempt",
    shows:
      "a process that ended while a task ran: the attempt is noted as lost, its outcome kept before it is delivered",
    async run(ctx) {
      await ctx.run("first", () => 1);
      const attempt = await ctx.run("second", (task) =>
        task.attempt === 1 ? new Promise<number>(() => {}) : task.attempt,
      );
      await ctx.run("third", () => 3);
      return attempt;
    },
    diesAfter: 2,
  },
  {
    name: "at-most-once",
    shows: "maxAttempts: 1 and a process that ended: the outcome is unknown, and the agent is told",
    run: (ctx) =>
      ctx
        .run("charge", () => new Promise(() => {}), { retry: { maxAttempts: 1 } })
        .catch((error: Error) => error.message.replace(/^.*: /, "")),
    diesAfter: 1,
  },
  {
    name: "uncertain-effect",
    shows: "an effect that happens once and a process that ended: the agent gets an error of its own class",
    run: (ctx) =>
      ctx.run("charge", () => new Promise(() => {}), { effect: "once" }).catch((error: Error) => error.name),
    diesAfter: 1,
  },
  {
    name: "guarded-repeats",
    shows: "a guarded task whose result repeats, noted at the fifth time and asked about at the tenth",
    tasks: [poll],
    run: pollTwelveTimes,
    async course(handle) {
      await turns(200);
      await handle.answer({ approved: true });
    },
  },
  {
    name: "held-withdrawn",
    shows: "a guarded task that is held back by the question about its repeats, and cancelled",
    tasks: [poll],
    async run(ctx) {
      for (let n = 0; n < 9; n++) await ctx.scheduleTask(poll, "x");
      const held = ctx.scheduleTask(poll, "x");
      const refusedWith = held.catch((error: Error) => error.name);
      await ctx.waitForSignal("go");
      held.cancel();
      return refusedWith;
    },
    async course(handle) {
      await turns(200);
      await handle.signal("go");
    },
  },
  {
    name: "cancelled-after-return",
    shows: "a graceful cancel of an agent that has returned, with a task that its end waits for",
    async run(ctx) {
      void ctx.run("unobserved", () => new Promise(() => {}));
      return "output";
    },
    async course(handle) {
      await turns(20);
      await handle.cancel();
    },
  },
  {
    name: "children",
    shows: "children asked for, told, heard, and waited for; one that is cancelled",
    agents: [notifying],
    async run(ctx) {
      const [one, other] = [1, 2].map((n) => ctx.spawnAgent(local(notifying), n));
      const hello = await ctx.waitForChildEvent(one!);
      ctx.signalChild(one!, "word", "go");
      const output = await ctx.waitForChild(one!);
      ctx.cancelChild(other!, { hard: true, reason: "enough" });
      return [
        hello,
        output,
        await ctx.waitForChild(other!).catch((error: { ending: string }) => error.ending),
      ];
    },
    course: async () => turns(200),
  },
  {
    name: "patched",
    shows: "code that was changed while its sessions waited, asked for by ctx.patched",
    async run(ctx) {
      const a = await ctx.run("load", () => 1);
      if (ctx.patched("audit")) await ctx.run("audit", () => 0);
      const go = await ctx.waitForSignal("go");
      return [
        a,
        go,
        await ctx.run(ctx.patched("publish twice") ? "publish both" : "publish", () => "published"),
      ];
    },
    async course(handle) {
      await turns(20);
      await handle.signal("go", "yes");
    },
  },
];

function fail(message: string): never {
  throw new Error(message);
}
