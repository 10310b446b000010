// `readSettings`: a file of settings of another tool that has rules for its agents. Also the places of those
// of Claude Code.
//
// A file that is there and cannot be read refuses the agents of its tool, because nobody knows what it
// forbids.

import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { defined } from "@holdfast/core";

import type { AgentPlaces } from "./agent-places.ts";
import { FileProblem, jsoncObject, readText } from "../format/front-matter.ts";

/** The person or the project that a file of settings belongs to. The computer's administrator owns `managed` files. */
export type SettingsOwner = "managed" | "user" | "project";

export interface SettingsFile {
  readonly path: string;
  readonly owner: SettingsOwner;
  /** The layer of the project that the file belongs to. */
  readonly layer?: string;
  readonly values: Readonly<Record<string, unknown>>;
  /** The reason for which it cannot be read. */
  readonly problem: string | undefined;
}

/** @param parse the form of the file. It throws for a text that is not of this form. */
export function readSettings(
  path: string,
  owner: SettingsOwner,
  parse: (text: string, name: string) => Readonly<Record<string, unknown>> = jsoncObject,
  layer?: string,
): readonly SettingsFile[] {
  if (!existsSync(path)) return [];
  const file = { path, owner, ...defined({ layer }) };
  try {
    return [{ ...file, values: parse(readText(path), basename(path)), problem: undefined }];
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const text = error instanceof FileProblem ? error.message : `it cannot be read: ${error.message}`;
    return [{ ...file, values: {}, problem: text }];
  }
}

/** The settings of the machine's administrator, which no other file overrules. */
export const MANAGED_SETTINGS: readonly string[] = [
  "/etc/claude-code/managed-settings.json",
  "/Library/Application Support/ClaudeCode/managed-settings.json",
  "C:\\Program Files\\ClaudeCode\\managed-settings.json",
];

/** @returns nothing for a user without a home folder. */
export function userClaudeSettings(home: string | undefined, env: AgentPlaces["env"]): string | undefined {
  const folder = env["CLAUDE_CONFIG_DIR"] || (home === undefined ? undefined : join(home, ".claude"));
  return folder === undefined ? undefined : join(folder, "settings.json");
}
