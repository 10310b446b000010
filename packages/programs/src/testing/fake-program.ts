// The fakes of programs, for tests: which one stands for an included program (`fakeOf`), and its place on a
// PATH (`installFake`).

import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

import { includedFacts } from "../external.ts";
import { hasOwnAdapter, type IncludedName } from "../included-programs.ts";

export interface FakeProgram {
  /** The name of the program on the PATH. */
  readonly program: string;
  /** The absolute path of the module that speaks its protocol. */
  readonly source: string;
}

/** `fake-NAME.mjs` by the included name, and one for all programs of the Agent Client Protocol. */
export function fakeOf(name: IncludedName): FakeProgram {
  return fakeNamed(includedFacts(name).program.name, hasOwnAdapter(name) ? name : "acp");
}

export function fakeNamed(program: string, fake = program): FakeProgram {
  return { program, source: fileURLToPath(new URL(`./fake-${fake}.mjs`, import.meta.url)) };
}

/** @param version what it answers to `--version` at once. @returns its environment. */
export function installFake(
  home: string,
  { program, source }: FakeProgram,
  version?: string,
): Record<string, string> {
  const bin = join(home, "bin");
  mkdirSync(bin, { recursive: true });
  const answer = version === undefined ? "" : `if [ "$1" = --version ]; then echo ${version}; exit; fi\n`;
  writeFileSync(join(bin, program), `#!/bin/sh\n${answer}exec "${process.execPath}" "${source}" "$@"\n`);
  chmodSync(join(bin, program), 0o755);
  return { HOME: home, PATH: [bin, process.env["PATH"]].join(delimiter) };
}
