// `ctx.patched`: code is changed while sessions wait. A session of the old code takes the old side wherever it
// was already, and the same side on every replay.

import { KernelStand, type StandAgent } from "@holdfast/testkit/kernel-stand";
import { describe, expect, test } from "vitest";
import type { JournalRecord } from "../journal/record.ts";

const before: StandAgent = async (ctx) => {
  const a = await ctx.scheduleTask("work", 1);
  await ctx.waitForSignal("go");
  return [a, await ctx.scheduleTask("other", 2)];
};

/** A step before the wait, and another one behind it. */
const changed: StandAgent = async (ctx) => {
  const a = await ctx.scheduleTask("work", 1);
  if (ctx.patched("audit")) await ctx.scheduleTask("test", "audit");
  await ctx.waitForSignal("go");
  const kind = ctx.patched("edits") ? "edit" : "other";
  return [a, await ctx.scheduleTask(kind, 2)];
};

/** The same without its questions and without the old sides. */
const settled: StandAgent = async (ctx) => {
  const a = await ctx.scheduleTask("work", 1);
  await ctx.scheduleTask("test", "audit");
  await ctx.waitForSignal("go");
  return [a, await ctx.scheduleTask("edit", 2)];
};

const marks = (journal: readonly JournalRecord[]) =>
  journal.flatMap((record) => (record.type === "record_probe" ? record.probe : []));

/** Send a signal and deliver it. */
function signal(stand: KernelStand, name: string, payload?: unknown) {
  stand.send(name, payload);
  return stand.deliverOwn();
}

/** A whole new session of the changed code. */
async function whole(): Promise<KernelStand> {
  const stand = new KernelStand(changed);
  await stand.start();
  await stand.completeTask(0, "a");
  await stand.completeTask(2, "audited");
  await signal(stand, "go");
  await stand.completeTask(5, "edited");
  stand.seal();
  return stand;
}

describe("behind a question that was deleted", () => {
  const asking =
    (asks: boolean): StandAgent =>
    async (ctx) => {
      if (asks) ctx.patched("a");
      return ctx.scheduleTask("work", 1, { effect: "once", deadlineMs: 5_000 });
    };

  test("a task keeps its effect, its deadline and the guard of its repeats", async () => {
    const kinds = { work: { guardRepeats: true } };
    const live = new KernelStand(asking(true), { kinds });
    await live.start();
    live.seal();
    const again = new KernelStand(asking(false), { recorded: live.journal, kinds });
    await again.replay();
    const traits = (stand: KernelStand) =>
      stand.kernel.open.tasks().map(({ effect, deadlineAt, guarded }) => ({ effect, deadlineAt, guarded }));
    expect(traits(again)).toEqual(traits(live));
    expect(traits(again)).toMatchObject([{ effect: "once", guarded: true }]);
  });

  test("another question of the same change has the same answer", async () => {
    const agent =
      (asks: boolean): StandAgent =>
      async (ctx) => {
        if (!asks || ctx.patched("a")) await ctx.scheduleTask("work", 1);
        return ctx.scheduleTask(ctx.patched("a") ? "edit" : "other", 2);
      };
    const live = new KernelStand(agent(true));
    await live.start();
    await live.completeTask(1, "x");
    live.seal();
    const again = new KernelStand(agent(false), { recorded: live.journal });
    await again.replay();
    expect(again.kernel.fault).toBeUndefined();
  });

  test("questions that change places have the same answers", async () => {
    const agent =
      (order: readonly string[]): StandAgent =>
      async (ctx) => {
        const answers = order.map((name) => [name, ctx.patched(name)] as const);
        await ctx.waitForSignal("go");
        return Object.fromEntries(answers);
      };
    const live = new KernelStand(agent(["a", "b"]));
    await live.start();
    live.seal();
    const again = new KernelStand(agent(["b", "a"]), { recorded: live.journal });
    await again.replay();
    await signal(again, "go");
    again.seal();
    expect(again.journal.at(-1)).toMatchObject({ type: "complete", payload: '{"b":true,"a":true}' });
  });
});

describe("a new session", () => {
  test("a new session takes the new side, and its journal says so once for each change", async () => {
    const { journal } = await whole();
    expect(marks(journal)).toEqual(["patched audit", "patched edits"]);
    expect(journal.at(-1)).toMatchObject({ type: "complete", payload: '["a","edited"]' });
  });

  test("a new session replays to the same end, at every cut", async () => {
    const { journal } = await whole();
    for (let length = 1; length <= journal.length; length++) {
      const next = journal[length];
      if (next !== undefined && "id" in next) continue;
      const again = new KernelStand(changed, { recorded: journal.slice(0, length) });
      await again.replay();
      expect(again.kernel.fault, `cut to ${length}`).toBeUndefined();
    }
  });

  test("journal-cursor-1: a journal replays without the questions, whose marks are passed over", async () => {
    const { journal } = await whole();
    const again = new KernelStand(settled, { recorded: journal });
    expect(await again.replay()).toMatchObject({ type: "ended", ending: { output: '["a","edited"]' } });
    expect(again.kernel.cursor).toMatchObject({ replaying: false, seq: journal.length });
  });

  test("a new session does not replay with the old code, and both sides are said", async () => {
    const { journal } = await whole();
    const again = new KernelStand(before, { recorded: journal });
    await again.replay();
    expect(again.kernel.fault).toMatchObject({
      code: "nondeterminism",
      got: 'wait for signal "go"',
      expected: expect.stringContaining('task "test"'),
      fix: expect.stringContaining('ctx.patched("NAME")'),
    });
  });
});

describe("a session of the old code", () => {
  test("an old session takes the old side where it was, the new one behind, and both again on each replay", async () => {
    const old = new KernelStand(before);
    await old.start();
    await old.completeTask(0, "a");
    old.seal();
    const stand = new KernelStand(changed, { recorded: old.journal });
    await stand.replay();
    await signal(stand, "go");
    stand.seal();
    expect(marks(stand.journal)).toEqual(["patched edits"]);
    const again = new KernelStand(changed, { recorded: stand.journal });
    await again.replay();
    await again.completeTask(3, "edited");
    expect([again.kernel.fault, marks(again.journal)]).toEqual([undefined, ["patched edits"]]);
  });

  test("an old session takes the new side of a loop from its next round on", async () => {
    const rounds =
      (isChanged: boolean): StandAgent =>
      async (ctx) => {
        const sides: string[] = [];
        for (;;) {
          const isNew = isChanged && ctx.patched("rounds");
          sides.push(isNew ? "new" : "old");
          ctx.appendEntry({ role: "user", content: sides.join(" ") });
          await ctx.waitForSignal("next");
        }
      };
    const old = new KernelStand(rounds(false));
    await old.start();
    await signal(old, "next");
    old.seal();
    const stand = new KernelStand(rounds(true), { recorded: old.journal });
    await stand.replay();
    await signal(stand, "next");
    await signal(stand, "next");
    stand.seal();
    const again = new KernelStand(rounds(true), { recorded: stand.journal });
    await again.replay();
    expect([again.kernel.fault, marks(again.journal)]).toEqual([undefined, ["patched rounds"]]);
    expect(stand.segments.at(-1)?.entries.at(-1)).toMatchObject({ content: '"old old new new"' });
  });
});

describe("other asks beside a mark", () => {
  test("a probe or a take without a record leaves the mark to the question behind it", async () => {
    const agent: StandAgent = async (ctx) => {
      await ctx.scheduleTask("work", 1);
      const seen = [
        ctx.hasSignal("none"),
        ctx.takeSignal("none") ?? null,
        ctx.patched("late"),
        ctx.patched("late"),
      ];
      await ctx.waitForSignal("go");
      return seen;
    };
    const stand = new KernelStand(agent);
    await stand.start();
    await stand.completeTask(0);
    await signal(stand, "go");
    stand.seal();
    const again = new KernelStand(agent, { recorded: stand.journal });
    expect(await again.replay()).toMatchObject({ ending: { output: "[false,null,true,true]" } });
  });

  test("a probe, a take, an end and a checkpoint are found behind a mark that nobody asks for any more", async () => {
    const agent =
      (asks: boolean, end: "return" | "checkpoint"): StandAgent =>
      async (ctx) => {
        const ask = (name: string): unknown => asks && ctx.patched(name);
        ask("probe");
        const has = ctx.hasSignal("there");
        ask("take");
        const taken = ctx.takeSignal("there");
        ask("end");
        return end === "return" ? [has, taken] : ctx.checkpoint([has, taken]);
      };
    for (const end of ["return", "checkpoint"] as const) {
      const signals = [{ signalId: "sig", name: "there", payload: "1", order: 1 }] as never;
      const stand = new KernelStand(agent(true, end), { signals });
      const first = await stand.start();
      stand.seal();
      expect(marks(stand.journal)).toEqual([
        "patched probe",
        "has_signal there",
        "patched take",
        "patched end",
      ]);
      const again = new KernelStand(agent(false, end), { recorded: stand.journal });
      const stands = await again.replay();
      expect([again.kernel.fault, stands?.type]).toEqual([undefined, first.type]);
    }
  });

  test("journal-cursor-1: marks at the end of a segment are passed over before what comes next", async () => {
    const agent =
      (asks: boolean): StandAgent =>
      async (ctx) => {
        const wait = ctx.waitForSignal("go");
        if (asks) ctx.patched("last");
        return wait;
      };
    const stand = new KernelStand(agent(true));
    await stand.start();
    stand.seal();
    const again = new KernelStand(agent(false), { recorded: stand.journal });
    await again.replay();
    expect(again.kernel.cursor).toMatchObject({ replaying: false, id: 2 });
    expect(await signal(again, "go", "here")).toMatchObject({ ending: { output: '"here"' } });
  });
});

test("a name that no change can have is refused with its line", async () => {
  const stand = new KernelStand(async (ctx) => ctx.patched(""));
  expect(await stand.start()).toMatchObject({ ending: { error: { code: "usage" } } });
});
