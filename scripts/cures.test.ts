// Each code of an error has a test that does what the advice says and sees the error gone. A code without one
// has a reason.

import { fileURLToPath } from "node:url";
import { ERROR_TABLE } from "@holdfast/core";
import { expect, test } from "vitest";
import { COMMAND_ERRORS } from "../packages/terminal/src/frame/command-error.ts";
import { CURES, WITHOUT_CURE } from "./cures.ts";
import { child, nameOf, parseSource, readTree, type Node, type Source } from "./tidy/tree.ts";

const tree = readTree(fileURLToPath(new URL("..", import.meta.url)));
const codes = Object.keys({ ...ERROR_TABLE, ...COMMAND_ERRORS });
const rows = tree.sources.filter(({ file }) => file.endsWith("/cures.test.ts")).flatMap(rowsOf);

test("each code has a cure or a reason, and one of them", () => {
  const known = [...new Set(rows), ...Object.keys(CURES), ...Object.keys(WITHOUT_CURE)];
  expect(codes.filter((code) => !known.includes(code))).toEqual([]);
  expect(known.filter((code) => !codes.includes(code))).toEqual([]);
  expect(known.filter((code, at) => known.indexOf(code) !== at)).toEqual([]);
});

test("each cited test is there, and its text has the code", () => {
  const missing = Object.entries(CURES).filter(([code, [file, title]]) => {
    const source = tree.sources.find((one) => one.file === file);
    return source === undefined || !cites(source, title, code);
  });
  expect(missing).toEqual([]);
});

test("a reason is a sentence", () => {
  for (const reason of Object.values(WITHOUT_CURE)) expect(reason).toMatch(/^[A-Z].{20,}\.$/);
});

test("a title that is gone, a test without the code, and a test that is skipped would be found", () => {
  const source = (text: string): Source => parseSource("a.test.ts", text);
  expect(cites(source('test("t", () => expect("locked"));'), "t", "locked")).toBe(true);
  expect(cites(source('test("other", () => expect("locked"));'), "t", "locked")).toBe(false);
  expect(cites(source('test("t", () => expect("blocked"));'), "t", "locked")).toBe(false);
  expect(cites(source('test.skip("t", () => expect("locked"));'), "t", "locked")).toBe(false);
  expect(rowsOf(source('cure("locked", "how", heal); other("in_use");'))).toEqual(["locked"]);
});

/** The codes of the calls of `cure`. */
function rowsOf(source: Source): readonly string[] {
  const found: string[] = [];
  source.walk((node) => {
    if (node.type !== "CallExpression" || nameOf(child(node, "callee")) !== "cure") return;
    found.push(String((node["arguments"] as readonly Node[])[0]?.["value"]));
  });
  return found;
}

/** Whether a file has a test with this title whose text has the code, in programs or on the command line. */
function cites(source: Source, title: string, code: string): boolean {
  const name = new RegExp(`\\b(${code}|E_${code.toUpperCase()})\\b`);
  let isThere = false;
  source.walk((node) => {
    if (node.type !== "CallExpression") return;
    const [first] = node["arguments"] as readonly Node[];
    if (first?.["value"] !== title) return;
    const text = source.text.slice(node.start, node.end);
    isThere ||= !/^\w+\.(skip|todo)/.test(text) && name.test(text);
  });
  return isThere;
}
