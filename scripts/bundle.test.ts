// The shared `zod` of the published packages has every name that they use.

import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import * as shared from "@holdfast/proto/zod";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (pattern: string): readonly string[] =>
  globSync(pattern, { cwd: root }).map((path) => readFileSync(`${root}${path}`, "utf8"));

test("every name of zod that a package uses is shared", () => {
  const own = read("packages/*/src/**/*.ts");
  const providers = read("node_modules/@ai-sdk/{anthropic,google,openai,openai-compatible}/dist/index.js");
  expect(providers).toHaveLength(4);
  const texts = [...own, ...providers].filter((text) => /from "zod(\/v4)?"/.test(text));
  // A name of a type stands behind a colon, in angle brackets, or in a cast, and is no call.
  const called = texts.flatMap((text) => [...text.matchAll(/\bz\.([a-z]\w*)\(/g)].map(([, name]) => name!));
  const [utils = ""] = read("node_modules/@ai-sdk/provider-utils/dist/index.js");
  const named = [...utils.matchAll(/import \{ ([^}]+) \} from "zod\/v4(?:\/core)?"/g)].flatMap(([, names]) =>
    names!.split(", "),
  );
  expect(named).not.toEqual([]);
  expect([...new Set([...called, ...named])].filter((name) => !(name in shared.z))).toEqual([]);
});
