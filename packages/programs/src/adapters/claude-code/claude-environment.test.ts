// The key of Claude Code: the user's own settings decide whether a gateway can hold it.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

import { CLAUDE_PROGRAM_KEYS } from "./claude-environment.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "holdfast-claude-"))));
afterEach(() => rmSync(folder, { recursive: true }));

function held(settings: string): readonly string[] {
  writeFileSync(join(folder, "settings.json"), settings);
  const environment = { CLAUDE_CONFIG_DIR: folder, ANTHROPIC_API_KEY: "sk-0123456789abcdef" };
  return CLAUDE_PROGRAM_KEYS.held(environment, undefined).map(({ variable }) => variable);
}

test.for([
  ["no settings", ""],
  ["settings of other things", '{"env": {"EDITOR": "vi"}, "model": "opus"}'],
  ["an address that is empty", '{"env": {"ANTHROPIC_BASE_URL": ""}}'],
  ["variables that are no object", '{"env": "ANTHROPIC_BASE_URL"}'],
] as const)("the gateway holds the key with %s", ([, settings]) =>
  expect(held(settings)).toEqual(["ANTHROPIC_API_KEY"]),
);

test.for([
  ["another address", '{"env": {"ANTHROPIC_BASE_URL": "https://models.example"}}'],
  ["another vendor as a text", '{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}'],
  ["another vendor as a number", '{"env": {"CLAUDE_CODE_USE_BEDROCK": 1}}'],
] as const)("the program gets its key with %s", ([, settings]) => expect(held(settings)).toEqual([]));
