// The sandboxes of this process (`sandboxesFor`), and the refusal of those that this machine cannot run (`requireSandboxes`).

import { dirname, join } from "node:path";
import { ownSandboxes, Sandboxes } from "@holdfast/workspace";
import { type AgentPlaces } from "@holdfast/agents";
import { HoldfastError } from "@holdfast/core";
import type { Given } from "../place/project.ts";
import { findCommandNamespace } from "./sandbox-settings.ts";
import { signInStore } from "../secrets/sign-in-store.ts";

let ofProcess: Sandboxes | undefined;

/** The keys of remote sandboxes are secrets of the user. @throws HoldfastError for a setting that does not count. */
export function sandboxesFor({ project, trustFile, env }: AgentPlaces): Sandboxes {
  const data = dirname(trustFile);
  ofProcess ??= new Sandboxes(
    ownSandboxes({
      keys: (name) => signInStore(data, { env }).read(name),
      testedFile: join(data, "tested-sandboxes.json"),
      commandNamespaces: findCommandNamespace({ cwd: project, env }).value,
    }),
  );
  return ofProcess;
}

/**
 * Refuses an agent before a session of it starts.
 *
 * @param given the sandbox of an agent that names none. The error of a default names both ways out.
 * @throws HoldfastError for a sandbox that is not there, or that this machine cannot run.
 */
export async function requireSandboxes(
  names: Iterable<string>,
  places: AgentPlaces,
  given: Given<string> | undefined,
): Promise<void> {
  for (const name of names)
    await sandboxesFor(places)
      .require(name)
      .catch((error: unknown) => {
        if (!HoldfastError.is(error) || given?.origin !== "default" || name !== given.value) throw error;
        throw defaultRefused(error, given);
      });
}

function defaultRefused({ code, message, fix }: HoldfastError, { from }: Given<string>): HoldfastError {
  return new HoldfastError(
    code,
    `${message}. It is the default of ${from}, and HOLDFAST_SANDBOX names another`,
    {
      fix: `${fix ?? "repair it"}. Or set HOLDFAST_SANDBOX to another one, such as bubblewrap, or filesystem for no isolation`,
    },
  );
}
