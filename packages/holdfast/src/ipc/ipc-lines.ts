// `ipcLines`: the lines of a stream, each at most so long, for `holdfast runner --ipc`.
//
//   - No more than one line and one chunk is kept. A line that is too long is reported as soon as it is, and
//     skipped to its end.
//   - A last line without its line break was cut off: the host died while it wrote. It is never taken for a
//     request.

import type { Readable } from "node:stream";

export interface IpcLine {
  /** Counted from 1. */
  readonly number: number;
  /** The text, or why there is none. */
  readonly text?: string;
  readonly problem?: "too_long" | "not_utf8" | "cut_off";
}

const LINE_BREAK = 0x0a;

/** The lines of the stream that are not empty. They are read as fast as they are taken. */
export async function* ipcLines(stream: Readable, bytesMax: number): AsyncGenerator<IpcLine> {
  let number = 1;
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const given of stream) {
    let chunk: Buffer = Buffer.isBuffer(given) ? given : Buffer.from(given as string);
    while (chunk.length > 0) {
      const end = chunk.indexOf(LINE_BREAK);
      const part = end < 0 ? chunk : chunk.subarray(0, end);
      const isTooLong = bytes <= bytesMax && bytes + part.length > bytesMax;
      bytes += part.length;
      if (bytes <= bytesMax) parts.push(part);
      else parts = [];
      if (isTooLong) yield { number, problem: "too_long" };
      if (end < 0) break;
      if (bytes <= bytesMax && bytes > 0) yield { number, ...decoded(Buffer.concat(parts)) };
      number++;
      parts = [];
      bytes = 0;
      chunk = chunk.subarray(end + 1);
    }
  }
  // The host died while it wrote the line, so it is no request.
  if (bytes > 0 && bytes <= bytesMax) yield { number, problem: "cut_off" };
}

function decoded(line: Buffer): Pick<IpcLine, "text" | "problem"> {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(line) };
  } catch {
    return { problem: "not_utf8" };
  }
}
