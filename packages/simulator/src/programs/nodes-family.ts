// Kinds of nodes with other sessions, such as `child`: children, signals both ways, and requests of children
// to their parent.

import { type ChildHandle, defined } from "@holdfast/core";
import { local } from "@holdfast/runtime";
import { agentOf, type NodeKind, type Program, type ProgramNode, type Stage, type Value } from "./program.ts";

const FROM_PARENT = "from-parent";
const REPORT_SIGNAL = "tells";

interface ChildNode extends ProgramNode {
  readonly kind: "child";
  readonly program: Program;
  readonly how: "wait" | "events" | "both" | "at_end" | "cancel_at_end" | "leave";
  readonly letters: number;
}

/** A child that ends as its program says. */
export const child: NodeKind<ChildNode> = {
  draw({ dice, isPaid, child: drawChild }) {
    const how = dice.pick(["wait", "wait", "events", "both", "at_end", "cancel_at_end", "leave"]);
    const letters = dice.pick([0, 0, 1, 3]);
    const isObserved = how === "wait" || how === "events" || how === "both";
    const last: readonly ProgramNode[] =
      letters === 0 ? [] : [{ kind: "letters", count: letters } as LettersNode];
    const program = drawChild({ isObserved, last });
    // The budget of a payer that has ended could not be raised any more, so no paid child may outlive its
    // parent.
    return { kind: "child", program, how: how === "leave" && isPaid ? "wait" : how, letters };
  },
  async perform({ program, how, letters }, { ctx }) {
    const onParentEnd = how === "at_end" ? "wait" : how === "leave" ? "leave" : "cancel";
    const { prelude, budget } = program;
    const one = ctx.spawnAgent(local(agentOf(program)), program, {
      onParentEnd,
      ...(prelude === undefined ? {} : { persistence: "minimal" }),
      ...defined({ budget }),
    });
    for (let i = 0; i < letters; i++) ctx.signalChild(one, FROM_PARENT, i);
    switch (how) {
      case "wait":
        return (await ctx.waitForChild(one)) as Value;
      case "events":
        return receiveAll(ctx, one);
      case "both": {
        const [output, received] = await ctx.all([ctx.waitForChild(one), receiveAll(ctx, one)]);
        return [output as Value, received];
      }
      default:
        return null;
    }
  },
  expect({ program, how }, expectation) {
    const { received, reported } = expectation.child(program);
    const events = { output: received, reported: [...reported].map(String).sort() };
    return how === "wait" ? received : how === "events" ? events : how === "both" ? [received, events] : null;
  },
};

/** A child's events until its end, without those that depend on the faults: `blocked` and `budget_exceeded`. */
async function receiveAll(
  ctx: Stage["ctx"],
  one: Parameters<Stage["ctx"]["waitForChildEvent"]>[0],
): Promise<Value> {
  const reported: string[] = [];
  for (;;) {
    const event = await ctx.waitForChildEvent(one);
    if (event.type === "completed") return { output: event.output as Value, reported: reported.sort() };
    if (event.type === "progress") reported.push(String(event.data));
    else if (event.type === "signal" && event.name === REPORT_SIGNAL) reported.push(String(event.payload));
    else if (event.type !== "signal" && event.type !== "blocked" && event.type !== "budget_exceeded")
      return event.type;
  }
}

/** The type of a child's first event other than `blocked`. */
async function firstNews(ctx: Stage["ctx"], one: ChildHandle): Promise<string> {
  for (;;) {
    const { type } = await ctx.waitForChildEvent(one);
    if (type !== "blocked") return type;
  }
}

interface LettersNode extends ProgramNode {
  readonly kind: "letters";
  readonly count: number;
}

/** The parent's signals, in their order. Never drawn: it is part of a child. */
export const letters: NodeKind<LettersNode> = {
  draw: () => ({ kind: "letters", count: 0 }),
  async perform({ count }, { ctx }) {
    const taken: Value[] = [];
    while (taken.length < count) taken.push(await ctx.waitForSignal<Value>(FROM_PARENT));
    return taken;
  },
  expect: ({ count }) => Array.from({ length: count }, (_, i) => i),
};

interface DoomedNode extends ProgramNode {
  readonly kind: "doomed";
  readonly program: Program;
  readonly doom: "hard" | "graceful" | "deadline" | "unanswered" | "broke";
}

/** A child that never completes, and is ended by its parent, a deadline or its budget. */
export const doomed: NodeKind<DoomedNode> = {
  draw({ dice, child: drawChild }) {
    const doom = dice.pick(["hard", "graceful", "deadline", "unanswered", "broke"]);
    const call: ProgramNode = { kind: "call", name: "too-dear", tokens: 20, used: 20 } as ProgramNode;
    const program = drawChild({
      isObserved: false,
      end: { type: doom === "unanswered" ? "unanswered" : "never" },
      ...(doom === "broke" ? { last: [call], budget: { maxTokens: 19, onExhausted: "cancel" } } : {}),
    });
    return { kind: "doomed", program, doom };
  },
  async perform({ program, doom }, { ctx }) {
    const { budget } = program;
    const one = ctx.spawnAgent(local(agentOf(program)), program, {
      ...(doom === "deadline" ? { timeoutMs: 700 } : {}),
      ...defined({ budget }),
    });
    if (doom === "hard" || doom === "graceful")
      ctx.cancelChild(one, { hard: doom === "hard", graceMs: 1_000 });
    const reported = doom === "broke" ? await firstNews(ctx, one) : undefined;
    if (reported !== undefined && reported !== "budget_exceeded") return reported;
    return ctx.waitForChild(one).then(
      () => "a doomed child ended by itself",
      (error: Error & { readonly ending?: string }) => error.ending ?? Promise.reject(error),
    );
  },
  expect({ program, doom }, expectation) {
    expectation.child(program);
    return doom === "deadline" ? "timed_out" : doom === "broke" ? "budget_exceeded" : "cancelled";
  },
};

interface RespawnedNode extends ProgramNode {
  readonly kind: "respawned";
  readonly program: Program;
  readonly times: number;
}

/** A child that fails, and is respawned with its progress. */
export const respawned: NodeKind<RespawnedNode> = {
  draw({ dice, child: drawChild }) {
    const times = dice.between(1, 2);
    return {
      kind: "respawned",
      times,
      program: drawChild({ isObserved: true, end: { type: "fails", times } }),
    };
  },
  async perform({ program, times }, { ctx }) {
    const respawn = { maxAttempts: times + 1 };
    return ctx.waitForChild<Value>(
      ctx.spawnAgent(local<Program, Value>(agentOf(program)), program, { respawn }),
    );
  },
  expect: ({ program }, expectation) => expectation.child(program).received,
};

interface ReportNode extends ProgramNode {
  readonly kind: "report";
  readonly what: string;
  readonly asProgress: boolean;
}

/** Something for the parent. */
export const report: NodeKind<ReportNode> = {
  draw: ({ dice, name }) => ({ kind: "report", what: name("told"), asProgress: dice.chance(0.5) }),
  async perform({ what, asProgress }, { ctx }) {
    if (asProgress) ctx.reportProgress(what);
    else ctx.signalParent(REPORT_SIGNAL, what);
    return null;
  },
  expect({ what }, { reported }) {
    reported.push(what);
    return null;
  },
};

interface AskParentNode extends ProgramNode {
  readonly kind: "ask_parent";
  readonly node: string;
}

/** A task of the parent's. */
export const askParent: NodeKind<AskParentNode> = {
  draw: ({ name }) => ({ kind: "ask_parent", node: name("asked") }),
  perform: ({ node }, { ctx }) =>
    ctx
      .requestFromParent<Value>("answer", {
        node: `${ctx.sessionId} ${node}`,
        behaviour: { isPatient: true },
      })
      .then((answer) => (typeof answer === "string" && answer.endsWith(` ${node}`) ? node : answer)),
  expect: ({ node }) => node,
};

interface CallNode extends ProgramNode {
  readonly kind: "call";
  readonly name: string;
  readonly tokens: number;
  readonly used: number;
}

/** A task that declares its maximum cost, and reports its actual usage. */
export const call: NodeKind<CallNode> = {
  draw({ dice, name }) {
    const tokens = dice.between(5, 50);
    return { kind: "call", name: name("c"), tokens, used: dice.between(1, tokens) };
  },
  perform: ({ name, tokens, used }, { ctx }) =>
    ctx.scheduleTask("call", { node: name, behaviour: { isPatient: true }, tokens, used }),
  expect({ name }, { tasks }) {
    tasks.set(name, { isPatient: true, outcome: "done" });
    return name;
  },
};

interface CappedNode extends ProgramNode {
  readonly kind: "capped";
  readonly program: Program;
}

/** The maximum tokens per call; only the refused call declares more. */
const TOKENS_PER_CALL = 60;

/** A child with one refused call, which does not end it. */
export const capped: NodeKind<CappedNode> = {
  draw({ child: drawChild }) {
    const last = [{ kind: "dear_call" }];
    return {
      kind: "capped",
      program: drawChild({ isObserved: true, last, limits: { maxTokensPerCall: TOKENS_PER_CALL } }),
    };
  },
  async perform({ program }, { ctx }) {
    const { budget } = program;
    const one = ctx.spawnAgent(local(agentOf(program)), program, budget === undefined ? {} : { budget });
    return (await ctx.waitForChild(one)) as Value;
  },
  expect: ({ program }, expectation) => expectation.child(program).received,
};

/** A call that may use more than any may. Never drawn: it is part of a capped child. */
export const dearCall: NodeKind<ProgramNode> = {
  draw: () => ({ kind: "dear_call" }),
  perform: (_, { ctx }) =>
    ctx
      .scheduleTask("call", {
        node: "dear",
        behaviour: { isPatient: true },
        tokens: TOKENS_PER_CALL + 1,
        used: 1,
      })
      .then(
        () => "a call that is too dear was done",
        (error: Error) => (error.message.includes("in one call") ? "refused" : Promise.reject(error)),
      ),
  expect: () => "refused",
};

interface RemainingNode extends ProgramNode {
  readonly kind: "remaining";
  readonly name: string;
}

/** The remaining budget as a task's input: another amount on replay would be a divergence. */
export const remaining: NodeKind<RemainingNode> = {
  draw: ({ name }) => ({ kind: "remaining", name: name("r") }),
  perform: ({ name }, { ctx }) =>
    ctx.scheduleTask("patient", { node: name, behaviour: { isPatient: true }, left: ctx.remainingBudget() }),
  expect({ name }, { tasks }) {
    tasks.set(name, { isPatient: true, outcome: "done" });
    return name;
  },
};
