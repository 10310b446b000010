// `readRunnerNumbers`: the numbers on the command line of a runner.

import { UsageError } from "@holdfast/core";
import type { Arguments } from "@holdfast/terminal/frame/command";

export interface RunnerNumbers {
  readonly maxRuns: number | undefined;
  readonly healthPort: number | undefined;
}

/** @throws UsageError */
export function readRunnerNumbers(args: Arguments): RunnerNumbers {
  return { maxRuns: numberOf(args, "max-runs", 1), healthPort: numberOf(args, "health-port", 0, 65_535) };
}

function numberOf(
  args: Arguments,
  name: string,
  min: number,
  max = Number.MAX_SAFE_INTEGER,
): number | undefined {
  const text = args.text(name);
  if (text === undefined) return undefined;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= min && number <= max) return number;
  throw new UsageError(`--${name} is not ${text}`, {
    at: `--${name}`,
    expected:
      max === Number.MAX_SAFE_INTEGER ? `a whole number, at least ${min}` : `one from ${min} to ${max}`,
  });
}
