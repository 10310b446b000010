// Budgets of sources, functions and classes.
//
// A source or function above its budget is allowed when it is one idea, and its entry says which. An entry
// holds the size of today. A larger size is refused, and so is an entry that allows much more than there is:
// sizes only fall.

import { child, MUTANT_MARKER, nameOf, type Node, type Source, type Tree, type Violation } from "./tree.ts";

const LINES_MAX = 450;
const FUNCTION_LINES_MAX = 80;
const CLASS_MAX = { fields: 15, booleans: 3, methods: 25 } as const;

type Measure = keyof typeof CLASS_MAX;
type LongTexts = Readonly<Record<string, { readonly lines: number; readonly why: string }>>;
type LargeClasses = Readonly<
  Record<string, Readonly<Partial<Record<Measure, number>>> & { readonly why: string }>
>;

/** An entry may allow so much more than there is, as a part of its number. */
const SLACK = 0.05;

const LONG_FILES: LongTexts = {
  "packages/workspace/src/worktrees/worktrees.test.ts": {
    lines: 474,
    why: "the life of a worktree over one real repository",
  },
  "scripts/campaign.ts": { lines: 480, why: "the list of all campaigns" },
  "packages/agents/src/models/model-task.test.ts": {
    lines: 490,
    why: "tests of one task against each kind of model server",
  },
  "packages/programs/src/adapters/executor/executor-agent.test.ts": {
    lines: 476,
    why: "one executor, in all of its ends",
  },
  "packages/coordinator/src/api/rest.test.ts": {
    lines: 597,
    why: "tests of the REST form of every kind of request",
  },
  "packages/coordinator/src/behaviour/bad-input.test.ts": {
    lines: 565,
    why: "one table of wrong requests and their answers",
  },
  "packages/coordinator/src/behaviour/defects.test.ts": {
    lines: 600,
    why: "one test for each defect of earlier systems",
  },
  "packages/coordinator/src/behaviour/scope.test.ts": { lines: 521, why: "tests of the access of each role" },
  "packages/core/src/journal/record.ts": {
    lines: 465,
    why: "the types of all records, with their documentation",
  },
  "packages/core/src/kernel/slices.test.ts": { lines: 553, why: "tests of slices, deliveries and refusals" },
  "packages/holdfast/src/behaviour/bad-input.test.ts": {
    lines: 491,
    why: "one table of wrong command lines and their answers",
  },
  "packages/holdfast/src/behaviour/commands.test.ts": { lines: 502, why: "one test for each command" },
  "packages/holdfast/src/behaviour/families.test.ts": {
    lines: 552,
    why: "tests of trees of sessions in a terminal",
  },
  "packages/runtime/src/behaviour/budget.test.ts": {
    lines: 594,
    why: "tests of budgets over trees and crashes",
  },
  "packages/runtime/src/behaviour/children.test.ts": { lines: 594, why: "tests of parents and children" },
  "packages/runtime/src/behaviour/fork.test.ts": {
    lines: 600,
    why: "tests of forks from every kind of point",
  },
  "packages/runtime/src/behaviour/persistence.test.ts": {
    lines: 600,
    why: "tests of each degree of persistence",
  },
  "packages/runtime/src/runtime.test.ts": { lines: 587, why: "tests of one process that runs sessions" },
  "packages/runtime/src/schedules/schedules.test.ts": {
    lines: 498,
    why: "tests of schedules over crashes and clock changes",
  },
  "packages/runtime/src/claims/lease-keeper.test.ts": {
    lines: 497,
    why: "tests of leases over every kind of delay",
  },
  "packages/runtime/src/sessions/live-sessions.ts": {
    lines: 530,
    why: "the states of the sessions that a process drives",
  },
  "packages/runtime/src/tasks/attempts.test.ts": { lines: 581, why: "tests of tasks over their attempts" },
  "packages/simulator/src/world/watched-storage.ts": {
    lines: 551,
    why: "one account of all answers of a storage",
  },
  "packages/agents/src/model-loop/hooks/hooks.test.ts": {
    lines: 456,
    why: "tests of hooks of every form over one stand",
  },
  "packages/storage/src/postgres/behaviour/sharing.test.ts": {
    lines: 595,
    why: "tests of several processes on one database",
  },
  "packages/storage/src/postgres/read/reads.ts": { lines: 486, why: "every query that only reads" },
  "packages/storage/src/postgres/write/write-statement.ts": { lines: 454, why: "the parts of one statement" },
  "packages/storage/src/sqlite/engine/sqlite-storage.ts": {
    lines: 490,
    why: "the storage port over SQLite, one method after another",
  },
  "packages/testkit/src/conformance/budgets/budget-conformance.ts": {
    lines: 509,
    why: "the clauses about budgets",
  },
  "packages/testkit/src/conformance/families/family-conformance.ts": {
    lines: 541,
    why: "the clauses about families of sessions",
  },
  "packages/testkit/src/conformance/model-conformance.ts": {
    lines: 544,
    why: "one model of storage and its comparison with the real one",
  },
  "packages/testkit/src/crash/crash-everywhere.ts": {
    lines: 554,
    why: "one run and its repetitions with faults",
  },
  "packages/testkit/src/scripted-model-server.test.ts": {
    lines: 519,
    why: "tests of the scripted server in each wire format",
  },
  "scripts/mutants.ts": { lines: 520, why: "a table of mutants and their runner" },
};

/** Functions of the product by `file: name`. */
const LONG_FUNCTIONS: LongTexts = {};

/** Classes by `file: name`, with each measure that is above its budget, and why each is one idea. */
const LARGE_CLASSES: LargeClasses = {
  "packages/core/src/kernel/context.ts: AgentContext": {
    methods: 47,
    why: "everything that an agent may ask for, one method each",
  },
  "packages/core/src/replay/journal-cursor.ts: JournalCursor": {
    methods: 27,
    why: "one position in a journal, with a comparison for each kind of record",
  },
  "packages/runtime/src/session/session-driver.ts: SessionDriver": {
    methods: 26,
    why: "the phases of one session, whose methods call one another",
  },
  "packages/runtime/src/runtime.ts: LocalRuntime": {
    methods: 26,
    why: "the port that programs call, one method after another",
  },
  "packages/runtime/src/tasks/local/local-attempt.ts: LocalAttempt": {
    methods: 26,
    why: "the port of a handler, and the end of its attempt in each way",
  },
  "packages/runtime/src/sessions/live-sessions.ts: LiveSessions": {
    methods: 32,
    why: "the states of the sessions that a process drives",
  },
  "packages/simulator/src/world/connection.ts: Connection": {
    fields: 16,
    why: "one connection with its faults, delays and claims",
  },
  "packages/simulator/src/simulation.ts: Simulation": { fields: 18, why: "the world of one seed" },
  "packages/simulator/src/world/watched-storage.ts: SessionAccount": {
    fields: 18,
    why: "what is known of one session, a record of figures",
  },
  "packages/storage/src/postgres/news/commit-notices.ts: CommitNotices": {
    booleans: 4,
    why: "what the connection can do and what was said of it",
  },
  "packages/storage/src/postgres/read/reads.ts: Reads": { methods: 27, why: "every query that only reads" },
  "packages/storage/src/postgres/write/working-set.ts: WorkingSet": {
    methods: 27,
    why: "the row port, one member after another, over one group",
  },
  "packages/storage/src/sqlite/engine/reads.ts: Reads": {
    fields: 18,
    why: "one prepared statement for each query that only reads",
  },
  "packages/storage/src/sqlite/engine/sqlite-storage.ts: SqliteStorage": {
    fields: 23,
    methods: 27,
    why: "the storage port over SQLite, one method after another",
  },
  "packages/storage/src/sqlite/engine/writer.ts: Writer": {
    fields: 20,
    methods: 26,
    why: "the row port, with a prepared statement for each table that it writes",
  },
};

export function sizeBudgets(tree: Tree): readonly Violation[] {
  return overBudget(tree, LONG_FILES, LONG_FUNCTIONS, LARGE_CLASSES);
}

export function overBudget(
  tree: Tree,
  longFiles: LongTexts,
  longFunctions: LongTexts,
  largeClasses: LargeClasses,
): readonly Violation[] {
  const wrong = tree.sources.flatMap((source) => [
    ...wrongLength(source, longFiles[source.file]?.lines),
    ...functionsOf(source).flatMap((found) => wrongFunction(source, found, longFunctions)),
    ...classesOf(source).flatMap((found) => wrongClass(source, found, largeClasses)),
  ]);
  const entries = [longFiles, longFunctions, largeClasses].flatMap((list) => Object.keys(list));
  return [...wrong, ...goneFiles(tree, entries), ...goneFunctions(tree, Object.keys(longFunctions))];
}

/** A number for a source that was moved or divided would allow another source of that name to be long. */
function goneFiles({ sources }: Tree, entries: readonly string[]): readonly Violation[] {
  const files = new Set(sources.map(({ file }) => file));
  if (!files.has(LISTS)) return []; // A planted tree: the lists are about the repository.
  return entries
    .filter((entry) => !files.has(entry.split(": ")[0]!))
    .map((entry) => ({ file: LISTS, what: `${entry} is not there: remove its number` }));
}

/** The same for a function that has another name now. */
function goneFunctions({ sources }: Tree, entries: readonly string[]): readonly Violation[] {
  return entries.flatMap((entry) => {
    const source = sources.find(({ file }) => entry.startsWith(`${file}: `));
    if (source === undefined || functionsOf(source).some(({ name }) => entry === `${source.file}: ${name}`))
      return [];
    return [{ file: LISTS, what: `${entry} is not there: remove its number` }];
  });
}

/** The source with the lists. */
const LISTS = "scripts/tidy/sizes.ts";

function wrongLength({ file, text }: Source, listed: number | undefined): Violation[] {
  const lines = text.replaceAll(MUTANT_MARKER, "").split("\n").length - 1;
  const what = verdict(lines, LINES_MAX, listed, "lines", "LONG_FILES");
  return what === undefined ? [] : [{ file, what }];
}

function wrongFunction(
  { file, text, lineAt }: Source,
  { name, start, end }: NamedFunction,
  longFunctions: LongTexts,
): Violation[] {
  const lines = text.slice(start, end).replaceAll(MUTANT_MARKER, "").split("\n").length;
  const listed = longFunctions[`${file}: ${name}`]?.lines;
  const what = verdict(lines, FUNCTION_LINES_MAX, listed, "lines", "LONG_FUNCTIONS");
  return what === undefined ? [] : [{ file, line: lineAt(start), what: `${name}: ${what}` }];
}

function wrongClass({ file, lineAt }: Source, node: Node, largeClasses: LargeClasses): Violation[] {
  const name = nameOf(child(node, "id")) ?? "class";
  const members = [child(node, "body")?.["body"]].flat() as Node[];
  const fields = members.filter(
    ({ type, static: isStatic }) => type === "PropertyDefinition" && isStatic !== true,
  );
  const methods = members.filter(({ type, kind }) => type === "MethodDefinition" && kind !== "constructor");
  // A service of the contract has one method for each of its calls: the contract decides how many.
  const isService = [node["implements"]]
    .flat()
    .some((port) => nameOf(child(port as Node, "expression")) === "ServiceImpl");
  const sizes: Record<Measure, number> = {
    fields: fields.length,
    booleans: fields.filter(isBoolean).length,
    methods: methods.filter((method) => !isService || child(method, "key")?.type === "PrivateIdentifier")
      .length,
  };
  const listed = largeClasses[`${file}: ${name}`];
  return (Object.keys(sizes) as Measure[]).flatMap((measure) => {
    const what = verdict(sizes[measure], CLASS_MAX[measure], listed?.[measure], measure, "LARGE_CLASSES");
    return what === undefined ? [] : [{ file, line: lineAt(node.start), what: `${name}: ${what}` }];
  });
}

function verdict(
  size: number,
  budget: number,
  listed: number | undefined,
  unit: string,
  list: string,
): string | undefined {
  if (listed !== undefined && size > listed)
    return `${size} ${unit}, and its entry in ${list} allows ${listed}, which only falls: divide it`;
  if (listed === undefined && size > budget)
    return `${size} ${unit}, and ${budget} is the limit: divide it, or say in ${list} why it is one idea`;
  if (listed === undefined) return undefined;
  if (size <= budget) return `${size} ${unit} are within the budget: remove its number from ${list}`;
  return size < listed * (1 - SLACK) ? `${size} ${unit}: lower its number in ${list}` : undefined;
}

interface NamedFunction {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

const FUNCTION = /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/;
/** Packages whose functions declare tests, or play a fleet. */
const NO_PRODUCT: ReadonlySet<string> = new Set(["testkit", "simulator"]);

/** The functions of the product, by the name of the function or of what it is given to. */
function functionsOf({ file, packageFolder, isTest, walk }: Source): NamedFunction[] {
  const functions: NamedFunction[] = [];
  if (packageFolder === undefined || NO_PRODUCT.has(packageFolder)) return functions;
  if (isTest || file.includes("/behaviour/")) return functions;
  walk((node, parent) => {
    if (!FUNCTION.test(node.type)) return;
    const named = child(node, "id") ?? (parent && (child(parent, "id") ?? child(parent, "key")));
    functions.push({ name: nameOf(named) ?? "function", start: node.start, end: node.end });
  });
  return functions;
}

function classesOf(source: Source): Node[] {
  const classes: Node[] = [];
  source.walk((node) => {
    if (node.type === "ClassDeclaration" || node.type === "ClassExpression") classes.push(node);
  });
  return classes;
}

function isBoolean(field: Node): boolean {
  const annotation = child(field, "typeAnnotation");
  const type = annotation === undefined ? undefined : child(annotation, "typeAnnotation")?.type;
  return type === "TSBooleanKeyword" || typeof child(field, "value")?.["value"] === "boolean";
}
