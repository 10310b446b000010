// Kinds of nodes that wait: for signals, people and time.

import {
  type Drawer,
  type Expectation,
  type NodeKind,
  type ProgramNode,
  type Stage,
  type Value,
} from "./program.ts";

type Taking = "wait" | "ready" | "probe" | "patient" | "raced";

/** Take the next signal of this name; all ways give the same result. */
async function take(name: string, how: Taking, patienceMs: number, ctx: Stage["ctx"]): Promise<Value> {
  switch (how) {
    case "wait":
      return ctx.waitForSignal<Value>(name);
    case "ready":
      await ctx.signalReady(name);
      return ctx.takeSignal<Value>(name) ?? "nothing to take";
    case "probe":
      return ctx.hasSignal(name)
        ? (ctx.takeSignal<Value>(name) ?? "nothing to take")
        : ctx.waitForSignal<Value>(name);
    case "patient":
      return takePatiently(name, patienceMs, ctx);
    case "raced": {
      const first = await ctx.select({ signal: ctx.waitForSignal<Value>(name), late: ctx.sleep(patienceMs) });
      return first.key === "signal" ? first.value : ctx.waitForSignal<Value>(name);
    }
  }
}

/** Giving up and beginning again, until it is there. */
async function takePatiently(name: string, patienceMs: number, ctx: Stage["ctx"]): Promise<Value> {
  for (;;) {
    try {
      return await ctx.waitForSignal<Value>(name, { timeoutMs: patienceMs });
    } catch (error) {
      if ((error as Error).name !== "WaitTimeoutError") throw error;
    }
  }
}

interface SignalsNode extends ProgramNode {
  readonly kind: "signals";
  readonly name: string;
  readonly takings: readonly Taking[];
  readonly patienceMs: number;
}

/** Signals of one name, one after the other, in different ways. */
export const signals: NodeKind<SignalsNode> = {
  draw: ({ dice, name }) => ({
    kind: "signals",
    name: name("s"),
    takings: Array.from({ length: dice.between(1, 3) }, () =>
      dice.pick(["wait", "ready", "probe", "patient", "raced"]),
    ),
    patienceMs: dice.pick([300, 1_000, 5_000]),
  }),
  async perform({ name, takings, patienceMs }, { ctx }) {
    const taken: Value[] = [];
    for (const how of takings) taken.push(await take(name, how, patienceMs, ctx));
    return taken;
  },
  expect({ name, takings }, expectation) {
    return takings.map(() => sent(expectation, name));
  },
};

interface DrainNode extends ProgramNode {
  readonly kind: "drain";
  readonly name: string;
  readonly count: number;
}

/** Several signals, as many at a time as there are. */
export const drain: NodeKind<DrainNode> = {
  draw: ({ dice, name }) => ({ kind: "drain", name: `${name("d")}.x`, count: dice.between(1, 4) }),
  async perform({ name, count }, { ctx }) {
    const taken: Value[] = [];
    while (taken.length < count) {
      await ctx.signalReady(name);
      taken.push(...ctx.drainSignals<Value>(name.replace("x", "*")).map(({ payload }) => payload));
    }
    return taken;
  },
  expect({ name, count }, expectation) {
    return Array.from({ length: count }, () => sent(expectation, name));
  },
};

interface MailNode extends ProgramNode {
  readonly kind: "mail";
}

/**
 * The next letter of the session: the same name in every turn, so letters live through checkpoints. Only in
 * lines (program-2).
 */
export const mail: NodeKind<MailNode> = {
  draw: () => ({ kind: "mail" }),
  perform: (_node, { ctx }) => ctx.waitForSignal<Value>("mail"),
  expect: (_node, expectation) => sent(expectation, "mail"),
};

interface QuestionNode extends ProgramNode {
  readonly kind: "question";
  readonly prompt: string;
}

export const question: NodeKind<QuestionNode> = {
  draw: ({ name }) => ({ kind: "question", prompt: name("q") }),
  perform: ({ prompt }, { ctx }) => ctx.requestInput<Value>(prompt, { answer: "any" }),
  expect: ({ prompt }) => answerTo(prompt),
};

/** The answer of a person to a question. */
export function answerTo(prompt: string): Value {
  return { answered: prompt };
}

interface TimerNode extends ProgramNode {
  readonly kind: "timer";
  readonly ms: number;
}

export const timer: NodeKind<TimerNode> = {
  draw: ({ dice }: Drawer) => ({ kind: "timer", ms: dice.pick([0, 1, 40, 700, 3_000]) }),
  async perform({ ms }, { ctx }) {
    const before = ctx.now();
    await ctx.sleep(ms);
    return ctx.now() - before >= ms ? "slept" : `slept ${ctx.now() - before} of ${ms} ms`;
  },
  expect: () => "slept",
};

/** The next payload of this name. */
function sent({ signals: all }: Expectation, name: string): Value {
  const payloads = all.get(name) ?? [];
  const payload = `${name}#${payloads.length}`;
  all.set(name, [...payloads, payload]);
  return payload;
}
