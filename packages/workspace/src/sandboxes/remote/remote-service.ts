// The port for services that run sandboxes on machines of their own: `RemoteService`.
//
//   - Every call has a time-out of ours: a service whose machine died may never answer.
//   - A sandbox is found by its label, which is made of the session and the folder. The address of the
//     sandbox is in the journal before the first command, so a sandbox that was made and not recorded is
//     found again.
//   - The service removes a sandbox that nobody has used for its TTL.

import { MIB, UnavailableError } from "@holdfast/core";

export interface RemoteMachine {
  readonly id: string;
  /** Writes a file. The folders on the way exist. */
  upload(path: string, bytes: Buffer): Promise<void>;
  download(path: string): Promise<Buffer>;
  /** Runs a line of a shell, and resolves with its exit code when it has ended. */
  run(line: string, timeoutMs: number): Promise<number>;
}

export interface RemoteService {
  /** The name of the sandbox. */
  readonly name: string;
  /** The machine with this label, which is running then. */
  find(label: string): Promise<RemoteMachine | undefined>;
  /** A running machine without network, which the service removes after its TTL. */
  create(label: string): Promise<RemoteMachine>;
  /** The ids of all machines with this label, or of all that Holdfast made and that have stopped. */
  ids(which: { readonly label: string } | "stopped"): Promise<readonly string[]>;
  /** Removing one that is gone changes nothing. */
  remove(id: string): Promise<void>;
}

/** The label that every machine of Holdfast has. */
export const MACHINE_LABEL = "holdfast-place";
/** Machines that nobody uses are removed after this time. */
export const TTL_SECONDS = 3_600;
const CALL_MS = 60_000;
const ANSWER_BYTES = 256 * MIB;

export interface RemoteRequest {
  readonly method?: "GET" | "POST" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly body?: FormData | Uint8Array<ArrayBuffer>;
  readonly timeoutMs?: number;
  /** Statuses beside 2xx that are an answer. */
  readonly also?: readonly number[];
}

/** @throws UnavailableError that names the service and what it answered, and no header. */
export async function callService(
  service: string,
  url: string,
  { method = "GET", headers, json, body, timeoutMs = CALL_MS, also = [] }: RemoteRequest,
): Promise<{ readonly status: number; readonly bytes: Buffer }> {
  const what = `${method} ${new URL(url).pathname}`;
  let answer: { readonly status: number; readonly bytes: Buffer };
  try {
    const response = await fetch(url, {
      method,
      headers: { ...headers, ...(json === undefined ? {} : { "content-type": "application/json" }) },
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs),
      ...(json === undefined ? (body === undefined ? {} : { body }) : { body: JSON.stringify(json) }),
    });
    answer = { status: response.status, bytes: await readUpTo(response) };
  } catch (cause) {
    throw new UnavailableError(
      "unavailable",
      `${service} did not answer ${what}: ${(cause as Error).message}`,
      {
        fix: "check the network and the address of the service, and resume the session",
        cause,
      },
    );
  }
  if ((answer.status >= 200 && answer.status < 300) || also.includes(answer.status)) return answer;
  throw new UnavailableError("unavailable", `${service} answered ${answer.status} to ${what}`, {
    got: answer.bytes.toString("utf8").slice(0, 300),
    fix:
      answer.status === 401 || answer.status === 403
        ? "check the key of the service"
        : "see what the service says, and resume the session",
  });
}

/** A sandbox may be hostile, and its answer without end. */
async function readUpTo({ body }: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > ANSWER_BYTES) throw new Error(`the answer has more than ${ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** @throws UnavailableError for an answer that is no JSON. */
export function readJson<Value>(service: string, bytes: Buffer): Value {
  try {
    return JSON.parse(bytes.toString("utf8")) as Value;
  } catch (cause) {
    throw new UnavailableError("unavailable", `${service} answered with something that is no JSON`, {
      cause,
    });
  }
}
