// K5: an agent whose asks differ from its journal is stopped, with both sides, and nothing is committed.

/* oxlint-disable unicorn/no-unnecessary-await, typescript/await-thenable, unicorn/no-single-promise-in-promise-methods -- agents do */

import {
  KernelStand,
  throughCodec,
  type StandAgent,
  type StandOptions,
} from "@holdfast/testkit/kernel-stand";
import { describe, expect, test } from "vitest";
import { mayAcceptDrift, NondeterminismError } from "../errors/errors.ts";
import { recordError } from "../errors/recorded-error.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { AgentContext } from "./context.ts";

/** The agent whose journal is used below, with the places where a changed one differs. */
interface Changes {
  readonly input?: unknown;
  readonly kind?: string;
  readonly swapped?: boolean;
  readonly extraFirst?: boolean;
  readonly extraLast?: boolean;
  readonly fewer?: boolean;
  readonly noEntry?: boolean;
  readonly otherEntry?: boolean;
  readonly otherRole?: boolean;
  readonly sleepMs?: number;
  readonly signal?: string;
  readonly notAwaited?: boolean;
  readonly endEarly?: boolean;
  readonly throwEarly?: boolean;
  readonly checkpointEarly?: boolean;
  readonly keyed?: boolean;
  readonly question?: string;
}

const agent =
  (changes: Changes = {}): StandAgent =>
  async (ctx) => {
    if (changes.extraFirst) void ctx.scheduleTask("work", "extra");
    if (!changes.noEntry) {
      ctx.appendEntry({
        role: changes.otherRole ? "system" : "user",
        content: changes.otherEntry ? "other" : "hello",
      });
    }
    const first = () =>
      ctx.scheduleTask(
        changes.kind ?? "work",
        changes.input ?? { n: 1 },
        changes.keyed ? { idempotencyKey: "k" } : {},
      );
    const second = () => ctx.scheduleTask("other", { n: 2 });
    const both = changes.fewer ? [first()] : changes.swapped ? [second(), first()] : [first(), second()];
    if (changes.endEarly) return "early";
    if (changes.throwEarly) throw new Error("early");
    if (changes.checkpointEarly) return ctx.checkpoint("early", { openTasks: "cancel" });
    if (!changes.notAwaited) await Promise.all(both);
    await ctx.sleep(changes.sleepMs ?? 50);
    await ctx.waitForSignal(changes.signal ?? "go");
    await ctx.requestInput(changes.question ?? "sure?");
    if (changes.extraLast) void ctx.scheduleTask("work", "one more");
    return "done";
  };

/** The journal of the unchanged agent, up to the wait for an answer to its question. */
async function record(): Promise<JournalRecord[]> {
  const stand = new KernelStand(agent());
  await stand.start();
  stand.seal();
  await stand.completeTask(2, "b");
  stand.seal();
  await stand.completeTask(1, "a");
  stand.seal();
  await stand.fireTimer(3);
  stand.seal();
  stand.send("go", 1);
  await stand.deliverOwn();
  stand.seal();
  return stand.journal;
}

const CORPUS: readonly (readonly [string, Changes, number, string, string])[] = [
  [
    "another input",
    { input: { n: 9 } },
    2,
    'task "work" with input {"n":1}',
    'task "work" with input {"n":9}',
  ],
  ["another kind", { kind: "test" }, 2, 'task "work"', 'task "test"'],
  ["another order", { swapped: true }, 2, 'task "work"', 'task "other"'],
  ["one command fewer", { fewer: true }, 3, 'task "other"', "nothing more"],
  ["one command more at the beginning", { extraFirst: true }, 1, 'entry of role "user"', 'task "work"'],
  ["an entry less", { noEntry: true }, 1, 'entry of role "user"', 'task "work"'],
  [
    "an entry with other words",
    { otherEntry: true },
    1,
    'entry of role "user" with input',
    'entry of role "user" with input',
  ],
  ["an entry of another role", { otherRole: true }, 1, 'entry of role "user"', 'entry of role "system"'],
  ["a key where there was none", { keyed: true }, 2, 'task "work" with input', 'task "work" with key "k"'],
  ["another time", { sleepMs: 60 }, 6, "timer for", "timer for"],
  ["another signal", { signal: "stop" }, 8, 'wait for signal "go"', 'wait for signal "stop"'],
  ["another question", { question: "really?" }, 10, '"prompt":"sure?"', '"prompt":"really?"'],
  ["not awaiting what was awaited", { notAwaited: true }, 4, "the outcome of task 2", "timer for"],
  // Tasks that no code observed are awaited (K13), so the divergence is found only after them.
  ["an end where it went on", { endEarly: true }, 6, "timer for", "complete"],
  ["an error where it went on", { throwEarly: true }, 4, "the outcome of task 2", "withdrawing"],
  ["a checkpoint where it went on", { checkpointEarly: true }, 4, "the outcome of task 2", "withdrawing"],
];

const DRIFT: ReadonlySet<string> = new Set([
  "another input",
  "an entry with other words",
  "another time",
  "another question",
]);

describe("changed code against a recorded journal", () => {
  test("both sides of a divergence in long inputs show the place where they differ", async () => {
    const run = (tail: string) => async (ctx: AgentContext) => {
      await ctx.scheduleTask("work", { text: `${"a".repeat(4_000)}${tail}` });
    };
    const before = new KernelStand(run("old end"));
    await before.start();
    before.seal();
    const stand = new KernelStand(run("new end"), { recorded: before.journal });
    await stand.replay();
    const { recorded, attempted } = stand.kernel.fault as NondeterminismError;
    expect(recorded).toMatch(/^task "work" with input … \(from character \d+\) a+old end"\}$/);
    expect(attempted).toMatch(/a+new end"\}$/);
  });

  // A person who follows the advice pays for these tasks once more, and so do the receivers of their effects.
  test.each([
    [0, undefined, "`holdfast fork ses_test --at 0` begins at its start with the new code; or"],
    [1, undefined, "at its start with the new code, and runs the task that has ended since a second time,"],
    [
      3,
      undefined,
      "at its start with the new code, and runs the 3 tasks that have ended since a second time,",
    ],
    [
      1,
      5,
      "`holdfast fork ses_test --at 5` begins at its last checkpoint with the new code, and runs the task",
    ],
  ])("the advice to fork after %i tasks says what is repeated", async (tasks, baseSeq, advice) => {
    const run = (end: string) => async (ctx: AgentContext) => {
      for (let i = 0; i < tasks; i++) await ctx.scheduleTask("work", i);
      await ctx.scheduleTask("work", end);
    };
    const from = baseSeq === undefined ? {} : { baseSeq, state: "checkpointed" };
    const before = new KernelStand(run("old end"), from);
    await before.start();
    before.seal();
    for (let i = 0; i < tasks; i++) {
      const asked = before.journal.findLast(({ type }) => type === "schedule_task");
      await before.completeTask((asked as { readonly id: number }).id);
      before.seal();
    }
    const stand = new KernelStand(run("new end"), { ...from, recorded: before.journal });
    await stand.replay();
    expect((stand.kernel.fault as NondeterminismError).fix).toContain(advice);
  });

  test.each(CORPUS)("%s is seen at its place, with both sides", async (name, changes, seq, expected, got) => {
    const recorded = await record();
    const stand = new KernelStand(agent(changes), { recorded });
    const stands = await stand.replay();
    expect(stands?.type).toBe("faulted");
    const fault = stand.kernel.fault as NondeterminismError;
    expect(fault).toBeInstanceOf(NondeterminismError);
    expect(fault).toMatchObject({ code: "nondeterminism", sessionId: "ses_test", seq });
    expect(fault.recorded).toContain(expected);
    expect(fault.attempted).toContain(got);
    expect(fault.recorded).not.toBe(fault.attempted);
    // The advice is given only where it can help: for a command of the same kind with another input.
    expect(fault.fix?.includes("accept-drift")).toBe(DRIFT.has(name));
    expect(mayAcceptDrift(recordError(fault))).toBe(DRIFT.has(name));
    // A hash is shown only beside another hash, because alone it would say nothing.
    if (!DRIFT.has(name) && !fault.attempted.includes("withdrawing")) {
      expect(fault.recorded).not.toMatch(/with input [\w-]{8}$/);
      expect(fault.attempted).not.toMatch(/with input [\w-]{8}$/);
    }
    // Nothing can be committed, and there are no outcomes to keep.
    expect(() => stand.seal()).toThrow(NondeterminismError);
    expect(stand.kernel.segment.salvage(1).records).toEqual([]);
    expect(stand.journal).toEqual(recorded);

    // The old code resumes without a trace of the divergence.
    const old = new KernelStand(agent(), { recorded });
    expect(await old.replay()).toEqual({ type: "open" });
    old.answer(5, true);
    expect(await old.deliverOwn()).toMatchObject({ type: "ended", ending: { output: '"done"' } });
  });

  test("an unknown option in a recorded ask replays, and in a new ask is refused", async () => {
    const run = (options: object) => async (ctx: AgentContext) => {
      await ctx.scheduleTask("work", 1, options);
      await ctx.scheduleTask("work", 2, options);
    };
    const before = new KernelStand(run({}));
    await before.start();
    before.seal();
    const stand = new KernelStand(run({ timeout: 5 }), { recorded: before.journal });
    expect(await stand.replay()).toEqual({ type: "open" });
    // The first new ask is checked.
    expect((await stand.completeTask(0)).type).toBe("faulted");
    expect(stand.kernel.fault?.message).toContain('no option "timeout"');
  });

  test("a command more than the journal has is found at the journal's end as well", async () => {
    const recorded = await record();
    const stand = new KernelStand(
      async (ctx, input) => {
        const going = agent()(ctx, input);
        for (let i = 0; i < 30; i++) await null;
        return going;
      },
      { recorded },
    );
    expect(await stand.replay()).toEqual({ type: "open" }); // Time alone changes nothing.

    const upToTasks = recorded.slice(0, 4);
    const more = new KernelStand(
      async (ctx) => {
        ctx.appendEntry({ role: "user", content: "hello" });
        void ctx.scheduleTask("work", { n: 1 });
        void ctx.scheduleTask("other", { n: 2 });
        void ctx.scheduleTask("work", "one more");
        await ctx.waitForSignal("never");
      },
      { recorded: upToTasks },
    );
    expect((await more.replay())?.type).toBe("faulted");
    expect(more.kernel.fault).toMatchObject({
      seq: 4,
      recorded: "nothing more",
      attempted: expect.stringContaining('task "work"'),
    });
  });

  test("an end that the journal does not have is found at the journal's end as well", async () => {
    const recorded = (await record()).slice(0, 4);
    const stand = new KernelStand(
      async (ctx) => {
        ctx.appendEntry({ role: "user", content: "hello" });
        void Promise.all([ctx.scheduleTask("work", { n: 1 }), ctx.scheduleTask("other", { n: 2 })]);
        return "early";
      },
      { recorded },
    );
    await stand.replay();
    expect(stand.kernel.fault).toMatchObject({ code: "nondeterminism", recorded: "nothing more" });
  });

  test("a swallowed divergence cannot commit, and the agent gets no further", async () => {
    const recorded = await record();
    const reached: string[] = [];
    const stand = new KernelStand(
      async (ctx) => {
        ctx.appendEntry({ role: "user", content: "hello" });
        for (const kind of ["test", "work", "work"]) {
          try {
            await ctx.scheduleTask(kind, { n: 1 });
            reached.push(kind);
          } catch {}
        }
        return "swallowed";
      },
      { recorded },
    );
    expect((await stand.replay())?.type).toBe("faulted");
    expect(reached).toEqual([]);
    expect(() => stand.seal()).toThrow(NondeterminismError);
  });

  test("an outcome without an open future is a divergence: never asked for, of another type, or delivered twice", async () => {
    const waits: StandAgent = async (ctx) => {
      void ctx.sleep(5);
      await ctx.scheduleTask("work");
      await ctx.waitForSignal("go");
    };
    const base: JournalRecord[] = (await recordOf(waits)).slice();
    const at = 2_000;
    const cases: JournalRecord[] = [
      { type: "task_completed", seq: 3, task: 7, attempt: 1, at },
      { type: "task_completed", seq: 3, task: 0, attempt: 1, at },
      { type: "timer_fired", seq: 3, timer: 1, at },
      { type: "signal_received", seq: 3, wait: 0, signalId: "sig_1", at },
      { type: "wait_timed_out", seq: 3, wait: 0, at },
      { type: "signal_ready", seq: 3, wait: 1, at },
    ];
    for (const wrong of cases) {
      const stand = new KernelStand(waits, { recorded: [...base, wrong] });
      const stands = await stand.replay();
      expect(stands, JSON.stringify(wrong)).toMatchObject({
        type: "faulted",
        fault: { code: "nondeterminism", attempted: expect.stringContaining("nothing open") },
      });
    }
    const twice: JournalRecord[] = [
      ...base,
      { type: "timer_fired", seq: 3, timer: 0, at },
      { type: "timer_fired", seq: 4, timer: 0, at },
    ];
    const stand = new KernelStand(waits, { recorded: twice });
    expect((await stand.replay())?.type).toBe("faulted");
  });

  test("limits hold for new commands only: a journal above today's limits still replays", async () => {
    const recorded = await record();
    const limits = { recordsPerCheckpoint: 1 };
    const stand = new KernelStand(agent(), { recorded, limits });
    expect(await stand.replay()).toEqual({ type: "open" });
    stand.answer(5, true);
    expect(await stand.deliverOwn()).toMatchObject({ type: "faulted", fault: { code: "limit_exceeded" } });
  });

  test("limits on payloads, entries and commands per slice hold for new commands only", async () => {
    const many: StandAgent = async (ctx) => {
      for (let i = 0; i < 20; i++) ctx.appendEntry({ role: "user", content: "x".repeat(100) });
      for (let i = 0; i < 20; i++) void ctx.scheduleTask("work", "y".repeat(100));
      await ctx.waitForSignal("go");
    };
    const recorded = await recordOf(many);
    for (const limits of [{ payloadChars: 10 }, { entriesPerCheckpoint: 3 }, { commandsPerSlice: 5 }]) {
      const stand = new KernelStand(many, { recorded, limits });
      expect(await stand.replay(), JSON.stringify(limits)).toEqual({ type: "open" });
      expect((await new KernelStand(many, { limits }).start()).type).toBe("faulted");
    }
  });
});

describe("accepting drift", () => {
  const drifting: Changes = { input: { n: 9 }, otherEntry: true, sleepMs: 60, question: "really?" };

  test("recorded results are used for changed inputs of the same kind, and their positions are returned once", async () => {
    const recorded = await record();
    const stand = new KernelStand(agent(drifting), { recorded, acceptDrift: true });
    expect(await stand.replay()).toEqual({ type: "open" });
    expect(stand.kernel.cursor.takeDrift()).toEqual([1, 2, 6, 10]);
    expect(stand.kernel.cursor.takeDrift()).toEqual([]);
  });

  test.each(CORPUS.filter(([name]) => !/another (input|time|question)|other words/.test(name)))(
    "%s is not drift: it still diverges",
    async (_name, changes) => {
      const stand = new KernelStand(agent(changes), { recorded: await record(), acceptDrift: true });
      expect((await stand.replay())?.type).toBe("faulted");
    },
  );

  test("drift that was noted is accepted on later replays, while other places still diverge", async () => {
    const recorded = await record();
    const first = new KernelStand(agent(drifting), { recorded, acceptDrift: true });
    await first.replay();
    first.kernel.note({ type: "drift_accepted", at: 3_000, positions: first.kernel.cursor.takeDrift() });
    first.seal();
    const second = new KernelStand(agent(drifting), { recorded: first.journal });
    expect(await second.replay()).toEqual({ type: "open" });
    second.answer(5, true);
    expect((await second.deliverOwn())?.type).toBe("ended");

    const further = new KernelStand(agent({ ...drifting, kind: "test" }), { recorded: first.journal });
    expect((await further.replay())?.type).toBe("faulted");
  });

  test("a change that is not accepted as drift diverges", async () => {
    const stand = new KernelStand(agent(drifting), { recorded: await record() });
    expect((await stand.replay())?.type).toBe("faulted");
  });
});

describe("the same code", () => {
  test("the same code replays any prefix of its journal that ends at a commit, and continues to the same journal", async () => {
    const stand = new KernelStand(agent());
    const lengths: number[] = [];
    const seal = () => {
      stand.seal();
      lengths.push(stand.journal.length);
    };
    await stand.start();
    seal();
    await stand.completeTask(2, "b");
    seal();
    await stand.completeTask(1, "a");
    seal();
    await stand.fireTimer(3);
    seal();
    stand.send("go", 1);
    await stand.deliverOwn();
    seal();
    stand.answer(5, true);
    await stand.deliverOwn();
    seal();
    const whole = stand.journal;
    for (const length of lengths) {
      const again = new KernelStand(agent(), { recorded: whole.slice(0, length) });
      const last = await again.replay();
      expect(last?.type).toBe(length === whole.length ? "ended" : "open");
      for (const next of whole.slice(length)) {
        if ("at" in next && next.type !== "checkpoint") await again.slice(next as never);
      }
      again.seal();
      expect(again.journal).toEqual(whole);
    }
  });

  test("a journal that went through the codec is the journal that was recorded", async () => {
    const recorded = await record();
    expect(throughCodec(recorded)).toEqual(recorded);
  });
});

async function recordOf(body: StandAgent, options: StandOptions = {}): Promise<JournalRecord[]> {
  const stand = new KernelStand(body, options);
  await stand.start();
  stand.seal();
  return stand.journal;
}
