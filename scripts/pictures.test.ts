// The pictures of the documents: each that a document names is there, and each that is there is named.

import { readFileSync, statSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { trackedFiles } from "./site/tracked-files.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FILES = trackedFiles(ROOT);
/** In Markdown, and in the HTML of the README. */
const NAMED = /!\[[^\]]*\]\(([^\s)]+)\)|\b(?:src|srcset)="([^"\s]+)"/g;
const BYTES_MAX = 150_000;

const pictures = FILES.filter((path) => /^docs\/.*\.(svg|png|webp)$/.test(path));
const named = FILES.filter((path) => path.endsWith(".md")).flatMap((path) =>
  [...readFileSync(join(ROOT, path), "utf8").matchAll(NAMED)]
    .map(([, markdown, html]) => markdown ?? html!)
    .filter((to) => !/^[a-z]+:/.test(to))
    .map((to) => posix.join(dirname(path), to))
    .filter((to) => to.startsWith("docs/")),
);
/** The site shows the picture in dark to readers of its dark theme. */
const shown = new Set(named.flatMap((path) => [path, path.replace("-light.webp", "-dark.webp")]));

test("each picture that a document names is there", () => {
  expect(shown.size).toBeGreaterThan(8);
  expect([...shown].filter((path) => !pictures.includes(path))).toEqual([]);
});

test("each picture is named by a document, and is small", () => {
  expect(pictures.filter((path) => !shown.has(path))).toEqual([]);
  expect(pictures.filter((path) => statSync(join(ROOT, path)).size > BYTES_MAX)).toEqual([]);
});
