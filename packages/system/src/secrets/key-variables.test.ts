// Which variables of an environment are keys.

import { expect, test } from "vitest";
import { keyVariables } from "./key-variables.ts";

test("a variable is a key by its name and value, and a provider's by its name alone", () => {
  const env = {
    ANTHROPIC_API_KEY: "short",
    GITHUB_TOKEN: "ghp_0123456789abcdef",
    db_password: "correct7horse7battery",
    SIGNING_SECRET: "c2VjcmV0IHRoYXQgaXMgbG9uZw==",
    TOKEN: "0123456789abcdef",
    SHORT_TOKEN: "0123456789abcde",
    WORD_KEY: "production-environment",
    FILE_KEY: "/usr/bin/../bin/../bin/env",
    EMPTY_KEY: "",
    KEYBOARD: "0123456789abcdef0",
    DSN: "postgres://user:pass@host/database",
  };
  expect(keyVariables(env)).toEqual([
    "ANTHROPIC_API_KEY",
    "GITHUB_TOKEN",
    "db_password",
    "SIGNING_SECRET",
    "TOKEN",
  ]);
  expect(keyVariables(env, new Set(["DSN"]))).toContain("DSN");
});
