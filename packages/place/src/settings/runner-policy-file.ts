// `readRunnerPolicy`: the file with the policy of this machine's runner.
//
//   - A file that other users may write is refused, and so is one in the project, which agents write.
//   - A file that is named and not there is an error. Without a name, the file of the user's configuration
//     folder counts, if it is there.
//   - With names of executors in the policy, executors and profiles are those beside it. A profile in the
//     project could give an allowed name another program, or ask for other secrets.

import { existsSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { HoldfastError, jsonSyntaxProblem } from "@holdfast/core";
import { checkRunnerPolicy, isReachedIn, type RunnerPolicy } from "@holdfast/runner";
import { requireFileVersion } from "@holdfast/system";
import { checkTrusted } from "@holdfast/terminal/frame/given-file";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { readBounded, userConfigFile } from "./config.ts";

/** The policy of a runner, and where its executors are. */
export interface FoundPolicy {
  readonly policy: RunnerPolicy;
  /** The folder whose `executors` and `profiles` count: the project's, or with names in the policy the policy's own. */
  readonly executorsFolder: string;
}

/** @param workspace the project's folder. @throws HoldfastError `config_invalid`, `version_unsupported`. */
export function readRunnerPolicy(args: Arguments, io: Io, workspace: string): FoundPolicy {
  const path = policyPath(args, io);
  if (path === undefined || (!args.has("policy") && !existsSync(path)))
    return { policy: {}, executorsFolder: workspace };
  checkTrusted(path);
  let text: string;
  try {
    text = readBounded(path).replace(/^\uFEFF/, "");
  } catch (cause) {
    throw invalid(path, `the policy cannot be read: ${(cause as Error).message}`);
  }
  if (isReachedIn(path, workspace))
    throw invalid(path, "the policy lies in the project, where agents may change it");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid(path, `the policy is not JSON: ${jsonSyntaxProblem(text)}`);
  }
  requireFileVersion(value, "the policy", path);
  const policy = checkRunnerPolicy(value, path);
  return {
    policy,
    executorsFolder: policy.executors === undefined ? workspace : dirname(realpathSync(path)),
  };
}

/** The file that is named, or the one that counts without a name, whether or not it exists. */
export function policyPath(args: Arguments, { cwd, env }: Pick<Io, "cwd" | "env">): string | undefined {
  const named = args.text("policy");
  if (named !== undefined) return resolve(cwd, named);
  const config = userConfigFile(env);
  return config === undefined ? undefined : join(dirname(config), "runner-policy.json");
}

function invalid(at: string, message: string): HoldfastError {
  return new HoldfastError("config_invalid", message, {
    at,
    expected: "a JSON file of this user, outside of the project",
    fix: "correct the file or its place; docs/runner-policy.schema.json defines its content",
  });
}
