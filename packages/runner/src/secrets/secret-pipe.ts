// `writeSecrets` and `readSecretsFromPipe`: values of secrets from a process to its child, over a pipe that
// the child inherits. Other users and agents can read neither that pipe nor the memory of both processes, but
// they can read arguments, and often environments and files.
//
//   - The message is one JSON object, `{"version":1,"secrets":{…}}`, and then the end of the pipe.
//   - The reader closes its end, so that no process that it starts later inherits the pipe.
//   - A reader never waits without limit: neither in time nor in bytes.
//   - No error contains a part of the message.

import { HoldfastError, MIB } from "@holdfast/core";
import { isSecretName } from "@holdfast/system";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { clearTimeout, setTimeout } from "node:timers";

const VERSION = 1;
const BYTES_MAX = MIB;
const WAIT_MS = 30_000;

/** Sends the values and ends the stream. Rejects with the error of the stream when the child has gone. */
export function writeSecrets(stream: Writable, values: ReadonlyMap<string, string>): Promise<void> {
  const message = JSON.stringify({ version: VERSION, secrets: Object.fromEntries(values) });
  return new Promise((resolve, reject) => {
    stream.once("error", reject);
    stream.end(message, (error?: Error | null) => (error ? reject(error) : resolve()));
  });
}

/**
 * The values that the parent process sent over this file descriptor.
 *
 * @param waitMs how long the parent may take. Milliseconds.
 * @throws HoldfastError `config_invalid` for a descriptor or a message that is none.
 */
export async function readSecretsFromPipe(fd: number, waitMs = WAIT_MS): Promise<Map<string, string>> {
  let pipe: Socket;
  try {
    pipe = new Socket({ fd, readable: true, writable: false });
  } catch {
    throw wrong(fd, "it is no pipe");
  }
  const timer = setTimeout(() => pipe.destroy(wrong(fd, `it did not end within ${waitMs} ms`)), waitMs);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of pipe as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > BYTES_MAX) throw wrong(fd, `it has more than ${BYTES_MAX} bytes`);
      chunks.push(chunk);
    }
  } catch (error) {
    throw HoldfastError.is(error) ? error : wrong(fd, (error as NodeJS.ErrnoException).code ?? "it failed");
  } finally {
    clearTimeout(timer);
    pipe.destroy(); // No process that is started later inherits the pipe.
  }
  return secretsOf(fd, Buffer.concat(chunks).toString());
}

function secretsOf(fd: number, text: string): Map<string, string> {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    throw wrong(fd, "its content is not JSON"); // No error contains a part of the message.
  }
  const { version, secrets } = (message ?? {}) as { readonly version?: unknown; readonly secrets?: unknown };
  if (version !== VERSION) throw wrong(fd, "its content is of another version of Holdfast");
  const entries = typeof secrets === "object" && secrets !== null ? Object.entries(secrets) : [];
  if (!entries.every(([name, value]) => isSecretName(name) && typeof value === "string"))
    throw wrong(fd, "its content is not a map from names to texts");
  return new Map(entries as [string, string][]);
}

function wrong(fd: number, why: string): HoldfastError {
  return new HoldfastError("config_invalid", `the secrets of the parent process cannot be read: ${why}`, {
    at: `file descriptor ${fd}`,
    expected: "a pipe to which a process of the same version of Holdfast writes the secrets",
    fix: "start this process with `holdfast`, which opens the pipe",
  });
}
