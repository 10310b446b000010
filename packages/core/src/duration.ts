// `parseDuration`: time spans as people write them on a command line and in agent files, such as "10m".

import { DAY_MS, HOUR_MS, MINUTE_MS } from "./units.ts";
import { UsageError } from "./errors/errors.ts";

const DURATIONS = { ms: 1, s: 1_000, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS } as const;
const DURATION_MAX_MS = 3_650 * DURATIONS.d;

/** "90s", "10m", "1h30m" in milliseconds. @throws UsageError */
export function parseDuration(text: string, at: string): number {
  const parts = /^(?:\d+(?:ms|s|m|h|d))+$/.test(text) ? [...text.matchAll(/(\d+)(ms|s|m|h|d)/g)] : [];
  const ms = parts.reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * DURATIONS[unit as keyof typeof DURATIONS],
    0,
  );
  if (ms > 0 && ms <= DURATION_MAX_MS) return ms;
  throw new UsageError(`"${text}" is no time span`, {
    at,
    expected: "whole numbers above 0 with a unit of ms, s, m, h, d, up to ten years: 90s, 10m, 1h30m",
  });
}
