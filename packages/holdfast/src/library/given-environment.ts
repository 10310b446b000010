// `givenEnvironment`: the environments and variables that a call names by `--env-ref NAME` and
// `--env KEY=VALUE`.

import { environmentsBeside } from "@holdfast/agents";
import { checkKey, type GivenEnvironment } from "@holdfast/core";
import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { trustFileOf } from "@holdfast/place/project";

export function environmentsFile(io: Pick<Io, "env" | "cwd">): string {
  return environmentsBeside(trustFileOf(io));
}

/** @returns `undefined` when the call has neither. @throws UsageError */
export function givenEnvironment(args: Arguments): GivenEnvironment | undefined {
  const { usage } = args;
  const references = args.texts("env-ref");
  const said = args.texts("env").map((text) => divideAssignment(text, "--env", usage));
  if (references.length === 0 && said.length === 0) return undefined;
  const [doubled] = said.filter(([key], at) => said.findIndex(([other]) => other === key) !== at);
  if (doubled !== undefined) throw refuse(`--env gives ${doubled[0]} twice`, usage, { fix: "give it once" });
  return { references, values: Object.fromEntries(said) };
}

/** @returns the key and the value of `KEY=VALUE`. @throws UsageError that does not show the text. */
export function divideAssignment(
  text: string,
  what: string,
  usage: string,
): readonly [key: string, value: string] {
  const at = text.indexOf("=");
  if (at < 0)
    throw refuse(`${what} has no value`, usage, {
      expected: "KEY=VALUE",
      fix: "write KEY=VALUE; KEY= is an empty value",
    });
  const key = text.slice(0, at);
  checkKey(key);
  return [key, text.slice(at + 1)];
}
