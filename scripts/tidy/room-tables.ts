// `roomTables`: CONTRIBUTING.md shows the rooms of `rooms.ts`, so that a newcomer reads what tidy checks.

import { ROOMS, type Layers } from "./rooms.ts";
import type { Tree, Violation } from "./tree.ts";

export const ROOM_DOCUMENT = "CONTRIBUTING.md";
const BEGIN = "<!-- These tables are written by `node scripts/tidy.ts --write`. -->\n";
const END = "<!-- The end of the tables. -->";

/** Each room says what belongs there, and the document shows the table as it is. */
export function roomTables(tree: Tree): readonly Violation[] {
  const text = tree.read(ROOM_DOCUMENT);
  if (text === undefined) return [];
  const what = "the tables of rooms differ from scripts/tidy/rooms.ts: run `node scripts/tidy.ts --write`";
  return [
    ...undescribed(ROOMS).map((room) => ({
      file: "scripts/tidy/rooms.ts",
      what: `${room} has no description`,
    })),
    ...(withRoomTables(text) === text ? [] : [{ file: ROOM_DOCUMENT, what }]),
  ];
}

/** The document with the tables of these rooms, between the marks. A missing mark is added, and no text is lost. */
export function withRoomTables(text: string, rooms: Readonly<Record<string, Layers>> = ROOMS): string {
  const [before = "", rest = ""] = text.split(BEGIN);
  const at = rest.indexOf(END);
  const after = at === -1 ? `${END}\n${rest}` : rest.slice(at);
  return `${before}${BEGIN}\n${Object.entries(rooms).map(tableOf).join("\n")}\n${after}`;
}

/** @returns The rooms whose description is empty. */
export function undescribed(rooms: Readonly<Record<string, Layers>>): string[] {
  return Object.entries(rooms).flatMap(([folder, layers]) =>
    layers
      .flatMap((layer) => Object.entries(layer))
      .filter(([, description]) => description.trim() === "")
      .map(([room]) => `packages/${folder}/src/${room}`),
  );
}

function tableOf([folder, layers]: readonly [string, Layers]): string {
  const rows = layers.flatMap((layer) =>
    Object.entries(layer).map(([room, is]) => `| \`${room}\` | ${is} |\n`),
  );
  return `| \`${folder}/src\` | |\n|---|---|\n${rows.join("")}`;
}
