import { describe, expect, test } from "vitest";

import { redact } from "./redact.ts";

const KEY = `sk-CANARY+/abc%41'q"9999zzzz`;

describe("a key is cut out of what a server says", () => {
  const bytes = Buffer.from(KEY);
  const written: readonly (readonly [string, string])[] = [
    ["as it is", KEY],
    ["in a URL", encodeURIComponent(KEY)],
    ["in a URL with small letters", encodeURIComponent(KEY).replaceAll(/%../g, (code) => code.toLowerCase())],
    ["in JSON", JSON.stringify({ authorization: `Bearer ${KEY}` })],
    ["in JSON in JSON", JSON.stringify(JSON.stringify({ key: KEY }))],
    ["in JSON with escaped slashes", JSON.stringify(KEY).replaceAll("/", String.raw`\/`)],
    ["in base64", bytes.toString("base64")],
    ["in base64 for URLs", bytes.toString("base64url")],
    ["in base64 after one byte", Buffer.from(`Bearer ${KEY} and more`).toString("base64")],
    ["in base64 after two bytes", Buffer.from(`user:xxx${KEY}`).toString("base64")],
    ["in hexadecimal", bytes.toString("hex")],
    ["in hexadecimal with capitals", bytes.toString("hex").toUpperCase()],
    ["its beginning", `${KEY.slice(0, 14)}...`],
    ["its end", `...${KEY.slice(-13)}`],
  ];
  test.each(written)("X4: %s", (_how, text) => {
    const safe = redact(`bad key ${text} refused`, [KEY]);
    expect(safe).toContain("[secret]");
    for (let at = 0; at + 12 <= text.length; at++) {
      const part = text.slice(at, at + 12);
      // Text around the key in its encoding may stay.
      if (KEY.includes(part) || bytes.toString("hex").includes(part)) expect(safe).not.toContain(part);
    }
    expect(safe).toMatch(/^bad key .* refused$/s);
    expect(decoded(safe)).not.toContain("CANARY");
  });

  test("everything else stays", () => {
    expect(redact("the model gpt-5 is overloaded", [KEY])).toBe("the model gpt-5 is overloaded");
    expect(redact("anything", ["", "none"])).toBe("anything");
    expect(redact("a short one: abc!", ["abc"])).toBe("a short one: [secret]!");
  });
});

/** The parts of a key that a reader could still recover. */
function decoded(text: string): string {
  const words = text.split(/[^\w+/=-]+/);
  const read = words.flatMap((word) =>
    [0, 1, 2, 3].map((skip) => Buffer.from(word.slice(skip), "base64").toString("latin1")),
  );
  return [text, ...read, ...words.map((word) => Buffer.from(word, "hex").toString("latin1"))].join("\n");
}
