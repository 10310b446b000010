// `runScript`: one call of a script in a workspace, by the script's wrapper. `checkCall` looks at the
// arguments before.
//
//   - The arguments fit the schema of the script before anything is written or started.
//   - The script's exit code and streams are a result. Time and output are limited by the script's manifest.

import { HoldfastError } from "@holdfast/core";

import type { FolderContent } from "../contents/folder-content.ts";
import { exampleArguments } from "./check/example-values.ts";
import { findProblems } from "../model-loop/json-schema.ts";
import { type ExecuteOptions, type Execution, type Workspace } from "@holdfast/workspace";
import { SCRIPT_BIN } from "../tasks/script-calls.ts";
import { writeScript } from "./script-files.ts";
import type { ScriptManifest } from "./script-manifest.ts";
import { exampleCall, flagsOf, parametersOf, usageOf } from "./script-parameters.ts";

/** Systems limit the length of one argument to 128 KiB. */
const ARGUMENT_BYTES_MAX = 100_000;

export type ScriptArguments = Readonly<Record<string, unknown>>;

/** @throws HoldfastError `invalid_input` with what is wrong and the usage. */
export function checkCall(
  { name, parameters }: Pick<ScriptManifest, "name" | "parameters">,
  given: unknown,
): ScriptArguments {
  const known = parametersOf(parameters);
  const wrong = (why: string): HoldfastError => {
    const { call } = exampleArguments(parameters);
    const right =
      call === undefined
        ? ""
        : `\nright arguments: ${JSON.stringify(call)}\na right call: ${exampleCall(name, parameters)}`;
    return new HoldfastError(
      "invalid_input",
      `the arguments of the script ${name} are not right:\n${why}\n${usageOf(name, known)}${right}`,
    );
  };
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw wrong("they are no JSON object with the parameters by name");
  const problems = findProblems(parameters, given);
  if (problems !== undefined) throw wrong(problems);
  const args = given as ScriptArguments;
  const flags = flagsOf(known, args);
  if (flags.some((flag) => flag.includes("\0")))
    throw wrong("a value has a NUL character, which no program can be given");
  const long = flags.findIndex((flag) => Buffer.byteLength(flag) > ARGUMENT_BYTES_MAX);
  if (long >= 0)
    throw wrong(
      `${
        flags
          .slice(0, long + 1)
          .findLast((flag) => flag.startsWith("--"))
          ?.split("=")[0]
      } is longer than ${ARGUMENT_BYTES_MAX} bytes; write it into a file, and give the path`,
    );
  return args;
}

export async function runScript(
  workspace: Workspace,
  manifest: ScriptManifest,
  content: FolderContent,
  args: ScriptArguments,
  options: Pick<ExecuteOptions, "env" | "input" | "signal" | "tag" | "onOutput" | "timeoutMs"> = {},
): Promise<Execution> {
  const wrapper = await writeScript(workspace, manifest, content);
  const flags = flagsOf(parametersOf(manifest.parameters), args);
  const { timeoutMs, outputBytes } = manifest;
  return workspace.execute(["sh", wrapper, ...flags], {
    ...options,
    timeoutMs: Math.min(timeoutMs, options.timeoutMs ?? timeoutMs),
    outputBytes,
    pathFolders: [SCRIPT_BIN],
  });
}
