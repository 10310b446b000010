// The environments of this user, in a private file of the data folder (`readEnvironments`).
//
//   - A secret has no value in the file: the key names a secret, whose value is where secrets are kept.
//   - A change writes the whole file or nothing. A file that other users may write is refused.

import { readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { HoldfastError, MIB, UsageError } from "@holdfast/core";
import { isSecretName, isWritableByOthers, makePrivateFolder, replacePrivate } from "@holdfast/system";
import { z } from "zod";

const LIMITS = { environments: 200, keys: 500, valueBytes: 32 * 1024, fileBytes: 4 * MIB } as const;

/** A key of an environment. Without a value it is required, or a secret of this name, or both. */
export interface EnvironmentKey {
  readonly value?: string | undefined;
  readonly secret?: boolean | undefined;
  /** A session without a value for it is refused. */
  readonly required?: boolean | undefined;
}

/** Keys by name. */
export type EnvironmentKeys = Readonly<Record<string, EnvironmentKey>>;
/** Environments by name. */
export type Environments = Readonly<Record<string, EnvironmentKeys>>;

/** The environment that every session begins with, if there is one of this name. */
export const BASE_ENVIRONMENT = "base";

const key = z
  .strictObject({
    value: z.string().optional(),
    secret: z.boolean().optional(),
    required: z.boolean().optional(),
  })
  .refine(({ value, secret, required }) =>
    value === undefined ? secret === true || required === true : secret !== true,
  );
const file = z.strictObject({ environments: z.record(z.string(), z.record(z.string(), key)) });

/** The file of a user's environments. It lies beside the file of trusted folders. */
export function environmentsBeside(trustFile: string): string {
  return join(dirname(trustFile), "environments.json");
}

/** @throws HoldfastError `config_invalid` */
export function readEnvironments(path: string): Environments {
  let text: string;
  try {
    const stats = statSync(path);
    if (isWritableByOthers(stats)) throw damaged(path, "other users may write it");
    if (!stats.isFile() || stats.size > LIMITS.fileBytes) throw damaged(path, "it is no file of up to 4 MiB");
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return {};
    throw HoldfastError.is(error) ? error : damaged(path, message);
  }
  try {
    const { environments } = file.parse(JSON.parse(text));
    for (const [name, keys] of Object.entries(environments)) checkEnvironment(name, keys);
    return environments;
  } catch {
    throw damaged(path, "it has another form");
  }
}

/**
 * Replaces one environment. @param keys `undefined` removes it.
 *
 * @throws UsageError for a name, a key or a size that cannot be. HoldfastError `config_invalid`
 */
export function writeEnvironment(path: string, name: string, keys: EnvironmentKeys | undefined): void {
  if (keys !== undefined) checkEnvironment(name, keys);
  const { [name]: _before, ...others } = readEnvironments(path);
  const after = keys === undefined ? others : { ...others, [name]: keys };
  if (Object.keys(after).length > LIMITS.environments)
    throw new UsageError(`there are ${LIMITS.environments} environments already, and that is the limit`, {
      fix: "delete one: `holdfast env delete NAME`",
    });
  makePrivateFolder(dirname(path));
  replacePrivate(path, `${JSON.stringify({ environments: after }, null, 2)}\n`);
}

function checkEnvironment(name: string, keys: EnvironmentKeys): void {
  checkEnvironmentName(name);
  for (const [one, { value = "" }] of Object.entries(keys)) {
    checkKey(one);
    checkValue(one, value);
  }
  if (Object.keys(keys).length > LIMITS.keys)
    throw new UsageError(`the environment ${name} has more than ${LIMITS.keys} keys`, {
      fix: "divide it into several environments",
    });
}

/** @throws UsageError */
export function checkEnvironmentName(name: string): void {
  if (/^[a-z0-9][a-z0-9_-]{0,62}$/.test(name)) return;
  throw new UsageError(`${JSON.stringify(name.slice(0, 80))} cannot be the name of an environment`, {
    expected: "up to 63 small letters, digits, - and _, such as staging",
  });
}

/** @throws UsageError. The text is not shown, as it may be a value in the place of a key. */
export function checkKey(name: string): void {
  if (isSecretName(name) && !name.startsWith("HOLDFAST_") && name !== "__proto__") return;
  throw new UsageError("the key of an environment is wrong", {
    expected:
      "a name as environment variables have: letters, digits and _, and not HOLDFAST_ at its beginning",
  });
}

/** @throws UsageError. The value is not shown. */
export function checkValue(name: string, value: string): void {
  if (Buffer.byteLength(value) <= LIMITS.valueBytes && !value.includes("\0")) return;
  throw new UsageError(`the value of ${name} cannot be used`, {
    expected: `up to ${LIMITS.valueBytes} bytes without a NUL character`,
  });
}

function damaged(path: string, why: string): HoldfastError {
  return new HoldfastError("config_invalid", `the file of environments cannot be used: ${why}`, {
    at: path,
    expected: '{ "environments": { "NAME": { "KEY": { "value": "…" } } } }, written by this user only',
    fix: "correct the file, or remove it and set the environments again: `holdfast env set`",
  });
}
