// S1, H11: the batch that uses signals consumes them, first in first out. Probes replay their answers.

/* oxlint-disable unicorn/no-unnecessary-await, typescript/await-thenable, unicorn/no-single-promise-in-promise-methods -- agents do */

import { KernelStand, type StandAgent } from "@holdfast/testkit/kernel-stand";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { StoredSignal } from "../session/changes.ts";

describe("S1: waits and signals", () => {
  test("a signal that came first is there for a later wait, and one wait takes one signal, in order", async () => {
    const stand = new KernelStand(async (ctx) => [
      await ctx.waitForSignal("s"),
      await ctx.waitForSignal("s"),
      await ctx.waitForSignal("t"),
    ]);
    stand.send("s", 1);
    await stand.start();
    stand.send("t", 3);
    stand.send("s", 2);
    expect(await stand.deliverAllOwn()).toEqual(ended([1, 2, 3]));
    expect(stand.seal().consumed).toEqual(["sig_1", "sig_3", "sig_2"]);
  });

  test("each signal satisfies exactly one consumer, first in first out per name, whichever consumer it is", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom("send a", "send b", "deliver"), { maxLength: 25 }),
        fc.array(fc.constantFrom("wait a", "wait b", "take a", "take b", "drain", "ready a"), {
          maxLength: 12,
        }),
        async (world, agent) => {
          const got: [string, unknown][] = [];
          const stand = new KernelStand(async (ctx) => {
            for (const step of agent) {
              const [verb, name = ""] = step.split(" ");
              if (verb === "wait") got.push([name, await ctx.waitForSignal(name)]);
              else if (verb === "ready") await ctx.signalReady(name);
              else if (verb === "drain")
                got.push(
                  ...ctx.drainSignals("*").map(({ name: of, payload }): [string, unknown] => [of, payload]),
                );
              else {
                const taken = ctx.takeSignal(name);
                if (taken !== undefined) got.push([name, taken]);
              }
            }
            return null;
          });
          const sent: [string, number][] = [];
          await stand.start();
          for (const [i, step] of world.entries()) {
            if (step === "deliver") await stand.deliverOwn();
            else {
              const name = step.split(" ")[1]!;
              if (!stand.kernel.turn.closed) stand.send(name, i);
              if (!stand.kernel.turn.closed) sent.push([name, i]);
            }
          }
          await stand.deliverAllOwn();
          if (stand.kernel.fault !== undefined) throw stand.kernel.fault;
          const left = stand.kernel.pending.all().map(({ name, payload }) => [name, JSON.parse(payload!)]);
          for (const name of ["a", "b"]) {
            const of = (list: readonly (readonly unknown[])[]) => list.filter(([each]) => each === name);
            expect([...of(got), ...of(left)]).toEqual(of(sent));
          }
          expect(stand.seal().consumed).toHaveLength(got.length);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("a signal without a payload is undefined to a wait and null to a take, live and on replay", async () => {
    const agent: StandAgent = async (ctx) => {
      const waited = await ctx.waitForSignal("go");
      return [
        waited === undefined,
        ctx.takeSignal("go"),
        ctx.takeSignal("go") === undefined,
        ctx.drainSignals("x"),
      ];
    };
    const stand = new KernelStand(agent);
    for (const name of ["go", "go", "x"]) stand.send(name);
    await stand.start();
    const live = await stand.deliverOwn();
    expect(live).toEqual(ended([true, null, true, [{ name: "x", payload: null }]]));
    stand.seal();
    expect(await new KernelStand(agent, { recorded: stand.journal }).replay()).toEqual(live);
  });

  test("a faulted segment has consumed nothing", async () => {
    const stand = new KernelStand(async (ctx) => {
      await ctx.waitForSignal("go");
      ctx.drainSignals("**");
      void ctx.scheduleTask("nope");
    });
    await stand.start();
    stand.seal();
    stand.send("go");
    stand.send("more");
    expect((await stand.deliverOwn())?.type).toBe("faulted");
    expect(stand.kernel.segment.salvage(1)).toMatchObject({ records: [], consumed: [] });
  });

  test("a wait that timed out takes nothing, and rejects with its own code", async () => {
    const stand = new KernelStand(async (ctx) => {
      const code = await ctx
        .waitForSignal("s", { timeoutMs: 50 })
        .catch((error: { code: string }) => error.code);
      return [code, await ctx.waitForSignal("s")];
    });
    await stand.start();
    expect(stand.kernel.open.wakeAt).toBe(1_050);
    expect(await stand.deliverDue(1_049)).toBeUndefined();
    await stand.deliverDue(1_050);
    stand.send("s", "late");
    expect(await stand.deliverOwn()).toEqual(ended(["wait_timed_out", "late"]));
  });

  test("a time-out of Infinity is no time-out", async () => {
    const stand = new KernelStand(async (ctx) =>
      ctx.race([
        ctx.waitForSignal("s", { timeoutMs: Infinity }),
        ctx.requestInput("?", { timeoutMs: Infinity }),
      ]),
    );
    await stand.start();
    expect(stand.kernel.open.wakeAt).toBeUndefined();
    expect(JSON.stringify(stand.seal().records)).not.toContain("null");
  });

  test("a payload that does not match its schema rejects the wait, and the signal is consumed", async () => {
    const schema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value: unknown) =>
          typeof value === "number"
            ? { value: value * 2 }
            : { issues: [{ message: "no number", path: ["n"] }] },
      },
    } as const;
    const agent: StandAgent = async (ctx) => {
      const bad = await ctx
        .waitForSignal("s", { schema })
        .catch((error: { code: string; message: string; stack: string }) => [error.code, error.stack]);
      return [bad, await ctx.waitForSignal("s", { schema })];
    };
    const stand = new KernelStand(agent);
    stand.send("s", "text");
    stand.send("s", 21);
    await stand.start();
    const live = await stand.deliverAllOwn();
    const message = 'payload of signal "s" does not match its schema: /n: no number';
    expect(live).toEqual(ended([["invalid_signal", `HoldfastError: ${message}`], 42]));
    stand.seal();
    expect(await new KernelStand(agent, { recorded: stand.journal }).replay()).toEqual(live);
  });

  test("a question is answered by its own name, and by no other", async () => {
    const stand = new KernelStand(async (ctx) =>
      Promise.all([
        ctx.requestInput("first?"),
        ctx.requestInput({ prompt: "second?", details: [1] }, { answer: "any" }),
      ]),
    );
    await stand.start();
    expect(
      stand
        .seal()
        .records.slice(1)
        .map(({ payload }) => payload),
    ).toEqual([
      '{"prompt":"first?","answer":"approval"}',
      '{"prompt":"second?","details":[1],"answer":"any"}',
    ]);
    stand.answer(1, "b");
    await stand.deliverOwn();
    stand.answer(0, "a");
    expect(await stand.deliverOwn()).toEqual(ended(["a", "b"]));
  });
});

describe("H11: probes replay the same, whatever has arrived since", () => {
  const agent: StandAgent = async (ctx) => {
    const seen: unknown[] = [
      ctx.hasSignal("s"),
      ctx.takeSignal("s") ?? null,
      ctx.drainSignals("d.*").length,
      ctx.now(),
      ctx.random(),
    ];
    await ctx.scheduleTask("work", seen);
    seen.push(
      ctx.hasSignal("s"),
      ctx.hasSignal("s"),
      ctx.now(),
      ctx.randomUuid(),
      ctx.isCancellationRequested(),
    );
    await ctx.scheduleTask("work", seen);
    seen.push(
      ctx.takeSignal("s") ?? null,
      ctx.hasSignal("s"),
      ctx.drainSignals("d.*"),
      ctx.isCancellationRequested(),
      ctx.random(),
    );
    await ctx.scheduleTask("work", seen);
    seen.push(ctx.hasSignal("s"), ctx.hasSignal("d.1"));
    return seen;
  };

  async function live(signalsAt: readonly (readonly string[])[]): Promise<KernelStand> {
    const stand = new KernelStand(agent);
    const send = (i: number) => signalsAt[i]?.forEach((name) => stand.send(name, `${name} at ${i}`));
    send(0);
    await stand.start();
    stand.seal();
    for (let i = 0; i < 3; i++) {
      send(i + 1);
      if (i === 1) await stand.cancel("later");
      await stand.completeTask(stand.kernel.open.tasks()[0]!.id, i);
      if (stand.kernel.fault !== undefined) throw stand.kernel.fault;
      stand.seal();
    }
    return stand;
  }

  test("probes replay for any times of signals before, and any signals after", async () => {
    const names = fc.array(fc.constantFrom("s", "d.1", "d.2", "other"), { maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(fc.array(names, { minLength: 4, maxLength: 4 }), names, async (signalsAt, later) => {
        const stand = await live(signalsAt);
        const signals: StoredSignal[] = [
          ...stand.kernel.pending.all(),
          ...later.map((name, i) => ({
            signalId: `later_${i}`,
            name,
            payload: '"later"',
            order: 1_000 + i,
            sentAt: 0,
          })),
        ];
        const again = new KernelStand(agent, { recorded: stand.journal, signals });
        const last = await again.replay();
        expect(last).toEqual({
          type: "ended",
          ending: { type: "returned", output: stand.recorded("complete")[0]!.payload },
        });
        expect(again.seal().records).toEqual([]);
        expect(again.kernel.pending.all()).toEqual(signals.sort((a, b) => a.order - b.order));
      }),
      { numRuns: 60 },
    );
  });

  test("probes replay from every commit on, with half of the agent replayed and half live", async () => {
    const signalsAt = [["s"], ["d.1", "s"], [], ["s", "d.2"]];
    const whole = await live(signalsAt);
    for (let commits = 1; commits < whole.segments.length; commits++) {
      const recorded = whole.segments.slice(0, commits).flatMap(({ records }) => records);
      const consumed = new Set(whole.segments.slice(0, commits).flatMap((segment) => segment.consumed));
      const sentBy = commits;
      const stand = new KernelStand(agent, { recorded });
      signalsAt
        .slice(0, sentBy)
        .flat()
        .forEach(() => {});
      // Signals with the ids they had, minus what is consumed.
      let n = 0;
      for (const [i, names] of signalsAt.entries()) {
        for (const name of names) {
          const signalId = `sig_${++n}`;
          if (i < sentBy && !consumed.has(signalId))
            stand.kernel.offer({
              signalId,
              name,
              payload: JSON.stringify(`${name} at ${i}`),
              order: n,
              sentAt: 0,
            });
        }
      }
      await stand.replay();
      for (const segment of whole.segments.slice(commits)) {
        for (const [i, names] of signalsAt.entries()) {
          if (i !== whole.segments.indexOf(segment)) continue;
          const before = signalsAt.slice(0, i).flat().length;
          names.forEach((name, j) =>
            stand.kernel.offer({
              signalId: `sig_${before + j + 1}`,
              name,
              payload: JSON.stringify(`${name} at ${i}`),
              order: before + j + 1,
              sentAt: 0,
            }),
          );
        }
        for (const record of segment.records) if ("at" in record) await stand.slice(record as never);
        stand.seal();
      }
      expect(stand.journal).toEqual(whole.journal);
    }
  });

  test("a probe with an unchanged answer records nothing, and a changed answer is recorded", async () => {
    const stand = new KernelStand(async (ctx) => {
      for (let i = 0; i < 50; i++) ctx.hasSignal("s");
      await ctx.scheduleTask("work");
      for (let i = 0; i < 50; i++) ctx.hasSignal("s");
      ctx.takeSignal("s");
      for (let i = 0; i < 50; i++) ctx.hasSignal("s");
    });
    await stand.start();
    expect(stand.seal().records).toHaveLength(2);
    stand.send("s");
    await stand.completeTask(0);
    expect(stand.seal().records.map(({ type }) => type)).toEqual([
      "task_completed",
      "record_probe",
      "take_signals",
      "record_probe",
      "complete",
    ]);
  });

  test("a signal that arrives while a slice runs is seen from the next slice on", async () => {
    let offer = () => {};
    const agentOf =
      (probe: () => void): StandAgent =>
      async (ctx) => {
        const first = [ctx.hasSignal("s"), ctx.takeSignal("t") ?? null];
        await null;
        probe();
        await null;
        const second = [ctx.hasSignal("s"), ctx.takeSignal("t") ?? null];
        await ctx.scheduleTask("work");
        return [first, second, [ctx.hasSignal("s"), ctx.takeSignal("t") ?? null]];
      };
    const stand = new KernelStand(agentOf(() => offer()));
    offer = () => void [stand.send("s"), stand.send("t", 1)];
    await stand.start();
    stand.seal();
    const lived = await stand.completeTask(0);
    expect(lived).toEqual(
      ended([
        [false, null],
        [false, null],
        [true, 1],
      ]),
    );
    stand.seal();
    expect(
      await new KernelStand(
        agentOf(() => {}),
        { recorded: stand.journal },
      ).replay(),
    ).toEqual(lived);
  });

  test("now is constant from one delivery to the next, and never goes back when the clock does", async () => {
    const agentOf: StandAgent = async (ctx) => {
      const times = [ctx.now()];
      for (let i = 0; i < 3; i++) {
        await ctx.scheduleTask("work");
        times.push(ctx.now());
        await null;
        times.push(ctx.now());
      }
      return times;
    };
    const stand = new KernelStand(agentOf);
    await stand.start();
    stand.seal();
    for (const [i, at] of [5_000, 2_000, 6_000].entries()) {
      await stand.slice({ type: "task_completed", task: i, attempt: 1, at });
      stand.seal();
    }
    const output = stand.recorded("complete")[0]!.payload;
    expect(output).toBe("[1000,5000,5000,5000,5000,6000,6000]");
    expect(await new KernelStand(agentOf, { recorded: stand.journal }).replay()).toMatchObject({
      ending: { output },
    });
  });

  test("random UUIDs are version 4, and differ", async () => {
    const stand = new KernelStand(async (ctx) => Array.from({ length: 100 }, () => ctx.randomUuid()));
    await stand.start();
    const uuids = JSON.parse(stand.seal().records.at(-1)!.payload!) as string[];
    expect(new Set(uuids).size).toBe(100);
    for (const uuid of uuids)
      expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});

function ended(output: unknown): unknown {
  return { type: "ended", ending: { type: "returned", output: JSON.stringify(output) } };
}
