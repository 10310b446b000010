// The environments of this user, in a private file of the data folder (`readEnvironments`).
//
//   - A secret has no value in the file: the key names a secret, whose value is where secrets are kept.
//   - A change writes the whole file or nothing. A file that other users may write is refused.

import { readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  checkEnvironment,
  ENVIRONMENT_LIMITS,
  HoldfastError,
  MIB,
  UsageError,
  type EnvironmentKeys,
  type Environments,
} from "@holdfast/core";
import { isWritableByOthers, makePrivateFolder, replacePrivate } from "@holdfast/system";
import { z } from "zod";

const FILE_BYTES = 4 * MIB;

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
    if (!stats.isFile() || stats.size > FILE_BYTES) throw damaged(path, "it is no file of up to 4 MiB");
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
  if (Object.keys(after).length > ENVIRONMENT_LIMITS.environments)
    throw new UsageError(
      `there are ${ENVIRONMENT_LIMITS.environments} environments already, and that is the limit`,
      {
        fix: "delete one: `holdfast env delete NAME`",
      },
    );
  makePrivateFolder(dirname(path));
  replacePrivate(path, `${JSON.stringify({ environments: after }, null, 2)}\n`);
}

function damaged(path: string, why: string): HoldfastError {
  return new HoldfastError("config_invalid", `the file of environments cannot be used: ${why}`, {
    at: path,
    expected: '{ "environments": { "NAME": { "KEY": { "value": "…" } } } }, written by this user only',
    fix: "correct the file, or remove it and set the environments again: `holdfast env set`",
  });
}
