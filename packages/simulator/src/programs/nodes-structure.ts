// Kinds of nodes that contain other nodes, and entries.

import type { Expectation, NodeKind, ProgramNode, Stage, Value } from "./program.ts";

interface BranchesNode extends ProgramNode {
  readonly kind: "branches";
  readonly how: "all" | "all_settled" | "native_all" | "native_all_settled";
  readonly branches: readonly (readonly ProgramNode[])[];
}

/** Lines side by side. */
export const branches: NodeKind<BranchesNode> = {
  draw: ({ dice, line, branch }) => ({
    kind: "branches",
    how: dice.pick(["all", "all_settled", "native_all", "native_all_settled"]),
    branches: Array.from({ length: dice.between(2, 3) }, () => branch(line)),
  }),
  async perform({ how, branches: lines }, { ctx, inTurn }) {
    const running = lines.map(inTurn);
    switch (how) {
      case "all":
        return ctx.all(running);
      case "native_all":
        return Promise.all(running);
      case "all_settled":
        return fulfilled(await ctx.allSettled(running));
      case "native_all_settled":
        return fulfilled(await Promise.allSettled(running));
    }
  },
  expect: ({ branches: lines }, expectation) =>
    lines.map((line) => line.map((node) => expectation.expect(node))),
};

/** The values of settled branches; a rejection, such as a cancellation, is thrown. */
function fulfilled(results: readonly PromiseSettledResult<Value[]>[]): Value {
  return results.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}

interface NestedNode extends ProgramNode {
  readonly kind: "nested";
  readonly nodes: readonly ProgramNode[];
}

/** A function that calls functions, with a generator in it. */
export const nested: NodeKind<NestedNode> = {
  draw: ({ line }) => ({ kind: "nested", nodes: line() }),
  async perform({ nodes }, stage) {
    const results: Value[] = [];
    for await (const result of oneByOne(nodes, stage)) results.push(result);
    return { results };
  },
  expect: ({ nodes }, expectation) => ({ results: nodes.map((node) => expectation.expect(node)) }),
};

async function* oneByOne(nodes: readonly ProgramNode[], { perform }: Stage): AsyncGenerator<Value> {
  for (const node of nodes) yield await perform(node);
}

interface EntryNode extends ProgramNode {
  readonly kind: "entry";
  readonly chain: string;
  readonly index: number;
}

export const entry: NodeKind<EntryNode> = {
  draw: (drawer) => ({ kind: "entry", ...drawer.entry() }),
  async perform({ chain, index }, { ctx }) {
    ctx.appendEntry({ role: "assistant", content: { chain, index } });
    return null;
  },
  expect({ chain, index }, { entries }: Expectation) {
    entries.set(chain, index + 1);
    return null;
  },
};
