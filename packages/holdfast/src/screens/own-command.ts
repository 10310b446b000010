// `callOwnCommand`: another command of ours, which works without the terminal of the screen that calls it.

import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { withHandedKeys } from "@holdfast/system";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";

const SAID_CHARS = 400;

/** @param input its standard input. @returns what it has said, on one line. */
export async function callOwnCommand(
  words: readonly string[],
  input: string,
  args: Arguments,
  io: Io,
): Promise<string> {
  const child = spawn(process.execPath, wordsOf(words, args), {
    cwd: io.cwd,
    stdio: ["pipe", "ignore", "pipe"],
    env: withHandedKeys(process.env, io.keys.handed),
  });
  child.stdin.on("error", () => {}); // It ended first, and says why.
  child.stdin.end(input);
  return plainLine(await text(child.stderr), SAID_CHARS);
}

/** The command line, with what this call was told about where sessions are. */
function wordsOf([command = "", ...words]: readonly string[], args: Arguments): readonly string[] {
  const where = ["db", "url", "token-file"].flatMap((name) =>
    args.texts(name).map((value) => `--${name}=${value}`),
  );
  return [...process.execArgv, process.argv[1]!, command, ...where, ...words];
}
