import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonSyntaxProblem } from "./json-syntax.ts";

test.each([
  ["", "the text ends too early, at line 1, column 1"],
  ["{\n  a: 1\n}", "unexpected character at line 2, column 3"],
  ['{\r\n  "a": 1,\r\n}', 'unexpected "}" at line 3, column 1'],
  ['{"a" 1}', "unexpected character at line 1, column 6"],
  ['["é😀", nul]', 'unexpected "]" at line 1, column 11'],
  ["[1, 2", "the text ends too early, at line 1, column 6"],
  ["01", "unexpected character at line 1, column 2"],
  ["1.x", "unexpected character at line 1, column 3"],
  ['"\\x"', "unexpected character at line 1, column 3"],
  ['"a\nb"', 'unexpected "\\n" at line 1, column 3'],
  ["[1]]", 'unexpected "]" at line 1, column 4'],
  ["'a'", `unexpected "'" at line 1, column 1`],
])("the place of the mistake in %j is named", (text, problem) => {
  expect(jsonSyntaxProblem(text)).toBe(problem);
});

test("json-syntax-1: a problem is found exactly where JSON.parse throws", () => {
  const piece = fc.constantFrom(
    ..."{}[],:\"\\ \n0123456789-+.eEtruefalsn'x\u0000\u2028".split(""),
    "null",
    '"a"',
    "\\u00e9",
  );
  const nearJson = fc.tuple(fc.json(), fc.nat(), fc.string({ maxLength: 2 })).map(([text, at, other]) => {
    const cut = at % (text.length + 1);
    return text.slice(0, cut) + other + text.slice(cut + other.length);
  });
  const anyText = fc.oneof(
    fc.json(),
    nearJson,
    fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join("")),
  );
  fc.assert(
    fc.property(anyText, (text) => {
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      expect(jsonSyntaxProblem(text) === undefined).toBe(isJson);
    }),
    { numRuns: 3_000 },
  );
});

test("json-syntax-2: a deep and a long text are gone through", () => {
  expect(jsonSyntaxProblem("[".repeat(200_000))).toBe("the text ends too early, at line 1, column 200001");
  expect(jsonSyntaxProblem(`${"[".repeat(200_000)}${"]".repeat(200_000)}`)).toBeUndefined();
});
