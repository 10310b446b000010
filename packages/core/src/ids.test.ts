import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isMeantBy, isName, isSessionId, mintId, positionId, shortIds } from "./ids.ts";

const anyU32 = fc.integer({ min: 0, max: 0xffff_ffff });

describe("minted ids", () => {
  test("minted ids are a prefix and a UUID of version 7, whatever the time and the randomness", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2 ** 48 - 1 }),
        fc.array(anyU32, { minLength: 3, maxLength: 3 }),
        (now, words) => {
          const id = mintId("ses", now, drawing(words));
          expect(id).toMatch(/^ses_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
          expect(Number.parseInt(id.slice(4, 12) + id.slice(13, 17), 16)).toBe(now);
          expect(isSessionId(id)).toBe(true);
        },
      ),
    );
  });

  test("minted ids sort by time, also as plain text", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2 ** 47 }),
        fc.integer({ min: 1, max: 2 ** 40 }),
        (now, later) => {
          expect(mintId("sig", now, () => 0xffff_ffff) < mintId("sig", now + later, () => 0)).toBe(true);
        },
      ),
    );
  });

  test("minted ids differ when only one random bit does", () => {
    const base = mintId("run", 1, drawing([0, 0, 0]));
    for (let word = 0; word < 3; word++) {
      // The second and third words have the part that cannot be guessed: 32 and 16 bits of them, and 26 of
      // the first.
      const bits = [26, 32, 32][word]!;
      const from = word === 2 ? 16 : 0;
      for (let bit = from; bit < bits; bit++) {
        const words = [0, 0, 0];
        words[word] = 2 ** bit;
        expect(mintId("run", 1, drawing(words)), `word ${word}, bit ${bit}`).not.toBe(base);
      }
    }
  });
});

test("a position's id is the session's and the number", () => {
  expect(positionId("ses_x", 12)).toBe("ses_x-12");
});

describe("names", () => {
  test.each([
    "a",
    "read-file",
    "ci.failed",
    "a b",
    "Grüße",
    "工具",
    "x/y",
    "me@home",
    "a:b",
    "1",
    "_x",
    "a+b",
    "a".repeat(200),
  ])("%s is a name", (name) => expect(isName(name)).toBe(true));

  test.each([
    "",
    " ",
    " a",
    "a ",
    "-a",
    ".",
    "a\nb",
    "a\u0000",
    "a*",
    "a\u2028b",
    "a\u202eb",
    "\ud800",
    "a(b",
    "a)",
    "a".repeat(201),
  ])("%j is no name", (name) => expect(isName(name)).toBe(false));
});

describe("session ids that a user chose", () => {
  test.each(["a", "A-1", "my.session_2", "0", "a".repeat(100)])("%s is one", (id) =>
    expect(isSessionId(id)).toBe(true),
  );
  test.each(["", ".", "..", "-a", "a/b", "a\\b", "a b", "a\n", "ü", "a".repeat(101), "a:b", "a\u0000"])(
    "%j is none",
    (id) => expect(isSessionId(id)).toBe(false),
  );
});

function drawing(words: readonly number[]): () => number {
  let next = 0;
  return () => words[next++]!;
}

describe("short ids", () => {
  const A = "ses_019ac842-3456-7abc-8def-3f9a1c20abcd";
  const B = "ses_019ac842-3456-7abc-8def-3f9a1c20ffff";
  const C = "ses_019ac842-9999-7abc-8def-0123456789ab";

  test("ids of one minute are told apart by their ends, as long as that takes", () => {
    expect([...shortIds([A, C, `${A}-3`, `${A}-3-12`, "nightly"]).values()]).toEqual([
      "3f9a1c20",
      "01234567",
      "3f9a1c20-3",
      "3f9a1c20-3-12",
      "nightly",
    ]);
    expect([...shortIds([A, B]).values()]).toEqual(["3f9a1c20abcd", "3f9a1c20ffff"]);
    const again = A.replace("3456", "7777");
    expect([...shortIds([A, again]).values()]).toEqual([A, again]);
    expect([...shortIds([A, "3f9a1c20"]).values()]).toEqual(["3f9a1c20abcd", "3f9a1c20"]);
  });

  test("each short id means its own id, and no other of those that it was made among", () => {
    const end = fc.array(fc.constantFrom("0", "1", "2", "9", "a", "f"), { minLength: 12, maxLength: 12 });
    const made = fc.tuple(end, fc.array(fc.nat(20), { maxLength: 2 })).map(([hex, below]) => {
      return `${A.slice(0, -12)}${hex.join("").replace(/^.{7}/, "0000000")}${below.map((n) => `-${n}`).join("")}`;
    });
    fc.assert(
      fc.property(fc.uniqueArray(made, { minLength: 1, maxLength: 8 }), (ids) => {
        for (const [id, short] of shortIds(ids))
          expect(ids.filter((one) => isMeantBy(one, short))).toEqual([id]);
      }),
    );
  });

  test.each([
    [A, "ses_019a", true],
    [A, "019a", true],
    [A, "3f9", true],
    [A, A, true],
    [A, "9a1c", false],
    [A, "", false],
    [A, "3F9A", false],
    [`${A}-3`, "3f9a", false],
    [`${A}-3`, "3f9a-3", true],
    [`${A}-3`, "3f9a-31", false],
    [`${A}-31`, "3f9a-3", false],
    [`${A}-3-1`, "019ac842-3-1", true],
    ["nightly-1", "night", true],
    ["nightly-1", "1", false],
  ])("%s is meant by %j: %s", (id, text, is) => {
    expect(isMeantBy(id, text)).toBe(is);
  });
});
