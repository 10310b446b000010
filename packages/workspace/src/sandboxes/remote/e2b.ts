// `e2b`: a client of the API of E2B, as small as a sandbox needs.
//
// The API makes sandboxes, which E2B removes at the end of their time. Each use sets that time again. Files
// and commands go to a daemon in the sandbox: files over HTTP, commands by the Connect protocol with JSON.

import { UnavailableError } from "@holdfast/core";
import {
  callService,
  MACHINE_LABEL,
  readJson,
  TTL_SECONDS,
  type RemoteMachine,
  type RemoteService,
} from "./remote-service.ts";
import type { ServiceOptions } from "./daytona.ts";

interface Sandbox {
  readonly sandboxID: string;
  readonly domain?: string | null;
  readonly envdAccessToken?: string | null;
}

const NAME = "e2b";
const TEMPLATE = "base";
const DAEMON_PORT = 49_983;
const USER = "user";
/** The flag of the last message of a stream. */
const END_OF_STREAM = 2;

/** @param options.daemonUrl the address of the daemon of a sandbox; by the domain that E2B names when absent. */
export function e2b({
  url,
  key,
  image = TEMPLATE,
  daemonUrl,
}: ServiceOptions & { readonly daemonUrl?: ((id: string) => string) | undefined }): RemoteService {
  const headers = { "x-api-key": key };
  const ask = async <Value>(path: string, method: "GET" | "POST" = "GET", json?: unknown): Promise<Value> => {
    const { bytes } = await callService(NAME, `${url}${path}`, { method, headers, json });
    return readJson<Value>(NAME, bytes);
  };
  const list = (label: string): Promise<readonly Sandbox[]> =>
    ask(`/v2/sandboxes?metadata=${encodeURIComponent(`${MACHINE_LABEL}=${encodeURIComponent(label)}`)}`);
  const machine = ({ sandboxID: id, domain, envdAccessToken: token }: Sandbox): RemoteMachine => {
    const daemon = daemonUrl?.(id) ?? `https://${DAEMON_PORT}-${id}.${domain ?? "e2b.app"}`;
    const access = {
      authorization: `Basic ${Buffer.from(`${USER}:`).toString("base64")}`,
      ...(token === undefined || token === null ? {} : { "x-access-token": token }),
    };
    const file = (path: string): string =>
      `${daemon}/files?path=${encodeURIComponent(path)}&username=${encodeURIComponent(USER)}`;
    return {
      id,
      upload: async (path, bytes) => {
        const body = new FormData();
        body.append("file", new Blob([Uint8Array.from(bytes)]), "file");
        await callService(NAME, file(path), { method: "POST", headers: access, body });
      },
      download: async (path) => (await callService(NAME, file(path), { headers: access })).bytes,
      run: async (line, timeoutMs) => {
        const request = { process: { cmd: "/bin/sh", args: ["-c", line], envs: {} } };
        const { bytes } = await callService(NAME, `${daemon}/process.Process/Start`, {
          method: "POST",
          headers: {
            ...access,
            "content-type": "application/connect+json",
            "connect-protocol-version": "1",
            "connect-timeout-ms": String(timeoutMs),
          },
          body: envelope(request),
          timeoutMs: timeoutMs + 10_000,
        });
        return exitCodeOf(bytes);
      },
    };
  };

  return {
    name: NAME,
    async find(label) {
      const [found] = await list(label);
      if (found === undefined) return undefined;
      return machine(await ask(`/sandboxes/${found.sandboxID}/connect`, "POST", { timeout: TTL_SECONDS }));
    },
    async create(label) {
      const sandbox = await ask<Sandbox>("/sandboxes", "POST", {
        templateID: image,
        timeout: TTL_SECONDS,
        secure: true,
        allow_internet_access: false,
        metadata: { [MACHINE_LABEL]: label },
      });
      return machine(sandbox);
    },
    // E2B removes a sandbox at the end of its time, so none of them stays stopped.
    async ids(which) {
      return which === "stopped" ? [] : (await list(which.label)).map(({ sandboxID }) => sandboxID);
    },
    async remove(id) {
      await callService(NAME, `${url}/sandboxes/${id}`, { method: "DELETE", headers, also: [404] });
    },
  };
}

/** A message of a stream of the Connect protocol: a flag, the length, and the JSON. */
function envelope(message: unknown): Uint8Array<ArrayBuffer> {
  const json = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  return Uint8Array.from(Buffer.concat([head, json]));
}

/** @throws UnavailableError for a stream that ended without the end of the process. */
function exitCodeOf(stream: Buffer): number {
  let exitCode: number | undefined;
  for (let at = 0; at + 5 <= stream.length;) {
    const length = stream.readUInt32BE(at + 1);
    const message = stream.subarray(at + 5, at + 5 + length);
    const isLast = ((stream[at] ?? 0) & END_OF_STREAM) !== 0;
    const json = readJson<{
      readonly event?: { readonly end?: { readonly exitCode?: number } };
      readonly error?: { readonly message?: string };
    }>(NAME, message.length === 0 ? Buffer.from("{}") : message);
    if (isLast && json.error !== undefined)
      throw new UnavailableError(
        "unavailable",
        `e2b ended the command: ${json.error.message ?? "no reason"}`,
      );
    if (json.event?.end !== undefined) exitCode = json.event.end.exitCode ?? 0; // JSON leaves out a zero.
    at += 5 + length;
  }
  if (exitCode !== undefined) return exitCode;
  throw new UnavailableError("unavailable", "e2b answered without the end of the command");
}
