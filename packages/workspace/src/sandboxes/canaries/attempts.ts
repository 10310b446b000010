// How attempts to break out become one command (`eachTried`): an attempt that fails keeps no other one from
// happening.
//
// A shell may end at an attempt. `dash` does at an `exec` whose redirection fails, and the emulated shell at
// the first file that it may not write. Each attempt therefore has a shell of its own.

import type { Execution } from "../../workspace/execute.ts";

const ALL_TRIED = "each attempt was made";

/** A line that makes each attempt in a shell of its own, one after another. */
function eachTried(attempts: readonly string[]): string {
  return `${attempts.map((attempt) => `( ${attempt} )`).join("; ")}; echo '${ALL_TRIED}'`;
}

/**
 * Makes each attempt, whatever becomes of the others.
 *
 * @throws Error when the command ended before the last of them, so that it proves nothing.
 */
export async function tryEach(
  run: (line: string) => Promise<Execution>,
  attempts: readonly string[],
): Promise<Execution> {
  const execution = await run(eachTried(attempts));
  if (execution.stdout.trimEnd().endsWith(ALL_TRIED)) return execution;
  throw new Error(
    `the attempts to break out ended early (${JSON.stringify(execution.end)}), so not each of them was made: ${attempts.join("; ")}\n` +
      execution.stderr.trim().slice(0, 300),
  );
}
