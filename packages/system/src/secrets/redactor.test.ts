import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Redactor } from "./redactor.ts";

const KEY = `sk-CANARY+/abc%41'q"9999zzzz`;

/** Encodings of a secret by programs, written without the code under test. */
const ENCODERS: Readonly<Record<string, (secret: string) => string>> = {
  "as it is": (secret) => secret,
  "in JSON": (secret) => JSON.stringify({ authorization: `Bearer ${secret}` }),
  "in JSON in JSON": (secret) => JSON.stringify(JSON.stringify([secret])),
  "in ASCII JSON": (secret) =>
    JSON.stringify(secret).replaceAll(
      /[\u007f-\uffff]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
    ),
  "in a URL": (secret) => encodeURIComponent(secret),
  "in a form": (secret) => new URLSearchParams({ key: secret }).toString(),
  "in XML": (secret) =>
    secret.replaceAll(/[&<>"']/g, (char) => `&${XML_NAMES[char as keyof typeof XML_NAMES]};`),
  "in base64": (secret) => Buffer.from(secret).toString("base64"),
  "in base64 for URLs": (secret) => Buffer.from(secret).toString("base64url"),
  "in base64 after one byte": (secret) => Buffer.from(`x${secret}yz`).toString("base64"),
  "in base64 after two bytes": (secret) => Buffer.from(`xx${secret}yz`).toString("base64"),
  "in hexadecimal": (secret) => Buffer.from(secret).toString("hex"),
  "in single quotes of a shell": (secret) => `'${secret.split("'").join(`'\\''`)}'`,
};
const XML_NAMES = { "&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos" } as const;

/** Every encoding by name, with a secret that it changes. Some encodings have variants. */
const MARKED = `k<&>\\$é/ '"\u0007~9999zz`;
const PERCENT = /%../g;
const unicode = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
const inJson = (secret: string): string => JSON.stringify(secret).slice(1, -1);
const atShift = (count: number, how: "base64" | "base64url"): string =>
  Buffer.from(`${"xx".slice(0, count)}${MARKED}`).toString(how);
const ENCODED: readonly (readonly [encoding: string, ...variants: string[]])[] = [
  ["as it is", MARKED],
  ["in JSON", inJson(MARKED)],
  ["in ASCII JSON", inJson(MARKED).replaceAll("é", unicode)],
  ["in JSON in JSON", inJson(inJson(MARKED))],
  ["in JSON with escaped slashes", inJson(MARKED).replace("/", String.raw`\/`)],
  ["in JSON of Go", inJson(MARKED).replaceAll(/[<>&]/g, unicode)],
  [
    "in a URL",
    encodeURIComponent(MARKED),
    encodeURIComponent(MARKED).replaceAll("'", "%27"),
    encodeURIComponent(MARKED).replaceAll(PERCENT, (code) => code.toLowerCase()),
    encodeURI(MARKED),
  ],
  ["in a form", new URLSearchParams({ "": MARKED }).toString().slice(1)],
  [
    "in XML",
    ...["&apos;", "&#39;", "&#x27;"].map((quote) =>
      MARKED.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;")
        .replace("'", quote),
    ),
  ],
  ["in a string of Go", String.raw`k<&>\\$é/ '\"\a~9999zz`],
  ["in the command line of Windows", MARKED.replace('"', String.raw`\"`)],
  ["in a string of Python", MARKED.replace("\\", String.raw`\\`).replace("'", String.raw`\'`)],
  ["in single quotes of a shell", MARKED.replace("'", String.raw`'\''`), MARKED.replace("'", `'"'"'`)],
  ["in double quotes of a shell", MARKED.replaceAll(/["$\\`]/g, String.raw`\$&`)],
  ["escaped for a shell", MARKED.replaceAll(/[^\w@%+=:,./-]/gu, String.raw`\$&`)],
  ["in hexadecimal", Buffer.from(MARKED).toString("hex"), Buffer.from(MARKED).toString("hex").toUpperCase()],
  ["in base64 at three shifts", ...[0, 1, 2].map((count) => atShift(count, "base64"))],
  ["in base64 for URLs at three shifts", ...[0, 1, 2].map((count) => atShift(count, "base64url"))],
];

const printable = fc
  .string({ unit: "grapheme", minLength: 8, maxLength: 60 })
  .filter((text) => text.trim().length >= 8);
const anyEncoding = fc.constantFrom(...Object.keys(ENCODERS));

describe("a secret never leaves", () => {
  test("a stream removes a random secret in a random encoding at random chunk borders", ofCampaign, () => {
    fc.assert(
      fc.property(printable, anyEncoding, fc.array(fc.nat(40), { maxLength: 20 }), (secret, how, sizes) => {
        const encoded = ENCODERS[how]!(secret);
        const text = `<<before ${encoded} after>>`;
        const safe = streamed(new Redactor([secret]), Buffer.from(text), sizes);
        expect(revealed(safe, secret), `${how}: ${text} became ${safe}`).toBe(false);
        expect(safe).toContain("[secret]");
        expect(safe.startsWith("<<before ")).toBe(true);
        expect(safe.endsWith(" after>>")).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  test("a stream and a whole text have the same result", ofCampaign, () => {
    fc.assert(
      fc.property(
        fc.array(printable, { minLength: 1, maxLength: 4 }),
        fc.array(fc.oneof(fc.nat(3), fc.string()), { maxLength: 12 }),
        fc.array(fc.nat(9)),
        (secrets, parts, sizes) => {
          const text = parts
            .map((part) => (typeof part === "string" ? part : (secrets[part % secrets.length] ?? "")))
            .join("");
          const redactor = new Redactor(secrets);
          expect(streamed(redactor, Buffer.from(text), sizes)).toBe(
            redactor.text(Buffer.from(text).toString()),
          );
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test.each(ENCODED)("a secret %s is replaced, wherever a chunk ends", (_encoding, ...variants) => {
    const redactor = new Redactor([MARKED]);
    for (const variant of variants) {
      const bytes = Buffer.from(`<< ${variant} >>`);
      for (let cut = 0; cut <= bytes.length; cut += 1)
        // Base64 has characters that the secret shares with its neighbours.
        expect(streamed(redactor, bytes, [cut])).toMatch(/^<< [\w/+-]{0,4}\[secret\][\w=/+-]{0,4} >>$/);
    }
  });

  test("a secret in lines of any width is replaced, wherever a chunk ends", () => {
    const jwt = `eyJhbGciOiJIUzI1NiJ9.${"cGF5bG9hZA".repeat(12)}.c2lnbmF0dXJl/+=`;
    const redactor = new Redactor([jwt]);
    const forms = [jwt, Buffer.from(jwt).toString("base64"), Buffer.from(jwt).toString("hex")];
    for (const form of forms)
      for (const width of [1, 7, 19, 20, 60, 76])
        for (const end of ["\n", "\r\n"]) {
          const lines = form.match(new RegExp(`.{1,${width}}`, "gs"))!.join(end);
          const text = `<< ${lines} >>`;
          expect(redactor.text(text)).toBe("<< [secret] >>");
          for (const cut of [1, 4, 5, 30, 81, text.length - 5])
            expect(streamed(redactor, Buffer.from(text), [cut])).toBe("<< [secret] >>");
          const inRecord = JSON.stringify(JSON.stringify({ out: text }));
          const shown = redactor.json(inRecord);
          expect(shown).toContain("[secret]");
          expect(shown).not.toContain(form.slice(0, Math.min(width, 12)).padEnd(6, " "));
          expect(streamed(redactor, Buffer.from(inRecord), [33, 1, 1, 1, 1, 1, 1])).toContain(
            "<< [secret] >>",
          );
        }
  });

  test("a secret in escapes of other programs is replaced, also in a record", () => {
    const secret = "schlüssel-ö-0123";
    const redactor = new Redactor([secret]);
    const escaped = JSON.stringify(secret).replaceAll(/[^ -~]/g, unicode);
    const shapes = [
      escaped,
      escaped.replaceAll(/u00[a-f\d]{2}/g, (code) => `u${code.slice(1).toUpperCase()}`),
      secret.split("").map(unicode).join(""),
    ];
    for (const shape of shapes) {
      expect(redactor.text(`<< ${shape} >>`)).toMatch(/^<< "?\[secret\]"? >>$/);
      expect(redactor.json(JSON.stringify({ out: shape }))).toMatch(
        /^\{"out":"(?:\\")?\[secret\](?:\\")?"\}$/,
      );
    }
  });

  test("the quoting of a real shell is replaced", () => {
    const quoted = execFileSync(
      "bash",
      ["-c", 'printf "%q\\n" "$1"; set -x; : "$1"; echo "$1" | base64', "-", KEY],
      {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      },
    );
    const safe = new Redactor([KEY]).text(quoted);
    expect(safe).toContain("[secret]");
    expect(revealed(safe, KEY)).toBe(false);
    expect(safe).not.toContain("CANARY");
  });

  test("two secrets that overlap are replaced as one", () => {
    expect(new Redactor(["abcdefgh", "efghijkl"]).text("-abcdefghijkl-")).toBe("-[secret]-");
  });

  test("a line of a key file is replaced alone", () => {
    const key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----\n";
    expect(new Redactor([key]).text("> kqhkiG9w0BAQEF <")).toBe("> [secret] <");
  });
});

describe("with pieces, a part of a key that a server quotes is replaced", () => {
  const redactor = new Redactor([KEY], { pieces: true });
  test.each([
    ["its beginning", `${KEY.slice(0, 14)}...`],
    ["its end", `...${KEY.slice(-13)}`],
    ["the middle in base64", Buffer.from(KEY).toString("base64").slice(4, -4)],
  ])("%s is replaced", (_what, text) => {
    const safe = redactor.text(`bad key ${text} refused`);
    expect(safe).toMatch(/^bad key (\.\.\.)?\[secret\].* refused$/);
    expect(revealed(safe, KEY.slice(4, 10))).toBe(false);
  });
});

describe("a text that is no secret passes", () => {
  test("a text without a secret is unchanged, and so is a text of fewer than six characters", () => {
    expect(new Redactor([KEY, "abc"]).text("abc is a word: sk-CAN")).toBe("abc is a word: sk-CAN");
  });

  test("a stream without the beginning of a secret holds nothing back", () => {
    const stream = new Redactor([KEY]).stream();
    const event = 'data: {"delta":"hello"}\n\n';
    expect(stream.write(Buffer.from(event)).toString()).toBe(event);
    expect(stream.write(Buffer.from("then sk-C")).toString()).toBe("then ");
    expect(stream.end().toString()).toBe("sk-C");
  });

  test("bytes that are no text are unchanged", () => {
    const bytes = Buffer.from([0, 255, 128, 10, 195]);
    const stream = new Redactor([KEY]).stream();
    expect(Buffer.concat([stream.write(bytes), stream.end()])).toEqual(bytes);
  });
});

test("a secret that is added while a stream runs is replaced from then on", () => {
  const redactor = new Redactor(["unrelated-secret"]);
  const stream = redactor.stream();
  const before = stream.write(Buffer.from("one sk-CANARY "));
  redactor.add("sk-CANARY");
  const after = [stream.write(Buffer.from("two sk-CAN")), stream.write(Buffer.from("ARY")), stream.end()];
  expect(`${before.toString()}${Buffer.concat(after).toString()}`).toBe("one sk-CANARY two [secret]");
});

test("redacted JSON has the same structure", () => {
  const redactor = new Redactor([KEY, "12345678"]);
  const value = { list: [KEY, 12_345_678, null, true], [KEY]: { deep: `x${KEY}y` } };
  expect(JSON.parse(redactor.json(JSON.stringify(value)))).toEqual({
    list: ["[secret]", "[secret]", null, true],
    "[secret]": { deep: "x[secret]y" },
  });
  expect(redactor.json('{ "spaces": "stay" }')).toBe('{ "spaces": "stay" }');
});

function streamed(redactor: Redactor, bytes: Buffer, sizes: readonly number[]): string {
  const stream = redactor.stream();
  const out: Buffer[] = [];
  let from = 0;
  for (const size of sizes) {
    out.push(stream.write(bytes.subarray(from, from + size)));
    from += size;
  }
  out.push(stream.write(bytes.subarray(from)), stream.end());
  return Buffer.concat(out).toString();
}

/** Whether a reader could still recover the secret. */
function revealed(text: string, secret: string): boolean {
  const words = text.split(/[^\w+/=-]+/);
  const read = words.flatMap((word) => [0, 1, 2, 3].map((skip) => Buffer.from(word.slice(skip), "base64")));
  const hex = words.map((word) => Buffer.from(word, "hex"));
  const uri = text.replaceAll("+", " ").replaceAll(/%(?![\da-f]{2})/gi, "");
  const plain = [text, unescaped(text), unescaped(unescaped(text)), decodeUri(uri)];
  return [...plain, ...[...read, ...hex].map(String)].some((view) => view.includes(secret));
}

function unescaped(text: string): string {
  return text
    .replaceAll(/\\u([\da-f]{4})/g, (_all, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replaceAll(/\\(.)/g, "$1");
}

function decodeUri(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
