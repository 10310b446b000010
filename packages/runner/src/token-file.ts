// `TokenFile` keeps a runner's own token, so that it is the same runner after a restart. There is one file
// for each coordinator, project and name.
//
//   - Only this user can read the file (0600, in a folder of 0700). Each write replaces it atomically.
//   - Only one process at a time is this runner. The error for a second process names the first one.

import { HoldfastError, UsageError } from "@holdfast/core";
import { createPrivate, makePrivateFolder, replacePrivate } from "@holdfast/system";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

export interface RunnerIdentity {
  readonly url: string;
  readonly project: string;
  /** Distinguishes runners of one project. */
  readonly name: string;
}

/** Where a runner's own token is between its registration and its end. */
export type TokenStore = Pick<TokenFile, "read" | "write" | "close">;

/** A store that dies with its process: the next process is another runner. */
export function tokenInMemory(): TokenStore {
  let token: string | undefined;
  return { read: () => token, write: (text) => void (token = text), close: () => {} };
}

export class TokenFile implements TokenStore {
  readonly path: string;
  readonly #lockPath: string;
  readonly #identity: RunnerIdentity;

  /** @throws HoldfastError `config_invalid` when the folder cannot be used, `locked` when another process is this runner. */
  constructor(folder: string, identity: RunnerIdentity) {
    const { url, project, name } = identity;
    const key = createHash("sha256")
      .update(JSON.stringify([url, project, name]))
      .digest("hex")
      .slice(0, 32);
    this.path = join(folder, `runner-${key}.json`);
    this.#lockPath = join(folder, `runner-${key}.pid`);
    this.#identity = identity;
    makePrivateFolder(folder);
    this.#lock();
  }

  /** The stored token, if there is one. */
  read(): string | undefined {
    let text: string;
    try {
      text = readFileSync(this.path, "utf8");
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw unusable(this.path, cause);
    }
    const token = tokenOf(text);
    if (token !== undefined) return token;
    throw new HoldfastError("config_invalid", "a runner's token file holds no token", {
      at: this.path,
      fix: "remove the file, and register again",
    });
  }

  write(token: string): void {
    try {
      replacePrivate(this.path, `${JSON.stringify({ ...this.#identity, token })}\n`);
    } catch (cause) {
      if (HoldfastError.is(cause)) throw cause;
      throw unusable(this.path, cause);
    }
  }

  /** Lets another process be this runner. */
  close(): void {
    if (this.#holder().life === THIS_PROCESS) rmSync(this.#lockPath, { force: true });
  }

  /** A killed process leaves its lock file behind; a later process takes the lock over. */
  #lock(): void {
    for (let attempt = 0; ; attempt++) {
      try {
        createPrivate(this.#lockPath, `${process.pid} ${THIS_PROCESS}\n`);
        return;
      } catch (cause) {
        if (HoldfastError.is(cause)) throw cause;
        if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw unusable(this.#lockPath, cause);
      }
      const { pid, life } = this.#holder();
      if (attempt > 0 || isAlive(Number(pid), life)) {
        throw new HoldfastError("locked", `process ${pid} is this runner already`, {
          at: this.#lockPath,
          fix: "give this one another --name, or end that process first",
        });
      }
      rmSync(this.#lockPath, { force: true });
    }
  }

  #holder(): { readonly pid: string; readonly life: string } {
    const text = existsSync(this.#lockPath) ? readFileSync(this.#lockPath, "utf8") : "";
    const [pid = "", life = ""] = text.trim().split(" ");
    return { pid, life };
  }
}

/**
 * A random id of this process, because every process in a container may have the same number as the one
 * before it.
 */
const THIS_PROCESS = randomUUID();

function isAlive(pid: number, life: string): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  if (pid === process.pid) return life === THIS_PROCESS;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function tokenOf(text: string): string | undefined {
  try {
    const { token } = JSON.parse(text) as { readonly token?: unknown };
    return typeof token === "string" && token !== "" ? token : undefined;
  } catch {
    return undefined;
  }
}

function unusable(path: string, cause: unknown): HoldfastError {
  return new UsageError(`a runner cannot keep its token: ${(cause as Error).message}`, {
    code: "config_invalid",
    at: path,
    fix: "make the folder one that this user can write to",
    cause,
  });
}
