// A rule about loops that run for as long as their process. A loop of its own may forget an error on one way,
// and then it never runs again.

import { child, nameOf, type Node, type Source, type Tree, type Violation } from "./tree.ts";

/** Loops that `repeat` of core does not fit, by the reason. */
const REASONS: Readonly<Record<string, readonly string[]>> = {
  "it tries one thing until that succeeds or is refused, and its caller gets the error": [
    "holdfast/src/sessions/send-signal.ts",
    "holdfast/src/chat/chat-talk.ts",
    "holdfast/src/ipc/ipc-host.ts",
    "holdfast/src/stack/supervisor.ts",
    "machine/src/sign-in-store.ts",
    "runner/src/queued-tasks.ts",
    "runner/src/registration.ts",
    "runner/src/polls/releases.ts",
    "runtime/src/tasks/conversation.ts",
    "storage/src/postgres/database/database.ts",
    "storage/src/remote/remote-storage.ts",
    "storage/src/sqlite/file/ownership.ts",
    "storage/src/sqlite/open.ts",
    "storage/src/sqlite/socket/client-processes.ts",
  ],
  "it belongs to one request or command, which ends with the error": [
    "coordinator/src/mcp/session-calls.ts",
    "coordinator/src/services/ended-runs.ts",
    "coordinator/src/services/storage-service.ts",
    "holdfast/src/commands/logs.ts",
    "holdfast/src/run/background.ts",
    "holdfast/src/run/drive/drive.ts",
    "holdfast/src/stack/log-reader.ts",
  ],
  "it belongs to one session, which is released with an error that does not pass": [
    "runtime/src/session/cancel-watch.ts",
    "runtime/src/session/inbox.ts",
    "runtime/src/session/missed-outcomes.ts",
    "runtime/src/sessions/live-sessions.ts",
  ],
  "it asks nobody, so it cannot fail": [
    "coordinator/src/store/all-changes.ts",
    "coordinator/src/store/notices.ts",
    "holdfast/src/stack/keeper.ts",
    "holdfast/src/run/runner-run.ts",
    "runtime/src/loop/timers.ts",
    "runtime/src/node/node-ports.ts",
    "runtime/src/node/process-memory.ts",
    "system/src/processes/supervised-process.ts",
    "storage/src/sqlite-tracer/index.ts",
  ],
  "its next call does not wait for the answer to this one, which may never come": [
    "runtime/src/claims/lease-keeper.ts",
    "storage/src/postgres/tables/instance.ts",
  ],
  "events decide when it looks, and behaviour/failing-calls.test.ts plants each error": [
    "coordinator/src/dispatch/cycles.ts",
    "runtime/src/loop/group-committer.ts",
    "runtime/src/sessions/due-sessions.ts",
  ],
  "a text begins it and ends with it, and an error of its request means that nobody watches": [
    "runtime/src/tracers/draft-sender.ts",
  ],
  "it keeps one connection, and what it does next depends on how that ended": [
    "runner/src/polls/poll-loop.ts",
    "storage/src/postgres/news/commit-notices.ts",
    "storage/src/remote/arrival-stream.ts",
  ],
};
const OWN_LOOPS: ReadonlySet<string> = new Set(
  Object.values(REASONS).flatMap((files) => files.map((file) => `packages/${file}`)),
);

const FILE_OF_REPEAT = "packages/core/src/time/repeat.ts";
/** Their processes may run for months. */
const PACKAGES: ReadonlySet<string> = new Set([
  "core",
  "runtime",
  "runner",
  "storage",
  "client",
  "coordinator",
  "holdfast",
  "machine",
  "system",
  "terminal",
]);
/** Calls that have their first argument called later. */
const TIMERS: ReadonlySet<string> = new Set(["setTimer", "setTimeout", "setInterval", "alarm"]);
/** Calls that take time, inside of a loop. */
const PAUSES = /^(delay|pause|sleep|wait\w*|setTimer|setTimeout)$/;
const HEADS: ReadonlySet<string> = new Set(["ForStatement", "WhileStatement", "DoWhileStatement"]);

/** A node with the one directly above it. */
interface Placed {
  readonly node: Node;
  readonly parent: Node | undefined;
}

/** Something with a name in a file, and all that stands in it. */
interface Unit {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly mentions: Set<string>;
}

/**
 * Work that is done again and again is done by `repeat`, which survives each error. The rule finds endless
 * loops that pause, intervals whose work may fail, and timers whose callbacks set them again.
 */
export function loopsAreRepeats(tree: Tree): readonly Violation[] {
  const sources = tree.sources.filter(
    ({ packageFolder, isTest, file }) =>
      packageFolder !== undefined && PACKAGES.has(packageFolder) && !isTest && file !== FILE_OF_REPEAT,
  );
  const found = sources.flatMap((source) => loopsOf(source));
  const known = new Set(found.map(({ file }) => file));
  return [
    ...found.filter(({ file }) => !OWN_LOOPS.has(file)),
    ...[...OWN_LOOPS]
      .filter((file) => tree.files.includes(file) && !known.has(file))
      .map((file) => ({
        file,
        what: "has no loop of its own any more: remove it from REASONS (scripts/tidy/loops.ts)",
      })),
  ];
}

function loopsOf(source: Source): readonly Violation[] {
  const nodes: Placed[] = [];
  source.walk((node, parent) => nodes.push({ node, parent }));
  const units = unitsOf(nodes);
  const lines = new Set<number>();
  for (const { node } of nodes) {
    const isLoop = HEADS.has(node.type)
      ? isEndless(node) && pauses(nodes, node)
      : node.type === "CallExpression" && isTimerLoop(nodes, node, units);
    if (isLoop) lines.add(source.lineAt(node.start));
  }
  const what =
    "a loop of its own: use `repeat` of core, or add the file to a reason in scripts/tidy/loops.ts";
  return [...lines].map((line) => ({ file: source.file, line, what }));
}

/** `for (;;)`, `while (true)`, and one that only a signal or a flag ends. */
function isEndless(loop: Node): boolean {
  const test = child(loop, "test");
  if (test === undefined || test["value"] === true) return true;
  return loop.type !== "ForStatement" && test.type === "UnaryExpression" && test["operator"] === "!";
}

/** Whether it awaits something, and waits for time to pass. */
function pauses(nodes: readonly Placed[], loop: Node): boolean {
  const within = inside(nodes, loop);
  return (
    within.some(({ node }) => node.type === "AwaitExpression") &&
    within.some(({ node }) => node.type === "CallExpression" && PAUSES.test(calleeOf(node) ?? ""))
  );
}

function isTimerLoop(nodes: readonly Placed[], call: Node, units: readonly Unit[]): boolean {
  const name = calleeOf(call);
  if (name === undefined || !TIMERS.has(name)) return false;
  const [callback] = call["arguments"] as readonly Node[];
  if (callback === undefined) return false;
  const within = inside(nodes, callback);
  if (name === "setInterval") return within.some(({ node }) => isStart(node));
  const from = units
    .filter(({ start, end }) => start <= call.start && call.end <= end)
    .map((unit) => unit.name);
  return reachable(mentionsIn(within), units).some((reached) => from.includes(reached));
}

/** Work that nobody awaits, or that is awaited. */
function isStart(node: Node): boolean {
  return node.type === "AwaitExpression" || (node.type === "UnaryExpression" && node["operator"] === "void");
}

function reachable(names: Iterable<string>, units: readonly Unit[]): readonly string[] {
  const reached = new Set(names);
  for (const name of reached)
    for (const unit of units) if (unit.name === name) for (const next of unit.mentions) reached.add(next);
  return [...reached];
}

/** Functions, methods, and fields with what they are made of. */
function unitsOf(nodes: readonly Placed[]): readonly Unit[] {
  return nodes.flatMap(({ node }) => {
    const name = unitName(node);
    const { start, end } = node;
    return name === undefined ? [] : [{ name, start, end, mentions: mentionsIn(inside(nodes, node)) }];
  });
}

/** Private names with their `#`, as a field and a variable may be called the same. */
function unitName(node: Node): string | undefined {
  switch (node.type) {
    case "MethodDefinition":
    case "PropertyDefinition": {
      const key = child(node, "key");
      return key?.type === "PrivateIdentifier" ? `#${nameOf(key)}` : nameOf(key);
    }
    case "FunctionDeclaration":
      return nameOf(child(node, "id"));
    case "VariableDeclarator":
      return child(node, "init")?.type === "ArrowFunctionExpression" ? nameOf(child(node, "id")) : undefined;
    default:
      return undefined;
  }
}

/** Names of this file: those behind the dot of another object are not. */
function mentionsIn(nodes: readonly Placed[]): Set<string> {
  const names = nodes.map(({ node, parent }) => {
    if (node.type === "PrivateIdentifier") return `#${nameOf(node)}`;
    const isProperty = parent?.type === "MemberExpression" && parent["property"] === node;
    return isProperty && child(parent, "object")?.type !== "ThisExpression" ? undefined : nameOf(node);
  });
  return new Set(names.filter((name) => name !== undefined));
}

function calleeOf(call: Node): string | undefined {
  const callee = child(call, "callee");
  return nameOf(callee?.type === "MemberExpression" ? child(callee, "property") : callee);
}

function inside(nodes: readonly Placed[], { start, end }: Node): readonly Placed[] {
  return nodes.filter(({ node }) => start <= node.start && node.end <= end);
}
