// `Program`: the actions of a simulation's agent, as data. An agent performs the program, durably and through
// all faults. The result that it must have is computed without running anything.
//
// A kind of node is one object with three functions over the same data. `draw` makes a node, `perform` runs
// it with a context, and `expect` computes its result and effects. A new ability of agents is a new kind
// (`NODE_KINDS` in `nodes.ts`).
//
//   - A node's result depends on nothing but the node: not on time, order of arrival, attempts or crashes.
//   program-2. A name of a signal belongs to one node, or to one line of nodes that come after each other.
//   - Programs are JSON: a session's program is its input, so that children need no agents of their own.

import type { Budget } from "@holdfast/core";
import type { AgentContext } from "@holdfast/runtime";
import type { Dice } from "../world/dice.ts";
import type { Behaviour } from "./effects.ts";

export type Value = null | boolean | number | string | readonly Value[] | { readonly [key: string]: Value };

/** The functions that `draw` uses to make nodes. */
export interface Drawer {
  readonly dice: Dice;
  /** A new name, unique in the program. */
  name(prefix: string): string;
  /** A node that contains no other nodes. */
  leaf(): ProgramNode;
  /** Nodes one after the other. */
  line(): readonly ProgramNode[];
  /** The next entry of the branch that is being drawn. */
  entry(): { readonly chain: string; readonly index: number };
  /** Draw in a branch of its own. */
  branch<T>(draw: () => T): T;
  /** Whether somebody above has a budget, or this program does. */
  readonly isPaid: boolean;
  /** A child's program. */
  child(options: ChildDraw): Program;
}

export interface ChildDraw {
  /** Whether the parent lives as long, and so answers. */
  readonly isObserved: boolean;
  /** Nodes it ends its last turn with. */
  readonly last?: readonly ProgramNode[];
  readonly end?: ProgramEnd;
  /** Its budget, under which nothing but `last` is done. */
  readonly budget?: Budget;
  /** Further limits of its budget. */
  readonly limits?: Budget;
}

/** The functions that `perform` uses to run nodes. */
export interface Stage {
  readonly ctx: AgentContext;
  perform(node: ProgramNode): Promise<Value>;
  /** One after the other. */
  inTurn(nodes: readonly ProgramNode[]): Promise<Value[]>;
  /** A closure for a task of this node, with the node's effects on the world. */
  work(node: string, behaviour: Behaviour): (task: unknown) => Promise<Value>;
}

/** The expected effects of a session besides its output, which `expect` fills in. */
export interface Expectation {
  /** Tasks that are done, and how often each fails first. */
  readonly tasks: Map<string, Behaviour & { readonly outcome: "done" | "hopeless" | "perhaps" }>;
  /** Payloads by the name of their signal, in the order they are sent and consumed. */
  readonly signals: Map<string, Value[]>;
  /** Entries by their branch: in this order there, in any order between branches. */
  readonly entries: Map<string, number>;
  /** Its events for its parent besides its end, in any order. */
  readonly reported: Value[];
  /** The expected result of a child. */
  child(program: Program): { readonly received: Value; readonly reported: readonly Value[] };
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

/** How a program ends once its turns are over. */
export type ProgramEnd =
  /** It completes with the results of its nodes. */
  | { readonly type: "output" }
  /** It waits for a signal that nobody sends. */
  | { readonly type: "never" }
  /** Its first `times` sessions fail, and the next one continues where they stopped. */
  | { readonly type: "fails"; readonly times: number }
  /** It asks a question that nobody answers in time. */
  | { readonly type: "unanswered" }
  | {
      readonly type: "hand_over";
      readonly completion: "wait_for_child" | "immediate";
      readonly program: Program;
    };

export interface Program {
  /** Unique in a simulation. */
  readonly key: string;
  /** Lines of nodes with a checkpoint between one and the next. */
  readonly turns: readonly (readonly ProgramNode[])[];
  /** Clean up when cancelled: a task and a timer that outlive it. */
  readonly cleansUp: boolean;
  readonly end: ProgramEnd;
  /** Its state is typed. */
  readonly isTyped: boolean;
  /** Nodes that run while the session is `minimal`; after them it becomes `full`. */
  readonly prelude?: readonly ProgramNode[];
  readonly budget?: Budget;
  /** The program needs no signals, answers or children. It may therefore be forked anywhere, and started by a schedule. */
  readonly isPlain?: boolean;
}

/** The agent that does it. */
export function agentOf({ isTyped }: Program): "plain" | "typed" {
  return isTyped ? "typed" : "plain";
}

export const NEVER = "never";
