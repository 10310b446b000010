import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deadLinks, withoutDeadLinks, writeDocs } from "./shipped-docs.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

let folder: string;
let files: readonly string[];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-docs-"));
  writeDocs(ROOT, folder);
  files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
    statSync(join(folder, path)).isFile(),
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("each link of a shipped document leads to a file that is shipped", () => {
  const documents = files.filter((path) => path.endsWith(".md"));
  expect(documents.length).toBeGreaterThan(80);
  const dead = documents.flatMap((path) =>
    deadLinks(path, readFileSync(join(folder, path), "utf8"), new Set(files)).map((to) => [path, to]),
  );
  expect(dead).toEqual([]);
  for (const path of ["docs/demo.svg", "docs/config.schema.json", "docs/ipc/agents.ts", "llms.txt"])
    expect([path, existsSync(join(folder, path))]).toEqual([path, true]);
});

test("a picture is shipped to the byte", () => {
  const pictures = files.filter((path) => path.endsWith(".webp"));
  expect(pictures.length).toBeGreaterThan(2);
  for (const path of pictures)
    expect(readFileSync(join(folder, path)).equals(readFileSync(join(ROOT, path))), path).toBe(true);
});

test("examples are shipped with what they run, and without their tests and what they have left", () => {
  const program = "examples/16-executors/executors/shell/ao-shell-exec";
  expect(statSync(join(folder, program)).mode & 0o111).toBe(0o111);
  expect(files).toContain("examples/19-script-and-skill/.holdfast/agents/writer.md");
  expect(files.filter((path) => /\.test\.ts$|\.gitignore$|\.db$/.test(path))).toEqual([]);
});

test("a link to what is not shipped becomes its words, and others stay", () => {
  const shipped = new Set(["docs/a.md", "docs/b.md", "examples/01-a/README.md"]);
  const text =
    "See [b](b.md#part), [*all* [of] it](../README.md), [one](../examples/01-a), [a place](#here), ![x](x.svg)";
  expect(withoutDeadLinks("docs/a.md", `${text} and [there](https://example.org/x.md).`, shipped)).toBe(
    "See [b](b.md#part), *all* [of] it, [one](../examples/01-a), [a place](#here), x and [there](https://example.org/x.md).",
  );
});
