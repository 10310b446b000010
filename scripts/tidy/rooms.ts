// Rooms: the folders of each package, in layers.
//
// A room imports from the layers below its own and from itself. Rooms of one layer do not know each other. A source directly
// in `src` is a room of its own if the table has its name. Any other source there composes the package: it may import
// every room, and no room may import it. Tests import any room.

import { relativeTargets } from "./imports.ts";
import type { Source, Tree, Violation } from "./tree.ts";

type Layers = readonly (readonly string[])[];

/** For each package its rooms under `src`, from the bottom layer up. A package without rooms is not in the table. */
const ROOMS: Readonly<Record<string, Layers>> = {
  core: [
    ["errors", "collections", "contents", "hash.ts", "ids.ts", "limits.ts"],
    ["json", "duration.ts", "options.ts", "standard-schema.ts"],
    ["journal"],
    ["budget"],
    ["session"],
    ["rules", "state"],
    ["transaction", "ports"],
    ["time", "transfer", "replay"],
    ["asks"],
    ["kernel"],
  ],
  dashboard: [["api", "code"], ["parts"], ["screens"]],
  proto: [["gen", "view"], ["line.ts"], ["services.ts"]],
  runtime: [
    ["loop", "agents", "sources", "node", "memory"],
    ["tasks", "gateway"],
    ["session"],
    ["isolation", "tracers"],
    ["api"],
    ["claims"],
    ["sessions"],
    ["requests", "schedules"],
  ],
  storage: [
    ["journal-parts.ts", "verify-report.ts", "node-timers.ts", "sqlite-tracer", "remote"],
    ["sqlite/file", "postgres/database"],
    ["host-presence.ts", "sqlite/tables"],
    ["sqlite/engine", "postgres/tables"],
    ["sqlite/socket", "postgres/write"],
    ["sqlite", "postgres/read"],
    ["postgres/news", "postgres/engine"],
    ["postgres"],
  ],
  system: [
    ["processes", "secrets", "address-kind.ts", "package-version.ts", "user-namespace.ts", "zod-names.ts"],
    ["files"],
  ],
  workspace: [["granting-places.ts"], ["workspace"], ["sandboxes", "git"], ["worktrees"]],
  agents: [
    ["lazy-packages.ts"],
    ["models", "agent-files/agent-record.ts"],
    ["agent-files/format", "mcp", "web", "tasks"],
    ["model-loop", "agent-files/dialects", "skills", "contents", "environments"],
    ["agent-files"],
    ["agent-files/servers"],
    ["scripts", "hook-files"],
    ["capabilities"],
    ["procedural"],
  ],
  programs: [["session"], ["adapters"], ["registry"]],
  machine: [
    ["machine-options.ts", "project-rules.ts", "session-folder.ts", "external-agent-names.ts"],
    ["external-agents.ts"],
    ["doubled-names.ts"],
    ["machine-programs.ts"],
    ["agents"],
  ],
  coordinator: [
    ["call", "store"],
    ["dispatch", "catalogue"],
    ["input"],
    ["services"],
    ["api"],
    ["page", "mcp"],
  ],
  runner: [["secrets", "polls"], ["policy"], ["executors"]],
  holdfast: [
    ["frame", "sdk"],
    ["tracing", "settings", "supervised", "executors"],
    ["place", "principals"],
    ["secrets", "stack-log", "environments", "outside"],
    ["agents"],
    ["view", "scripts"],
    ["typing", "catalogue"],
    ["run", "inbox"],
    ["ask", "doctor", "chat"],
    ["screens"],
    ["local", "ipc", "transfer", "mcp-server"],
    ["commands/people", "commands/library", "commands/work"],
    ["commands"],
  ],
  testkit: [
    ["failing-calls.ts"],
    [
      "canary-scan.ts",
      "faulty-storage.ts",
      "test-runtime.ts",
      "scripted-model",
      "mcp-server",
      "a2a-server",
      "conformance",
    ],
    ["crash"],
  ],
  simulator: [["world"], ["programs"], ["machine"], ["fleet"], ["nemesis"]],
};

const SOURCES_MAX = 12;

/** Rooms with more sources than `SOURCES_MAX`. A number only falls: the next source goes into a room of its own. */
const LARGE_ROOMS: Readonly<Record<string, { readonly sources: number; readonly why: string }>> = {
  "packages/coordinator/src/api": {
    sources: 21,
    why: "protocols, JSON and connection limits are three subjects",
  },
  "packages/coordinator/src/services": {
    sources: 18,
    why: "one service of the contract each, with their scopes",
  },
  "packages/holdfast/src/commands": { sources: 31, why: "one source for each command" },
  "packages/holdfast/src/frame": { sources: 13, why: "small sources that all commands share" },
  "packages/holdfast/src/view": { sources: 22, why: "one source for each thing that is shown" },
  "packages/runtime/src/session": { sources: 14, why: "the parts of one session driver" },
  "packages/simulator/src/nemesis": { sources: 13, why: "processes, faults, recorders and checkers" },
  "packages/testkit/src/conformance": { sources: 26, why: "one source for each group of clauses" },
};

/** Imports between the rooms of a package go down the table's layers. */
export function roomDirection(tree: Tree): readonly Violation[] {
  const upward = tree.sources.filter(isSubject).flatMap((source) =>
    relativeTargets(source).flatMap(({ file: target, line }) => {
      const what = wrongDirection(source.file, target);
      return what === undefined ? [] : [{ file: source.file, line, what }];
    }),
  );
  return [...upward, ...missingRooms(tree), ...largeRooms(tree), ...emptyRooms(tree)];
}

/** An entry of the tables whose folder is gone would wait for another folder of that name. */
function emptyRooms(tree: Tree): Violation[] {
  const file = "scripts/tidy/rooms.ts";
  if (!tree.files.includes(file)) return [];
  const rooms = Object.entries(ROOMS).flatMap(([folder, layers]) =>
    layers.flat().map((room) => `packages/${folder}/src/${room}`),
  );
  return [...rooms, ...Object.keys(LARGE_ROOMS)]
    .filter((room) => !tree.files.some((known) => known === room || known.startsWith(`${room}/`)))
    .map((room) => ({ file, what: `${room} is not there: remove it from the table` }));
}

/** A new folder gets its place in the table before its first import. */
function missingRooms(tree: Tree): Violation[] {
  const violations = new Map<string, Violation>();
  for (const { file } of tree.sources.filter(isSubject)) {
    const { layers, path } = placeOf(file);
    if (layers === undefined || !path.includes("/") || roomOf(layers, path) !== undefined) continue;
    const folder = file.replace(/\/[^/]*$/, "");
    violations.set(folder, { file, what: `${folder} is no room of the table in scripts/tidy/rooms.ts` });
  }
  return [...violations.values()];
}

function largeRooms(tree: Tree): Violation[] {
  const counts = new Map<string, number>();
  for (const { file } of tree.sources.filter(isSubject)) {
    if (/\/(index|internal|main)\.ts$/.test(file)) continue;
    const folder = file.replace(/\/[^/]*$/, "");
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  const violations: Violation[] = [];
  for (const [folder, count] of counts) {
    const listed = LARGE_ROOMS[folder]?.sources;
    const max = listed ?? SOURCES_MAX;
    if (count > max) {
      const what = `${count} sources, and ${max} is the limit: divide the folder into rooms by subject`;
      violations.push({ file: folder, what });
    } else if (listed !== undefined && count < listed) {
      const to = count > SOURCES_MAX ? `lower its number to ${count}` : "remove it";
      violations.push({
        file: folder,
        what: `${count} sources, and LARGE_ROOMS allows ${listed}: ${to} there`,
      });
    }
  }
  return violations;
}

function wrongDirection(from: string, to: string): string | undefined {
  const here = placeOf(from);
  const there = placeOf(to);
  const { layers } = here;
  if (layers === undefined || here.folder !== there.folder) return undefined;
  const [room, target] = [roomOf(layers, here.path), roomOf(layers, there.path)];
  if (room === undefined || room === target) return undefined;
  if (target === undefined) return `${room} imports ${there.path}, which composes the package`;
  const [low, high] = [layerOf(layers, target), layerOf(layers, room)];
  if (low < high) return undefined;
  const relation = low === high ? "of its own layer" : "of a layer above it";
  return `${room} imports ${there.path}, ${relation} (scripts/tidy/rooms.ts)`;
}

/** The deepest room that the path is in. */
function roomOf(layers: Layers, path: string): string | undefined {
  const rooms = layers.flat().filter((room) => path === room || path.startsWith(`${room}/`));
  return rooms.toSorted((a, b) => b.length - a.length)[0];
}

function layerOf(layers: Layers, room: string): number {
  return layers.findIndex((rooms) => rooms.includes(room));
}

function placeOf(file: string): { folder: string; path: string; layers: Layers | undefined } {
  const [, folder = "", path = ""] = /^packages\/([^/]+)\/src\/(.*)$/.exec(file) ?? [];
  return { folder, path, layers: ROOMS[folder] };
}

function isSubject({ packageFolder, isTest, file }: Source): boolean {
  return packageFolder !== undefined && !isTest && !file.includes("/behaviour/");
}
