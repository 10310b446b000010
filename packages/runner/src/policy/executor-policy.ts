// `executorPolicy`: the part of a runner's policy that concerns executors, in the form in which their adapter
// asks for it.
//
// A name allows a program only from outside of every folder in which a session works. No session can then
// write the program of its executor, or of another one.

import type { NetworkPolicy } from "@holdfast/runtime/gateway";
import type { Environment } from "@holdfast/system";

import { pathOutside, requireOutside } from "./executor-files.ts";
import { requireExecutor, requireFolder, type RunnerPolicy } from "./runner-policy.ts";

/** An executor, as far as a policy concerns it. */
interface PolicyExecutor {
  readonly profile: { readonly name: string; readonly command: readonly [string, ...string[]] };
  readonly environment: Environment;
}

/** The limits for the executors of one process. */
export interface ExecutorLimits {
  readonly network: NetworkPolicy;
  /** @throws HoldfastError `policy_denied` */
  add(executor: PolicyExecutor): void;
  /** The executor as it may run in a folder. @throws HoldfastError `policy_denied` */
  allow<Given extends PolicyExecutor>(executor: Given, folder: string): Given;
}

/**
 * @param projectDir the folder in which sessions work that name none.
 * @param isIncluded whether the program of an executor is a part of Holdfast, which no session can write.
 */
export function executorPolicy(
  policy: RunnerPolicy,
  projectDir: string,
  isIncluded: (command: readonly [string, ...string[]]) => boolean,
): ExecutorLimits {
  const added: PolicyExecutor[] = [];
  const allow = <Given extends PolicyExecutor>(executor: Given, folder: string): Given => {
    const { profile, environment } = executor;
    requireExecutor(policy, profile.name);
    if (policy.executors === undefined || isIncluded(profile.command)) return executor;
    const folders = [projectDir, folder];
    const { PATH = "" } = environment;
    return {
      ...executor,
      profile: { ...profile, command: requireOutside(profile.name, profile.command, folders, PATH) },
      environment: { ...environment, PATH: pathOutside(PATH, folders) },
    };
  };
  return {
    network: policy.network ?? { allow: [] },
    add: (executor) => {
      allow(executor, projectDir);
      added.push(executor);
    },
    allow: (executor, folder) => {
      requireFolder(policy, folder);
      // mutant: other-executor-writable
      for (const other of added) allow(other, folder);
      return allow(executor, folder);
    },
  };
}
