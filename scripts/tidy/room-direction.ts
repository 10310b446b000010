// `roomDirection`: the rules about the rooms of each package (`rooms.ts`).

import { relativeTargets } from "./imports.ts";
import { LARGE_ROOMS, ROOMS, SOURCES_MAX, type Layers } from "./rooms.ts";
import type { Source, Tree, Violation } from "./tree.ts";

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
    roomsOf(layers).map((room) => `packages/${folder}/src/${room}`),
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
      const { layers, path } = placeOf(`${folder}/`);
      const entry =
        layers !== undefined && roomOf(layers, path.replace(/\/$/, "")) !== undefined
          ? "needs no entry"
          : "needs an entry";
      const what = `${count} sources, and ${max} is the limit: put those of one subject into a folder inside, which ${entry} in scripts/tidy/rooms.ts`;
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

function roomsOf(layers: Layers): string[] {
  return layers.flatMap((rooms) => Object.keys(rooms));
}

/** The deepest room that the path is in. */
function roomOf(layers: Layers, path: string): string | undefined {
  const rooms = roomsOf(layers).filter((room) => path === room || path.startsWith(`${room}/`));
  return rooms.toSorted((a, b) => b.length - a.length)[0];
}

function layerOf(layers: Layers, room: string): number {
  return layers.findIndex((rooms) => Object.hasOwn(rooms, room));
}

function placeOf(file: string): { folder: string; path: string; layers: Layers | undefined } {
  const [, folder = "", path = ""] = /^packages\/([^/]+)\/src\/(.*)$/.exec(file) ?? [];
  return { folder, path, layers: ROOMS[folder] };
}

function isSubject({ packageFolder, isTest, file }: Source): boolean {
  return packageFolder !== undefined && !isTest && !file.includes("/behaviour/");
}
