// `holdfast env set`, `list`, `show` and `delete` of environments of this machine. No command takes or shows the value of a secret.

import { readEnvironments, writeEnvironment } from "@holdfast/agents";
import {
  BASE_ENVIRONMENT,
  checkEnvironmentName,
  checkKey,
  didYouMean,
  NotFoundError,
  type EnvironmentKey,
  type EnvironmentKeys,
} from "@holdfast/core";
import { CommandError } from "@holdfast/terminal/frame/command-error";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { count, plainLine, table } from "@holdfast/terminal/frame/plain-text";
import { divideAssignment, environmentsFile } from "./given-environment.ts";

export function setKeys(args: Arguments, io: Io): number {
  const [name = "", ...said] = args.positionals;
  checkEnvironmentName(name);
  const before = readEnvironments(environmentsFile(io))[name] ?? {};
  const [isSecret, isRequired] = [args.has("secret"), args.has("required")];
  const added = said.map((text): readonly [string, EnvironmentKey] => {
    if (!isSecret && !isRequired) {
      const [key, value] = divideAssignment(text, "the key", args.usage);
      const old = Object.hasOwn(before, key) ? before[key] : undefined;
      if (old?.secret === true) throw secretArgument(key);
      return [key, { value, ...(old?.required === true ? { required: true } : {}) }];
    }
    if (text.includes("=") && isSecret) throw secretArgument(text.slice(0, text.indexOf("=")));
    checkKey(text);
    const old = Object.hasOwn(before, text) ? before[text] : undefined;
    if (isSecret) return [text, { secret: true, ...(old?.required === true ? { required: true } : {}) }];
    return [text, { ...old, required: true }];
  });
  writeEnvironment(environmentsFile(io), name, { ...before, ...Object.fromEntries(added) });
  const keys = added.map(([key]) => key);
  io.show({ name, keys }, `${name} has ${keys.join(", ")}`);
  return 0;
}

export function secretArgument(key: string): CommandError {
  return new CommandError(
    "secret_arg",
    `${plainLine(key, 100)} is a secret, and a value is not given as an argument: others can see it`,
    {
      fix: "store it by `holdfast secret set`, which asks for it; replace that value, because it may have been seen",
    },
  );
}

export function listAll(io: Io): number {
  const all = Object.entries(readEnvironments(environmentsFile(io)));
  const rows = all.map(([name, keys]) => [
    name,
    count(Object.keys(keys).length, "key"),
    Object.keys(keys).join(", "),
  ]);
  io.show(
    all.map(([name, keys]) => ({ name, keys: Object.keys(keys) })),
    rows.length === 0
      ? "no environments: `holdfast env set NAME KEY=VALUE` makes one"
      : table(rows).join("\n"),
  );
  return 0;
}

export function showOne(name: string, io: Io): number {
  const keys = existing(name, io);
  const rows = keyRows(keys);
  io.show(
    { name, isBase: name === BASE_ENVIRONMENT, keys },
    rows.length === 0 ? `${name} is empty` : table(rows).join("\n"),
  );
  return 0;
}

/** The keys of an environment as rows of a table. */
export function keyRows(keys: EnvironmentKeys): readonly (readonly string[])[] {
  return Object.entries(keys).map(([key, { value, secret, required }]) => [
    key,
    secret === true ? "(secret)" : value === undefined ? "(no value)" : plainLine(value, 200),
    required === true ? "required" : "",
  ]);
}

export function deleteKeys(positionals: readonly string[], io: Io): number {
  const [name = "", ...keys] = positionals;
  const before = existing(name, io);
  for (const key of keys)
    if (!Object.hasOwn(before, key))
      throw new NotFoundError(
        "file_not_found",
        `the environment ${name} has no key ${plainLine(key, 100)}${didYouMean(key, Object.keys(before))}`,
        {
          fix: `run \`holdfast env show ${name}\` to see its keys`,
        },
      );
  const left = Object.fromEntries(Object.entries(before).filter(([key]) => !keys.includes(key)));
  writeEnvironment(environmentsFile(io), name, keys.length === 0 ? undefined : left);
  io.show(
    { name, keys },
    keys.length === 0 ? `${name} is deleted` : `${keys.join(", ")} of ${name} is deleted`,
  );
  return 0;
}

function existing(name: string, io: Io): EnvironmentKeys {
  const all = readEnvironments(environmentsFile(io));
  const found = Object.hasOwn(all, name) ? all[name] : undefined;
  if (found !== undefined) return found;
  throw new NotFoundError(
    "file_not_found",
    `there is no environment ${plainLine(name, 64)}${didYouMean(name, Object.keys(all))}`,
    {
      fix: "run `holdfast env list` to see all environments",
    },
  );
}
