// `secretsFor`: the values of the secrets that loaded agents and tasks declare. Most declare none, and then
// nothing is loaded for it.

import { UsageError } from "@holdfast/core";
import { keyVariables, replaceWithoutKeys, type WantedSecrets, wantedSecretsOf } from "@holdfast/system";
import { type Agent, type TaskDefinition } from "@holdfast/runtime";
import type { Arguments, Io } from "../frame/command.ts";
import { holdSecrets } from "./held-secrets.ts";

export interface Loaded {
  readonly agents: readonly Agent[];
  readonly tasks?: readonly TaskDefinition[];
}

/**
 * The values are also in `io.env` from here on, where models, MCP servers and external agents look for the
 * names that they declare.
 *
 * @throws HoldfastError `secret_missing` that names all of them, before anything starts.
 */
export async function secretsFor(
  { agents, tasks }: Loaded,
  args: Arguments,
  io: Io,
): Promise<ReadonlyMap<string, string>> {
  return suppliedFor(wantedSecretsOf(agents, tasks), args, io);
}

/** As `secretsFor`. */
export async function suppliedFor(
  wanted: WantedSecrets,
  args: Arguments,
  io: Io,
): Promise<ReadonlyMap<string, string>> {
  const { required, optional } = wanted;
  hideKeys([...required, ...optional.flatMap(({ anyOf }) => anyOf)], args, io);
  const keys = keyVariables(io.env).flatMap((name) => io.env[name] ?? []);
  if (keys.length > 0) holdSecrets(keys, io);
  if (required.length + optional.length === 0 && !args.has("secret-stdin")) return new Map();
  return (await import("./supplied-secrets.ts")).suppliedSecrets(wanted, args, io);
}

/** @param other the option that reads standard input as well, if it is given. @throws UsageError */
export function refuseSecondStdin(args: Arguments, other: string | undefined): void {
  if (!args.has("secret-stdin") || other === undefined) return;
  throw new UsageError(`--secret-stdin and ${other} both read standard input`, {
    fix: "give one of them in another way, such as the secret in the environment",
  });
}

/**
 * Keys with names that say nothing are known when the agents are loaded. The process is then replaced once
 * more, before it starts anything.
 */
function hideKeys(names: readonly string[], args: Arguments, io: Io): void {
  const visible = names.filter((name) => io.keys.visible.has(name) && (io.env[name] ?? "") !== "");
  const hasReadInput = args.has("ipc") || ["input", "token-file"].some((option) => args.text(option) === "-");
  if (visible.length > 0 && !hasReadInput) replaceWithoutKeys(new Set(visible), io.keys.handed);
  const exposed = [...new Set([...io.keys.exposed, ...visible])];
  if (exposed.length > 0)
    io.note(
      `${io.notes.symbols.warn} commands of agents can read ${exposed.join(", ")} in the environment of this process: ` +
        "store a key with `holdfast secret set NAME`, and start the process without the variable",
    );
}
