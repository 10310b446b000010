// All kinds of nodes, the programs drawn from them (`drawProgram`), and their expected results
// (`expectedOf`).

import { defined, PERIODS, type Budget } from "@holdfast/core";
import type { Dice } from "../world/dice.ts";
import {
  askParent,
  call,
  capped,
  child,
  dearCall,
  doomed,
  letters,
  remaining,
  respawned,
  report,
} from "./nodes-family.ts";
import { drain, mail, question, signals, timer } from "./nodes-signals.ts";
import { branches, entry, nested } from "./nodes-structure.ts";
import { hopeless, once, race, task, unobserved, withdrawn } from "./nodes-tasks.ts";
import type {
  ChildDraw,
  Drawer,
  Expectation,
  NodeKind,
  Program,
  ProgramEnd,
  ProgramNode,
  Value,
} from "./program.ts";

/** A kind without the type of its nodes: a node is only ever given to the kind that drew it. */
type AnyKind = NodeKind<ProgramNode>;

interface Listed {
  readonly kind: AnyKind;
  /**
   * `leaf`: anywhere. `holder`: where it is not too deep. `line`: in the lines of a turn only. `family`: as
   * `holder`, above the last generation. `received`: as `leaf`, in a program whose parent receives its
   * events. `part`: only inside other nodes.
   */
  readonly place: "leaf" | "holder" | "line" | "family" | "heard" | "part";
  /** Its frequency relative to the other kinds of its place. */
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
  call: listed("leaf", 2, call),
  remaining: listed("leaf", 1, remaining),
  child: listed("family", 4, child),
  doomed: listed("family", 1, doomed),
  respawned: listed("family", 1, respawned),
  capped: listed("family", 1, capped),
  report: listed("heard", 1, report),
  ask_parent: listed("heard", 1, askParent),
  letters: listed("part", 1, letters),
  dear_call: listed("part", 1, dearCall),
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
/** The maximum number of generations of sessions. */
const GENERATIONS = 4;
const LEAVES = kindsOf("leaf");
const PLAIN_LEAVES: readonly [AnyKind, ...AnyKind[]] = [
  task,
  timer,
  entry,
  hopeless,
  withdrawn,
  unobserved,
  call,
  remaining,
].map((kind) => kind as unknown as AnyKind) as [AnyKind, ...AnyKind[]];
const HOLDERS = kindsOf("holder");
const LINED = kindsOf("line");
const FAMILY = kindsOf("family");
const OBSERVED = kindsOf("heard");

/** The kinds of a place, each repeated by its weight. */
function kindsOf(place: Listed["place"]): readonly [AnyKind, ...AnyKind[]] {
  const kinds = Object.values(NODE_KINDS).filter((each) => each.place === place);
  return kinds.flatMap(({ kind, weight }) => Array<AnyKind>(weight).fill(kind)) as [AnyKind, ...AnyKind[]];
}

interface Place extends ChildDraw {
  readonly key: string;
  readonly generation: number;
  readonly isPaid: boolean;
  readonly isPlain: boolean;
}

/** The probability that a root session has a deadline. */
const MORTAL = 0.15;

export function drawProgram(dice: Dice, key: string): Program {
  const end: ProgramEnd = { type: dice.chance(0.04) ? "never" : "output" };
  const isPlain = dice.chance(0.15);
  const limits = dice.chance(MORTAL) ? { ttlMs: dice.between(100, 5_000) } : {};
  return drawOne(dice, { key, generation: 0, isPaid: false, isPlain, isObserved: false, end, limits });
}

/** A program that a schedule may start any number of times. */
export function drawPlainProgram(dice: Dice, key: string): Program {
  return drawOne(dice, { key, generation: 0, isPaid: false, isPlain: true, isObserved: false });
}

function drawOne(dice: Dice, place: Place): Program {
  const { key, generation, isObserved, isPlain, last = [], limits = {} } = place;
  const drawnBudget = place.budget ?? (dice.chance(0.3) ? drawBudget(dice) : undefined);
  const isLimited = drawnBudget !== undefined || Object.keys(limits).length > 0;
  const budget = isLimited ? { ...drawnBudget, ...limits } : undefined;
  const isPaid = place.isPaid || budget !== undefined;
  let names = 0;
  let chains = 0;
  let children = 0;
  let chain = { name: "main", length: 0 };
  let depth = 0;
  const leaf = (): ProgramNode => dice.pick(isPlain ? PLAIN_LEAVES : LEAVES).draw(drawer);
  const any = (): ProgramNode => {
    if (isObserved && dice.chance(0.2)) return dice.pick(OBSERVED).draw(drawer);
    if (depth >= DEPTH_MAX || dice.chance(0.65)) return leaf();
    depth++;
    const isChild = !isPlain && generation + 1 < GENERATIONS && dice.chance(0.5);
    const node = dice.pick(isChild ? FAMILY : HOLDERS).draw(drawer);
    depth--;
    return node;
  };
  const drawChild = (more: Partial<Place>): Program =>
    drawOne(dice, {
      key: `${key}.${children++}`,
      generation: generation + 1,
      isPaid,
      isPlain: false,
      isObserved: false,
      ...more,
    });
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
    isPaid,
    child: drawChild,
  };
  const top = (): ProgramNode => (!isPlain && dice.chance(0.15) ? dice.pick(LINED).draw(drawer) : any());
  // Under a budget that cancels nothing else may cost anything.
  const turnCount = place.budget === undefined ? dice.pick([1, 1, 2, 3]) : 0;
  const drawn = Array.from({ length: turnCount }, () =>
    Array.from({ length: dice.between(1, generation === 0 ? 3 : 2) }, top),
  );
  const turns = [...drawn.slice(0, -1), [...(drawn.at(-1) ?? []), ...last]];
  const isMinimal = !isPlain && budget === undefined && dice.chance(0.1);
  const prelude = isMinimal ? Array.from({ length: 2 }, () => task.draw(drawer)) : undefined;
  const mayHandOver = !isPlain && generation + 1 < GENERATIONS && (place.end?.type ?? "output") === "output";
  return {
    key,
    turns,
    cleansUp: dice.chance(0.5),
    isTyped: dice.chance(0.3),
    end:
      mayHandOver && dice.chance(0.07)
        ? drawHandOver(dice, drawChild, isObserved)
        : (place.end ?? { type: "output" }),
    ...defined({ prelude, budget }),
    ...(isPlain ? { isPlain } : {}),
  };
}

/** A budget that may have to be raised, or whose window must be granted. */
function drawBudget(dice: Dice): Budget {
  const budget = dice.pick<Budget>([
    { maxTokens: dice.between(50, 200) },
    { maxCostMicroUsd: dice.between(500, 2_000) },
    { maxSteps: dice.between(1, 10) },
    { maxTokens: dice.between(50, 400), maxTurns: 1 },
  ]);
  const { maxTokens, maxTurns } = budget;
  // This draws nothing more, so a seed has the same programs as before there were windows.
  if (maxTokens === undefined || maxTurns !== undefined || maxTokens % 2 === 0) return budget;
  const per = PERIODS[maxTokens % PERIODS.length]!;
  return { windows: [{ per, maxTokens: Math.ceil(maxTokens / 4) }] };
}

/** The session that waits for a successor receives its events; after an immediate hand-off its predecessor's parent does. */
function drawHandOver(dice: Dice, drawChild: Drawer["child"], isObserved: boolean): ProgramEnd {
  const completion = dice.pick(["wait_for_child", "immediate"]);
  const program = drawChild({ isObserved: completion === "wait_for_child" || isObserved });
  return { type: "hand_over", completion, program };
}

// ---- what must come of it
// ----------------------------------------------------------------------------------------

export interface Expected extends Pick<Expectation, "tasks" | "signals" | "entries"> {
  /** The output of its session. */
  readonly output: Value;
  /** The output that its parent receives, perhaps that of a successor. */
  readonly received: Value;
  /** The other events that its parent receives, from the session or its successor. */
  readonly reported: readonly Value[];
}

/** The expected result of a program, computed without running it. */
export function expectedOf({ turns, prelude = [], end }: Program): Expected {
  const expectation: Expectation = {
    tasks: new Map(),
    signals: new Map(),
    entries: new Map(),
    reported: [],
    expect: (node) => kindOf(node).expect(node, expectation),
    child: expectedOf,
  };
  for (const node of prelude) expectation.expect(node);
  const output = turns.map((nodes) => nodes.map((node) => expectation.expect(node)));
  if (end.type !== "hand_over") return { ...expectation, output, received: output };
  const { received, reported } = expectedOf(end.program);
  const isWaiting = end.completion === "wait_for_child";
  // A session that waits for its successor sends nothing more; the successor's events go to the waiting
  // session.
  return isWaiting
    ? { ...expectation, output: received, received }
    : { ...expectation, output: HANDED_OVER, received, reported: [...expectation.reported, ...reported] };
}

/** The expected output of a session that handed over at once, in place of its successor's id. */
export const HANDED_OVER = "handed over";
