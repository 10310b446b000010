// Calls of programs and servers that end in time, whatever the other side does (`tryProgram`, `askForJson`).

import { execFile } from "node:child_process";
import { MIB } from "@holdfast/core";
import { withoutKeys } from "./secrets/handed-keys.ts";

const OUTPUT_BYTES_MAX = 64 * 1024;
const ANSWER_BYTES_MAX = 4 * MIB;

export type ProgramEnd =
  | { readonly status: "done"; readonly output: string }
  | { readonly status: "missing" }
  /** The first line that it wrote to standard error, or how it ended. */
  | { readonly status: "failed"; readonly reason: string; readonly isLate: boolean };

/** Runs a program of the PATH to its end, or kills it. Keys are not in its variables. Never rejects. */
export function tryProgram(
  file: string,
  args: readonly string[],
  { ms, env: given }: { readonly ms: number; readonly env: NodeJS.ProcessEnv },
): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    const env = withoutKeys(given);
    const options = { timeout: ms, killSignal: "SIGKILL", maxBuffer: OUTPUT_BYTES_MAX, env } as const;
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      if (error === null) return resolve({ status: "done", output: stdout.trim() });
      if (error.code === "ENOENT") return resolve({ status: "missing" });
      const [first = ""] = stderr.trim().split("\n");
      const isLate = error.killed === true;
      const reason = isLate ? `no answer in ${ms / 1_000} s` : first || error.message;
      resolve({ status: "failed", reason, isLate });
    });
    child.stdin?.end();
  });
}

export type Answer =
  | { readonly status: "answered"; readonly code: number; readonly body: unknown }
  | { readonly status: "silent"; readonly reason: string };

/** A GET. A body that is no JSON is `undefined`. Redirects are not followed. Never rejects. */
export async function askForJson(
  url: string,
  { headers = {}, ms }: { readonly headers?: Readonly<Record<string, string>>; readonly ms: number },
): Promise<Answer> {
  try {
    const signal = AbortSignal.timeout(ms);
    const response = await fetch(url, { headers: { ...headers }, signal, redirect: "manual" });
    return { status: "answered", code: response.status, body: jsonOf(await textOf(response)) };
  } catch (thrown) {
    const error = thrown as Error & { readonly cause?: { readonly code?: string } };
    const reason =
      error.name === "TimeoutError" ? `no answer in ${ms / 1_000} s` : (error.cause?.code ?? error.message);
    return { status: "silent", reason };
  }
}

async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > ANSWER_BYTES_MAX) throw new Error("the answer is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
