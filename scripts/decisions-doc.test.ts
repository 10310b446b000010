// ARCHITECTURE.md lists every decision, so that a reader finds it without the folder.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

test("the list of ARCHITECTURE.md has each document of docs/decisions", () => {
  const text = readFileSync(`${root}ARCHITECTURE.md`, "utf8");
  const files = readdirSync(`${root}docs/decisions`);
  expect(files.filter((file) => !text.includes(`(docs/decisions/${file})`))).toEqual([]);
});
