// The environments and variables that a start names: the rule for them as an option, and the variables that
// are missing among them.

import type { OptionRule } from "../options.ts";
import type { GivenEnvironment } from "../session/session.ts";

export const environmentRule: OptionRule = {
  expected:
    "an object with `references`, a list of environments, and `values`, texts by the names of variables",
  fits: (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    const { references = [], values = {}, ...others } = value as Readonly<Record<string, unknown>>;
    const areTexts = (texts: unknown): boolean =>
      typeof texts === "object" &&
      texts !== null &&
      Object.values(texts).every((text) => typeof text === "string");
    return (
      Object.keys(others).length === 0 &&
      Array.isArray(references) &&
      areTexts(references) &&
      areTexts(values)
    );
  },
};

/** Whether two starts name the same environments in the same order, and give the same values. */
export function isSameEnvironment(one: GivenEnvironment = {}, other: GivenEnvironment = {}): boolean {
  const textOf = ({ references = [], values = {} }: GivenEnvironment): string =>
    JSON.stringify([references, Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1))]);
  return textOf(one) === textOf(other);
}

/** The required variables without a value. An environment that the start names may have all of them. */
export function variablesMissingIn(
  { references = [], values = {} }: GivenEnvironment = {},
  required: readonly string[],
): readonly string[] {
  return references.length > 0 ? [] : required.filter((name) => !Object.hasOwn(values, name));
}

/** @param missing at least one name. */
export function missingVariablesText(agent: string, missing: readonly string[]): string {
  const what =
    missing.length === 1 ? `the variable ${missing[0]} has` : `the variables ${missing.join(", ")} have`;
  return `${what} no value, and agent "${agent}" needs a value to start`;
}
