// A process of ours whose environment has no keys, although its user set them (`replaceWithoutKeys`,
// `withHandedKeys`).
//
// A process that may read another one of its user reads the environment with which that one was started.
// Changes of `process.env` are not in it. A process with keys therefore replaces itself before it starts
// anything, and gives the keys to its successor.
//
//   - The keys are handed over in a note: an encrypted file, in a folder of this user alone. Its key is in
//     the environment of the successor, which removes the file when it reads it. Later nobody can use that
//     key.
//   - The successor has the keys in `process.env`, which is its memory. A process that it starts gets them
//     only by `env`.
//   - The process keeps its id and its standard streams. A process with other inherited descriptors, such as
//     a channel, cannot be replaced. It names the keys that others can read.
//
// The start of the command loads this file before all others, so it imports little.

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { keyVariables } from "./key-variables.ts";

/** Names the note and has its key. */
const VARIABLE = "HOLDFAST_HANDED_KEYS";
const CIPHER = "aes-256-gcm";

type Environment = Readonly<Record<string, string | undefined>>;

/** The keys of this process. */
export interface OwnKeys {
  /** The names of the keys that were handed over: no other process can read them here. */
  readonly handed: ReadonlySet<string>;
  /** The names of all variables that other processes of the user can read here. */
  readonly visible: ReadonlySet<string>;
  /** The names of the keys among them. */
  readonly exposed: readonly string[];
}

/** An environment without its keys. @param more the names of variables that count as keys as well. */
export function withoutKeys(
  env: Environment,
  more?: ReadonlySet<string>,
): Record<string, string | undefined> {
  const keys = new Set(keyVariables(env, more));
  return Object.fromEntries(Object.entries(env).filter(([name]) => !keys.has(name)));
}

/** The environment of a process of ours that takes the keys at its start, by `takeHandedKeys`. */
export function withHandedKeys(
  env: Environment,
  more?: ReadonlySet<string>,
): Record<string, string | undefined> {
  const keys = keyVariables(env, more).map((name) => [name, env[name]] as const);
  if (keys.length === 0) return { ...env };
  return { ...withoutKeys(env, more), [VARIABLE]: writeNote(JSON.stringify(Object.fromEntries(keys)), env) };
}

/**
 * Takes the keys that were handed over. A process whose environment has keys is replaced, and the call does
 * not return.
 *
 * @param more the names of variables that count as keys as well.
 */
export function replaceWithoutKeys(
  more: ReadonlySet<string> = new Set(),
  handed: ReadonlySet<string> = takeHandedKeys(),
): OwnKeys {
  const visible = new Set(Object.keys(process.env).filter((name) => !handed.has(name)));
  const exposed = keyVariables(process.env, more).filter((name) => visible.has(name));
  if (exposed.length === 0 || !isReplaceable()) return { handed, visible, exposed };
  replaceProcess(new Set([...more, ...handed]));
  return { handed, visible, exposed };
}

/** The same command line in a new process of the same id. Where that cannot be, the call does nothing. */
export function replaceProcess(keys: ReadonlySet<string>): void {
  if (!isReplaceable()) return;
  const env = Object.entries(withHandedKeys(process.env, keys)).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  const args = [process.argv0, ...process.execArgv, ...process.argv.slice(1)];
  process.execve!(process.execPath, args, Object.fromEntries(env));
}

/** Puts the keys of the note into `process.env`. A note that is gone or damaged has none. */
function takeHandedKeys(): ReadonlySet<string> {
  const given = process.env[VARIABLE];
  if (given === undefined) return new Set();
  delete process.env[VARIABLE]; // No process that this one starts is its successor.
  try {
    const keys = Object.entries(JSON.parse(readNote(given)) as Record<string, string>);
    for (const [name, value] of keys) process.env[name] = value;
    return new Set(keys.map(([name]) => name));
  } catch {
    return new Set();
  }
}

function isReplaceable(): boolean {
  if (process.execve === undefined || process.platform === "win32") return false;
  // A channel to the process that started this one, or a descriptor that an argument names, would be closed.
  if (process.connected || process.send !== undefined) return false;
  return !process.argv.some((word) => /\/(?:dev|proc\/self)\/fd\/(?![012]$)/.test(word));
}

function writeNote(text: string, env: Environment): string {
  const key = randomBytes(32);
  const iv = randomBytes(12);
  const cipher = createCipheriv(CIPHER, key, iv);
  const bytes = Buffer.concat([iv, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
  const path = join(makeFolder(env["XDG_RUNTIME_DIR"]), "note");
  writeFileSync(path, bytes, { flag: "wx" }); // The folder is of this user alone.
  return `${key.toString("base64url")}:${path}`;
}

/** In the memory of the system where there is such a place. */
function makeFolder(runtimeFolder: string | undefined): string {
  const places = [runtimeFolder, "/dev/shm", tmpdir()];
  for (const place of places) {
    if (place === undefined || place === "") continue;
    try {
      return mkdtempSync(join(place, "holdfast-"));
    } catch {
      // It is not there, or not for this user: the next one is.
    }
  }
  return mkdtempSync(join(tmpdir(), "holdfast-"));
}

function readNote(given: string): string {
  const [, key = "", path = ""] = /^([\w-]+):(.+)$/s.exec(given) ?? [];
  const bytes = readFileSync(path);
  rmSync(dirname(path), { recursive: true, force: true });
  const decipher = createDecipheriv(CIPHER, Buffer.from(key, "base64url"), bytes.subarray(0, 12));
  decipher.setAuthTag(bytes.subarray(-16));
  return decipher.update(bytes.subarray(12, -16), undefined, "utf8") + decipher.final("utf8");
}
