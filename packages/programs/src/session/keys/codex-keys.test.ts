// The key of Codex: whether a gateway can hold it is decided by the user's own `config.toml` and sign-in.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CODEX_PROGRAM_KEYS } from "./codex-keys.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "holdfast-codex-"))));
afterEach(() => rmSync(folder, { recursive: true }));

function held(config: string, more: Readonly<Record<string, string>> = {}) {
  writeFileSync(join(folder, "config.toml"), config);
  const environment = { CODEX_HOME: folder, OPENAI_API_KEY: "sk-0123456789abcdef", ...more };
  return CODEX_PROGRAM_KEYS.held(environment, undefined).map(({ variable, upstream }) => [
    variable,
    upstream,
  ]);
}

const PROVIDER = `model_provider = "mine"
[model_providers.mine]
name = "Mine"
base_url = "https://models.example/v1"
env_key = "OPENAI_API_KEY"
`;

test.for([
  ["no settings", "", "OPENAI_API_KEY", undefined],
  [
    "an address of the user's own",
    'openai_base_url = "https://proxy.example/v1"',
    "OPENAI_API_KEY",
    "https://proxy.example",
  ],
  ["a provider of the user's own", PROVIDER, "OPENAI_API_KEY", "https://models.example"],
  [
    "a provider in one line",
    'model_provider = "mine"\nmodel_providers.mine = { base_url = "https://models.example/v1", env_key = "OPENAI_API_KEY" }',
    "OPENAI_API_KEY",
    "https://models.example",
  ],
  ["text that looks like a provider", `instructions = """\n${PROVIDER}"""\n`, "OPENAI_API_KEY", undefined],
] as const)("the gateway holds the key with %s", ([, config, variable, upstream]) => {
  expect(held(config)).toEqual([[variable, upstream]]);
});

test.for([
  ["a provider with headers", `${PROVIDER}http_headers = { a = "b" }\n`],
  ["a provider with another key", PROVIDER.replace("OPENAI_API_KEY", "MINE_KEY")],
  ["a provider that is not there", 'model_provider = "mine"\n'],
  ["a profile", `profile = "work"\n${PROVIDER}`],
  ["a file that is no TOML", "model_provider = \n"],
] as const)("the program gets its key with %s", ([, config]) => {
  expect(held(config)).toEqual([]);
});

test("the program gets its key where it is signed in", () => {
  writeFileSync(join(folder, "auth.json"), "{}");
  expect(held("")).toEqual([]);
});
