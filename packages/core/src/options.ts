// `checkOptions`: the options of a call, and the kind of each. It is for calls from code that no compiler has
// checked. Impossible options are refused before anything is done, with the given and the expected value.

import { didYouMean } from "./errors/did-you-mean.ts";
import { UsageError } from "./errors/errors.ts";

/** The rule for one option or argument. */
export interface OptionRule {
  readonly expected: string;
  readonly fits: (value: unknown) => boolean;
}

export type OptionRules = Readonly<Record<string, OptionRule>>;

/**
 * Check the options of a call.
 *
 * @param call the name of the called function, as its caller knows it.
 * @throws UsageError for a value that is no object, for an unknown option, and for an option of another kind.
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

/** Check one argument. */
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

/** A number where `Infinity` means no limit. */
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

/** The description of a value for an error, by which its author recognises it. */
export function shown(given: unknown): string {
  if (typeof given === "string") return JSON.stringify(given.slice(0, SHOWN_CHARS));
  if (typeof given === "function") return "a function";
  if (typeof given !== "object" || given === null) return String(given);
  if (Array.isArray(given)) return "a list";
  return `an object with ${Object.keys(given).slice(0, 5).join(", ") || "nothing"}`;
}
