// Kinds of nodes made of tasks.

import { defined, HOUR_MS, TaskFailedError } from "@holdfast/core";
import type { Behaviour } from "./effects.ts";
import { NEVER, type Expectation, type NodeKind, type ProgramNode } from "./program.ts";

/** The retry policies of tasks. Programs schedule a task by its policy's name, and closures use the same policies. */
export const POLICIES = {
  /** A task without retry options: up to three errors. */
  default: undefined,
  patient: { maxAttempts: 10_000, initialDelayMs: 10, maxDelayMs: 200 },
  once: { maxAttempts: 1 },
  /** Like `patient`, for tasks with a cost. */
  call: { maxAttempts: 10_000, initialDelayMs: 10, maxDelayMs: 200 },
} as const;

export type Policy = keyof typeof POLICIES;

const TIMEOUT_MS = 2_000;
/** Longer than the wall clock ever jumps. */
const LONG_MS = 10 * HOUR_MS;

interface TaskNode extends ProgramNode {
  readonly kind: "task";
  readonly name: string;
  readonly policy: "default" | "patient";
  readonly isClosure: boolean;
  readonly behaviour: Behaviour;
  readonly withTimeout: boolean;
  /** Its input contains answers of probes and the conversation: another answer on replay is a divergence. */
  readonly withProbes: boolean;
}

/** A task that succeeds, perhaps after failures. */
export const task: NodeKind<TaskNode> = {
  draw({ dice, name }) {
    const policy = dice.pick(["default", "patient"]);
    const withTimeout = policy === "patient" && dice.chance(0.5);
    const failures = dice.pick([0, 0, 1, 2]);
    return {
      kind: "task",
      name: name("t"),
      policy,
      isClosure: dice.chance(0.3),
      behaviour: policy === "patient" ? { failures, isPatient: true, mayHang: withTimeout } : { failures },
      withTimeout,
      withProbes: dice.chance(0.3),
    };
  },
  perform({ name, policy, isClosure, behaviour, withTimeout, withProbes }, { ctx, work }) {
    const options = withTimeout ? { timeoutMs: TIMEOUT_MS } : {};
    if (isClosure) {
      const retry = POLICIES[policy];
      return ctx.run(name, work(name, behaviour), { ...options, ...defined({ retry }) });
    }
    const probes = withProbes
      ? { now: ctx.now(), random: ctx.random(), uuid: ctx.randomUuid(), entries: ctx.conversation() }
      : {};
    return ctx.scheduleTask(policy, { node: name, behaviour, ...probes }, options);
  },
  expect({ name, behaviour }, { tasks }) {
    tasks.set(name, { ...behaviour, outcome: "done" });
    return name;
  },
};

interface NamedNode<K extends string> extends ProgramNode {
  readonly kind: K;
  readonly name: string;
}

/** A task whose error says that no further attempt can help. */
export const hopeless: NodeKind<NamedNode<"hopeless">> = {
  draw: ({ name }) => ({ kind: "hopeless", name: name("x") }),
  perform: ({ name }, { ctx }) =>
    ctx.scheduleTask("default", { node: name, behaviour: { isHopeless: true } }).then(
      () => "a hopeless task succeeded",
      (error: Error) => (error.name === "TaskFailedError" ? "refused" : Promise.reject(error)),
    ),
  expect({ name }, { tasks }) {
    tasks.set(name, { isHopeless: true, outcome: "hopeless" });
    return "refused";
  },
};

/** A task with at most one attempt, whatever happens to its process. */
export const once: NodeKind<NamedNode<"once">> = {
  draw: ({ name }) => ({ kind: "once", name: name("o") }),
  perform: ({ name }, { ctx }) =>
    ctx.scheduleTask("once", { node: name, behaviour: {} }).then(
      () => "at most once",
      (error: Error) => (error instanceof TaskFailedError ? "at most once" : Promise.reject(error)),
    ),
  expect({ name }, { tasks }) {
    tasks.set(name, { outcome: "perhaps" });
    return "at most once";
  },
};

/** A task that nobody awaits; it is still performed before the turn ends. */
export const unobserved: NodeKind<NamedNode<"unobserved">> = {
  draw: ({ name }) => ({ kind: "unobserved", name: name("u") }),
  async perform({ name }, { ctx }) {
    ctx.scheduleTask("patient", { node: name, behaviour: { isPatient: true } });
    return null;
  },
  expect({ name }, { tasks }) {
    tasks.set(name, { isPatient: true, outcome: "done" });
    return null;
  },
};

/** A task that takes long, and is no longer wanted. */
export const withdrawn: NodeKind<NamedNode<"withdrawn">> = {
  draw: ({ name }) => ({ kind: "withdrawn", name: name("w") }),
  async perform({ name }, { ctx, work }) {
    const slow = ctx.run(name, work(name, { takesMs: 4_000 }));
    const first = `${name}-first`;
    await ctx.scheduleTask("patient", { node: first, behaviour: { isPatient: true } });
    slow.cancel();
    // It may have ended before.
    return slow.then(
      () => "withdrawn",
      (error: Error) => (error.name === "CancelledError" ? "withdrawn" : Promise.reject(error)),
    );
  },
  expect({ name }, { tasks }) {
    tasks.set(`${name}-first`, { isPatient: true, outcome: "done" });
    return "withdrawn";
  },
};

interface RaceNode extends ProgramNode {
  readonly kind: "race";
  readonly how: "race" | "any" | "select" | "native";
  readonly winner: ProgramNode;
  readonly loser: string;
}

/** Something that ends against something that does not. */
export const race: NodeKind<RaceNode> = {
  draw: ({ dice, name, leaf, branch }) => ({
    kind: "race",
    how: dice.pick(["race", "any", "select", "native"]),
    winner: branch(leaf),
    loser: name(NEVER),
  }),
  async perform({ how, winner, loser }, { ctx, perform }) {
    const wins = perform(winner);
    switch (how) {
      case "race":
        return ctx.race([wins, ctx.waitForSignal<never>(loser)]);
      case "any":
        return ctx.any([
          ctx.waitForSignal<never>(loser),
          wins,
          ctx.sleep(LONG_MS).then((): never => never()),
        ]);
      case "select": {
        const first = await ctx.select({
          wins,
          loses: ctx.waitForSignal<never>(loser),
          late: ctx.sleep(LONG_MS),
        });
        return first.key === "wins" ? first.value : first.key;
      }
      case "native":
        return Promise.race([wins, ctx.sleep(LONG_MS).then((): never => never())]);
    }
  },
  expect: ({ winner }, expectation: Expectation) => expectation.expect(winner),
};

function never(): never {
  throw new Error("a timer of many hours was first");
}
