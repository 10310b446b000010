// Values given on the command line: JSON, a file with JSON, or standard input with JSON.

import { resolve } from "node:path";
import {
  encodeJson,
  findPayloadProblem,
  HoldfastError,
  jsonSyntaxProblem,
  LIMITS,
  NotFoundError,
  UsageError,
} from "@holdfast/core";
import type { Io } from "./command.ts";
import { readGiven } from "./given-file.ts";
import { plainLine } from "./plain-text.ts";

/** A value from its text. `what` names it in errors: "the input", "the answer". */
export function readJson(text: string, what: string, at: string): unknown {
  const json = text.replace(/^\uFEFF/, "");
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new UsageError(`${what} is not JSON: ${jsonSyntaxProblem(json)}`, {
      code: "not_json",
      at,
      got: plainLine(text, 120) || "nothing",
      expected: `JSON, such as '{"name": "value"}', 42 or '"text"'`,
      fix: looksLikeText(text)
        ? `a text needs its quotes: '${JSON.stringify(text)}'`
        : "correct it; in a shell put it in single quotes",
    });
  }
  refuseChanged(json, what, at);
  return checked(value, what);
}

/** Refuse a number that JSON would change. For other problems, an error with the value says more. */
function refuseChanged(json: string, what: string, at: string): void {
  const problem = findPayloadProblem(json, { start: 0, end: json.length });
  if (problem === undefined || problem.code === "too_deep") return;
  throw new UsageError(`${what} ${problem.message}`, {
    code: "not_json",
    at,
    expected: "numbers that JSON keeps exactly: integers below 2^53",
    fix: "send it as a string",
  });
}

/** The value of `--input`: JSON, `@file`, or `-` for standard input. */
export async function readInput(given: string, io: Pick<Io, "cwd" | "stdin">): Promise<unknown> {
  if (given === "-") return readJson(await readAll(io.stdin), "the input", "standard input");
  if (!given.startsWith("@")) return readJson(given, "the input", "--input");
  const path = resolve(io.cwd, given.slice(1));
  return readJson(decode(readBytes(path, given), path), "the input", path);
}

/** The payload of a signal: JSON, or the text of a `@file` or of standard input (`-`), which may be a log. */
export async function readPayload(
  given: string,
  io: Pick<Io, "cwd" | "stdin">,
  at: string,
): Promise<unknown> {
  if (given !== "-" && !given.startsWith("@")) return readJson(given, "the payload", at);
  const path = resolve(io.cwd, given.slice(1));
  const text = given === "-" ? await readAll(io.stdin) : readBytes(path, given).toString();
  const leftOut = text.length - 2 * LOG_PART_CHARS;
  if (leftOut <= 0) return text;
  const [head, tail] = [text.slice(0, LOG_PART_CHARS), text.slice(-LOG_PART_CHARS)];
  return `${head}\n(${leftOut} characters are left out)\n${tail}`;
}

/** The characters of a long text that are kept at its beginning, and again at its end. */
const LOG_PART_CHARS = 50_000;

function readBytes(path: string, given: string): Buffer {
  try {
    return readGiven(path, INPUT_BYTES_MAX);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const what =
      code === "ENOENT"
        ? `there is no file ${given.slice(1)}`
        : `the file of the input cannot be read: ${message}`;
    throw new NotFoundError("file_not_found", what, {
      at: path,
      fix: "check the path; it is taken from the current folder",
    });
  }
}

/** A value that cannot be recorded is refused before anything is written. */
function checked(value: unknown, what: string): unknown {
  const text = encodeJson(value, what);
  if (text !== undefined && text.length > LIMITS.payloadChars) {
    throw new HoldfastError("limit_exceeded", `${what} is ${text.length} characters of JSON`, {
      expected: `at most ${LIMITS.payloadChars}`,
      fix: "keep large content in a file and pass its path",
    });
  }
  return value;
}

function decode(bytes: Buffer, at: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError("the input is not UTF-8", {
      code: "not_json",
      at,
      expected: "JSON in UTF-8",
      fix: "convert the file",
    });
  }
}

/** More than this in no input that may be recorded: each of its characters has four bytes at most. */
const INPUT_BYTES_MAX = 4 * LIMITS.payloadChars;

export async function readAll(stdin: AsyncIterable<Uint8Array | string>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    bytes += chunks.at(-1)!.length;
    if (bytes > INPUT_BYTES_MAX)
      throw new HoldfastError("limit_exceeded", "standard input does not end", {
        at: "standard input",
        got: `more than ${INPUT_BYTES_MAX} bytes`,
        expected: `JSON of at most ${LIMITS.payloadChars} characters`,
        fix: "keep large content in a file and pass its path",
      });
  }
  return decode(Buffer.concat(chunks), "standard input");
}

function looksLikeText(text: string): boolean {
  return /^[\p{L}][^{}[\]"]*$/u.test(text);
}
