// All kinds of nodes: programs drawn from them, and what must come of a program.

import type { Dice } from "./dice.ts";
import { drain, mail, question, signals, timer } from "./nodes-signals.ts";
import { branches, entry, nested } from "./nodes-structure.ts";
import { hopeless, once, race, task, unobserved, withdrawn } from "./nodes-tasks.ts";
import type { Drawer, Expectation, NodeKind, Program, ProgramNode, Value } from "./program.ts";

/** A kind without the type of its nodes: a node is only ever given to the kind that drew it. */
type AnyKind = NodeKind<ProgramNode>;

interface Listed {
  readonly kind: AnyKind;
  /** `leaf`: anywhere. `holder`: where it is not too deep. `line`: in the lines of a turn only. */
  readonly place: "leaf" | "holder" | "line";
  /** How often, beside the others of its place. */
  readonly weight: number;
}

const NODE_KINDS: Readonly<Record<string, Listed>> = {
  task: listed("leaf", 4, task),
  signals: listed("leaf", 1, signals),
  timer: listed("leaf", 1, timer),
  entry: listed("leaf", 1, entry),
  question: listed("leaf", 1, question),
  drain: listed("leaf", 1, drain),
  unobserved: listed("leaf", 1, unobserved),
  once: listed("leaf", 1, once),
  hopeless: listed("leaf", 1, hopeless),
  withdrawn: listed("leaf", 1, withdrawn),
  branches: listed("holder", 2, branches),
  nested: listed("holder", 1, nested),
  race: listed("holder", 1, race),
  mail: listed("line", 1, mail),
};

function listed<N>(place: Listed["place"], weight: number, kind: NodeKind<N>): Listed {
  return { place, weight, kind: kind as unknown as AnyKind };
}

export function kindOf({ kind }: ProgramNode): AnyKind {
  const known = NODE_KINDS[kind];
  if (known === undefined) throw new Error(`no kind of node is named "${kind}"`);
  return known.kind;
}

// ---- drawing -----------------------------------------------------------------------------------------------------

const DEPTH_MAX = 2;
const LEAVES = kindsOf("leaf");
const HOLDERS = kindsOf("holder");
const LINED = kindsOf("line");

/** Each as often as its weight says. */
function kindsOf(place: Listed["place"]): readonly [AnyKind, ...AnyKind[]] {
  const kinds = Object.values(NODE_KINDS).filter((each) => each.place === place);
  return kinds.flatMap(({ kind, weight }) => Array<AnyKind>(weight).fill(kind)) as [AnyKind, ...AnyKind[]];
}

export function drawProgram(dice: Dice): Program {
  let names = 0;
  let chains = 0;
  let chain = { name: "main", length: 0 };
  let depth = 0;
  const leaf = (): ProgramNode => dice.pick(LEAVES).draw(drawer);
  const any = (): ProgramNode => {
    if (depth >= DEPTH_MAX || dice.chance(0.75)) return leaf();
    depth++;
    const node = dice.pick(HOLDERS).draw(drawer);
    depth--;
    return node;
  };
  const drawer: Drawer = {
    dice,
    leaf,
    name: (prefix) => `${prefix}${names++}`,
    line: () => Array.from({ length: dice.between(1, 3) }, any),
    entry: () => ({ chain: chain.name, index: chain.length++ }),
    branch(draw) {
      const outer = chain;
      chain = { name: `branch${chains++}`, length: 0 };
      try {
        return draw();
      } finally {
        chain = outer;
      }
    },
  };
  const top = (): ProgramNode => (dice.chance(0.15) ? dice.pick(LINED).draw(drawer) : any());
  return {
    turns: Array.from({ length: dice.pick([1, 1, 2, 3]) }, () =>
      Array.from({ length: dice.between(1, 3) }, top),
    ),
    cleansUp: dice.chance(0.5),
    waitsForEver: dice.chance(0.04),
  };
}

// ---- what must come of it ----------------------------------------------------------------------------------------

export interface Expected extends Pick<Expectation, "tasks" | "signals" | "entries"> {
  readonly output: Value;
}

/** Without running anything. */
export function expectedOf({ turns }: Program): Expected {
  const expectation: Expectation = {
    tasks: new Map(),
    signals: new Map(),
    entries: new Map(),
    expect: (node) => kindOf(node).expect(node, expectation),
  };
  const output = turns.map((nodes) => nodes.map((node) => expectation.expect(node)));
  return { ...expectation, output };
}
