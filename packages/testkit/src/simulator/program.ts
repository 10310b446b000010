// Programs: what agents of a simulation do, as data. From one program come the agent that does it, durably and through all
// faults, and the result it must have, computed without running anything.
//
// A kind of node is one object with three functions over the same data: `draw` makes one, `perform` does it with a context,
// `expect` says what it gives and leaves behind. New things agents can do are new kinds (`NODE_KINDS` in `nodes.ts`).
//
//   G1. A node's result depends on nothing but the node: not on time, order of arrival, attempts or crashes.
//   G2. A name of a signal belongs to one node, or to one line of nodes that come after each other.

import type { AgentContext } from "@holdfast/runtime";
import type { Dice } from "./dice.ts";
import type { Behaviour } from "./effects.ts";

export type Value = null | boolean | number | string | readonly Value[] | { readonly [key: string]: Value };

/** What `draw` makes nodes with. */
export interface Drawer {
  readonly dice: Dice;
  /** A new name, unique in the program. */
  name(prefix: string): string;
  /** One of a kind that holds no others. */
  leaf(): ProgramNode;
  /** Nodes one after the other. */
  line(): readonly ProgramNode[];
  /** The next entry of the branch that is being drawn. */
  entry(): { readonly chain: string; readonly index: number };
  /** Draw in a branch of its own. */
  branch<T>(draw: () => T): T;
}

/** What `perform` does nodes with. */
export interface Stage {
  readonly ctx: AgentContext;
  perform(node: ProgramNode): Promise<Value>;
  /** One after the other. */
  inTurn(nodes: readonly ProgramNode[]): Promise<Value[]>;
  /** What a closure of this node's does in the world. */
  work(node: string, behaviour: Behaviour): (task: unknown) => Promise<Value>;
}

/** What `expect` fills: everything a session leaves behind besides its output. */
export interface Expectation {
  /** Tasks that are done, and how often each fails first. */
  readonly tasks: Map<string, Behaviour & { readonly outcome: "done" | "hopeless" | "perhaps" }>;
  /** Payloads by the name of their signal, in the order they are sent and consumed. */
  readonly signals: Map<string, Value[]>;
  /** Entries by their branch: in this order there, in any order between branches. */
  readonly entries: Map<string, number>;
  expect(node: ProgramNode): Value;
}

export interface NodeKind<N> {
  draw(drawer: Drawer): N;
  perform(node: N, stage: Stage): Promise<Value>;
  expect(node: N, expectation: Expectation): Value;
}

/** A node of some kind; what else it holds is its kind's own. */
export interface ProgramNode {
  readonly kind: string;
}

export interface Program {
  /** Lines of nodes with a checkpoint between one and the next. */
  readonly turns: readonly (readonly ProgramNode[])[];
  /** Clean up when cancelled: a task and a timer that outlive it. */
  readonly cleansUp: boolean;
  /** In the end it waits for a signal that nobody sends. */
  readonly waitsForEver: boolean;
}

export const NEVER = "never";
