// `keyVariables`: the variables of an environment whose values are keys, by their names and values.
//
// The keys of the providers of models count with any value. Another variable counts by the end of its name.
// Its value then has 16 characters or more, and is neither a word nor the path of a file.

import { existsSync } from "node:fs";

/** The variables with the keys of the providers of models. */
export const PROVIDER_KEY_NAMES = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"] as const;

const NAME = /(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD)$/i;
const CHARS_MIN = 16;
const WORD = /^\p{L}+(?:[ _-]\p{L}+)*$/u;
const PATH = /^(?:\.{0,2}\/|~|[A-Za-z]:\\)/;

/** @param more the names of variables that count as well. */
export function keyVariables(
  env: Readonly<Record<string, string | undefined>>,
  more: ReadonlySet<string> = new Set(),
): readonly string[] {
  return Object.keys(env).filter((name) => {
    const value = env[name] ?? "";
    if (value === "") return false;
    if (more.has(name) || (PROVIDER_KEY_NAMES as readonly string[]).includes(name)) return true;
    return NAME.test(name) && isKey(value);
  });
}

function isKey(value: string): boolean {
  return value.length >= CHARS_MIN && !WORD.test(value) && !(PATH.test(value) && existsSync(value));
}
