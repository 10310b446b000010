import { expect, test } from "vitest";
import { edited } from "./mutant-edit.ts";
import { editOf, markersIn, type MarkedChange } from "./mutant-source.ts";

/** The source with the change made. */
function change(text: string, becomes: Omit<MarkedChange, "marker">): string {
  return edited(text, editOf({ marker: "late", ...becomes }, [{ file: "a.ts", text }]));
}

test("a mutant without a part replaces the whole statement below its marker, and not what follows", () => {
  const text = "// mutant: late\nif (late) {\n  stop();\n}\ngo();\n";
  expect(change(text, { becomes: "" })).toBe("// mutant: late\n\ngo();\n");
});

test("a mutant replaces the first place of its part, in whatever layout", () => {
  for (const condition of ["now > end && isOpen", "now > end &&\n    isOpen"]) {
    const text = `{\n  // Why.\n  // mutant: late\n  // mutant: other\n  if (${condition}) stop(isOpen);\n}\n`;
    expect(change(text, { part: "&& isOpen", becomes: "" })).toContain("if (now > end ) stop(isOpen);");
  }
});

test("a marker above an operand or a property marks that alone", () => {
  const operand = "const is =\n  a === 1 &&\n  // mutant: late\n  b === 2 &&\n  c;\n";
  expect(change(operand, { becomes: "true" })).toContain("  true &&\n  c;");
  const property = "const it = {\n  a,\n  // mutant: late\n  b: of(c),\n};\n";
  expect(change(property, { becomes: "b: 1" })).toContain("  b: 1,\n};");
});

test("a marker or a part that is nowhere is an error that names it", () => {
  expect(() => change("go();\n", { becomes: "" })).toThrow("no source has the comment // mutant: late");
  const text = "// mutant: late\ngo();\n";
  expect(() => change(text, { part: "stop", becomes: "" })).toThrow("has no part stop");
  expect(() => change("go();\n// mutant: late\n", { becomes: "" })).toThrow("no syntax begins below");
});

test("only comments with a line of their own are markers", () => {
  expect(markersIn('  // mutant: a\ngo(); // mutant: b\nsay("// mutant: c");\n')).toEqual(["a"]);
});
