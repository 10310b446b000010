// `holdfast env` with `--url` or `--project`: environments at a coordinator.
//
//   - The value of a secret is asked for, or read from standard input. It is never an argument and never shown.

import type { Client } from "@connectrpc/connect";
import {
  BASE_ENVIRONMENT,
  checkEnvironmentName,
  checkKey,
  defined,
  type EnvironmentKeys,
} from "@holdfast/core";
import { EnvironmentService, type StoredEnvironment } from "@holdfast/proto";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { count, localTime, plainLine, table } from "@holdfast/terminal/frame/plain-text";
import { refuse } from "@holdfast/terminal/frame/arguments";
import { askCoordinator } from "@holdfast/place/coordinator-call";
import { askFor, canAsk, readSecretFromStdin } from "@holdfast/terminal/secrets/supplied-secrets";
import { keyRows, secretArgument } from "./change-environments.ts";
import { divideAssignment } from "./given-environment.ts";

/** Whether a command line of `env` is for a coordinator. */
export function isForCoordinator(args: Arguments): boolean {
  return args.action === "rotate" || args.has("url") || args.has("project");
}

/** @returns the exit code. */
export async function coordinatorEnvironments(args: Arguments, io: Io): Promise<number> {
  const [name = "", ...keys] = args.positionals;
  switch (args.action) {
    case "set":
      return setKeys(name, keys, args, io);
    case "list":
      return listAll(args, io);
    case "show":
      return showOne(name, args, io);
    case "rotate":
      return rotate(args, io);
    default:
      return deleteKeys(name, keys, args, io);
  }
}

interface ChangedKey {
  readonly name: string;
  readonly value?: string;
  readonly secret?: boolean;
  readonly required?: boolean;
}

async function setKeys(name: string, said: readonly string[], args: Arguments, io: Io): Promise<number> {
  checkEnvironmentName(name);
  const keys: ChangedKey[] = [];
  for (const text of said) keys.push(await keyOf(text, said.length, args, io));
  const stored = await ask(args, io, (service) => service.set({ name, keys, ...projectOf(args) }));
  const names = keys.map((key) => key.name);
  io.show(environmentJson(stored), `${name} has ${names.join(", ")} at the coordinator`);
  return 0;
}

async function keyOf(text: string, of: number, args: Arguments, io: Io): Promise<ChangedKey> {
  const isSecret = args.has("secret");
  if (!isSecret && !args.has("required")) {
    const [name, value] = divideAssignment(text, "the key", args.usage);
    return { name, value };
  }
  if (text.includes("=") && isSecret) throw secretArgument(text.slice(0, text.indexOf("=")));
  checkKey(text);
  if (!isSecret) return { name: text, required: true };
  if (canAsk(io)) return { name: text, secret: true, value: await askFor(`Enter ${text}: `, io) };
  if (of > 1)
    throw refuse("standard input has the value of one secret", args.usage, {
      got: `${of} keys`,
      fix: "set one secret at a time, or run the command on a terminal, which asks for each value",
    });
  return { name: text, secret: true, value: await readSecretFromStdin(text, io) };
}

async function listAll(args: Arguments, io: Io): Promise<number> {
  const { environments } = await ask(args, io, (service) => service.list(projectOf(args)));
  const rows = environments.map(({ name, keys, changedAt, changedBy }) => [
    name,
    count(keys.length, "key"),
    keys.map((key) => (key.secret ? `${key.name} (secret)` : key.name)).join(", "),
    `${localTime(Number(changedAt))} ${plainLine(changedBy, 60)}`,
  ]);
  io.show(
    environments.map(environmentJson),
    rows.length === 0
      ? "no environments at the coordinator: `holdfast env set NAME KEY=VALUE --url URL` makes one"
      : table([["NAME", "KEYS", "", "CHANGED"], ...rows]).join("\n"),
  );
  return 0;
}

async function showOne(name: string, args: Arguments, io: Io): Promise<number> {
  const found = await ask(args, io, (service) => service.get({ name, ...projectOf(args) }));
  const rows = keyRows(keysOf(found));
  const changed = `changed ${localTime(Number(found.changedAt))} by ${plainLine(found.changedBy, 100)}`;
  io.show(
    environmentJson(found),
    [...(rows.length === 0 ? [`${name} is empty`] : table(rows)), changed].join("\n"),
  );
  return 0;
}

async function deleteKeys(name: string, keys: readonly string[], args: Arguments, io: Io): Promise<number> {
  const of = { name, ...projectOf(args) };
  await ask(args, io, async (service) =>
    keys.length === 0 ? service.delete(of) : service.set({ ...of, remove: [...keys] }),
  );
  const what = keys.length === 0 ? `${name} is deleted` : `${keys.join(", ")} of ${name} is deleted`;
  io.show({ name, keys }, `${what} at the coordinator`);
  return 0;
}

async function rotate(args: Arguments, io: Io): Promise<number> {
  const { rotated, environments } = await ask(args, io, (service) => service.rotate({}));
  io.show(
    { rotated, environments },
    `${count(environments, "environment")} at the coordinator, of which ${rotated} had an earlier key; the earlier keys are not needed any more`,
  );
  return 0;
}

function ask<T>(
  args: Arguments,
  io: Io,
  call: (service: Client<typeof EnvironmentService>) => Promise<T>,
): Promise<T> {
  return askCoordinator(args, io, (connection) => call(connection.client(EnvironmentService)));
}

function projectOf(args: Arguments): { readonly project?: string } {
  return defined({ project: args.text("project") });
}

function keysOf({ keys }: StoredEnvironment): EnvironmentKeys {
  return Object.fromEntries(
    keys.map(({ name, value, secret, required }) => [
      name,
      { ...defined({ value }), ...(secret ? { secret } : {}), ...(required ? { required } : {}) },
    ]),
  );
}

function environmentJson(stored: StoredEnvironment) {
  const { name, project, changedAt, changedBy } = stored;
  const isBase = name === BASE_ENVIRONMENT;
  return {
    name,
    isBase,
    ...defined({ project }),
    keys: keysOf(stored),
    changedAt: Number(changedAt),
    changedBy,
  };
}
