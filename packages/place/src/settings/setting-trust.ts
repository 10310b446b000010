// `countsUntrusted`: what a project's configuration may say before its user has trusted it. A cloned
// repository brings that file with it.
//
//   - A setting counts before trust only with a value that takes something away. It never names code, a file,
//     a server, a program or a right.
//   - Each setting has a rule. A new setting without one does not compile.

import type { Config } from "./config.ts";

interface Rule {
  /** Whether the value counts before trust. */
  readonly countsUntrusted: (value: unknown) => boolean;
  readonly why: string;
  /** How the user sets it for one call. */
  readonly instead: string;
}

const never = (why: string, instead: string): Rule => ({ countsUntrusted: () => false, why, instead });

// A new setting without a rule does not compile.
export const SETTING_RULES: Readonly<Record<keyof Config, Rule>> = {
  db: never("it makes files at any path", "--db or HOLDFAST_DB"),
  trace: never("it appends to any file, and sends texts to any server", "--trace"),
  strictBounds: {
    countsUntrusted: (value) => value === true,
    why: "true only refuses sessions without a limit",
    instead: "--strict-bounds",
  },
  commandNamespace: {
    countsUntrusted: (value) => value === true,
    why: "true only takes a right from commands",
    instead: "HOLDFAST_COMMAND_NAMESPACE",
  },
  mode: never("it chooses the sandbox, and with it where files go", "HOLDFAST_MODE"),
};
