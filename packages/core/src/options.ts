// What a call is given beside its data: which options there are, and of what kind. For whoever is called from code that no compiler
// has seen: what cannot be meant is refused before anything is done, with what was given and what is expected.

import { didYouMean } from "./errors/did-you-mean.ts";
import { UsageError } from "./errors/errors.ts";

/** Of one option or argument. */
export interface OptionRule {
  readonly expected: string;
  readonly fits: (value: unknown) => boolean;
}

export type OptionRules = Readonly<Record<string, OptionRule>>;

/**
 * @param call what is called, as its caller knows it.
 * @throws UsageError for what is no object, for an option that there is not, and for one of another kind.
 */
export function checkOptions(call: string, given: unknown, rules: OptionRules): void {
  const names = Object.keys(rules);
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw wrongArgument(call, "options", given, `an object with some of ${names.join(", ")}, or nothing`);
  for (const [name, value] of Object.entries(given)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined)
      throw new UsageError(`${call} has no option "${name}"${didYouMean(name, names)}`, {
        at: `${call}: ${name}`,
        got: shown(value),
        expected: `some of ${names.join(", ")}`,
        fix: `leave "${name}" out, or name the option that is meant`,
      });
    if (value !== undefined && !rule.fits(value)) throw wrongArgument(call, name, value, rule.expected);
  }
}

/** One argument that is not what it must be. */
export function wrongArgument(call: string, what: string, given: unknown, expected: string): UsageError {
  return new UsageError(`${call} cannot take ${shown(given)} as ${what}`, {
    at: `${call}: ${what}`,
    got: shown(given),
    expected,
    fix: given === undefined ? `give ${what}` : `give ${what} as it is expected; nothing was done`,
  });
}

export const textRule: OptionRule = {
  expected: "a text that is not empty",
  fits: (value) => typeof value === "string" && value !== "",
};
export const flagRule: OptionRule = {
  expected: "true or false",
  fits: (value) => typeof value === "boolean",
};
export const anyRule: OptionRule = { expected: "anything", fits: () => true };

export const wholeRule = (least: number, what: string): OptionRule => ({
  expected: `${what}, a whole number, ${least} or more`,
  fits: (value) => Number.isSafeInteger(value) && (value as number) >= least,
});

/** Where `Infinity` is for ever. */
export const msRule = (least: number): OptionRule => ({
  expected: `milliseconds, ${least} or more`,
  fits: (value) => typeof value === "number" && value >= least,
});

export const objectRule = (expected: string): OptionRule => ({
  expected,
  fits: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
});

export const functionRule = (expected: string): OptionRule => ({
  expected,
  fits: (value) => typeof value === "function",
});

export const listRule = (expected: string, fits: (item: unknown) => boolean): OptionRule => ({
  expected,
  fits: (value) => Array.isArray(value) && value.every(fits),
});

export const oneOfRule = (...values: readonly string[]): OptionRule => ({
  expected: values.map((value) => `"${value}"`).join(" or "),
  fits: (value) => typeof value === "string" && values.includes(value),
});

const SHOWN_CHARS = 100;

/** A value for an error: what of it tells which it is. */
export function shown(given: unknown): string {
  if (typeof given === "string") return JSON.stringify(given.slice(0, SHOWN_CHARS));
  if (typeof given === "function") return "a function";
  if (typeof given !== "object" || given === null) return String(given);
  if (Array.isArray(given)) return "a list";
  return `an object with ${Object.keys(given).slice(0, 5).join(", ") || "nothing"}`;
}
