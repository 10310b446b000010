// Reads the merged log: its last lines (`lastLines`), and what is written from now on (`followLog`).

import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { LOG_LIMITS, logFiles, readLogLine, type LogLine } from "./stack-log.ts";

const CHUNK_BYTES = 64 * 1024;
const LOOK_MS = 100;

/** The last lines that match, over all files of the log. */
export function lastLines(path: string, count: number, matches: (line: LogLine) => boolean): LogLine[] {
  const found: LogLine[] = [];
  for (const file of logFiles(path)) {
    const lines = linesOf(file).map(readLogLine).filter(matches);
    found.unshift(...lines.slice(Math.max(0, lines.length - (count - found.length))));
    if (found.length >= count) break;
  }
  return found;
}

function linesOf(path: string): string[] {
  const text = readFrom(path, 0, LOG_LIMITS.bytesMax * 2)?.text ?? "";
  return text.split("\n").filter((line) => line !== "");
}

/** Where a follower is: a file, by its inode, and a place in it. */
interface Place {
  readonly inode: number;
  readonly offset: number;
}

/** The text that was read, and the place after it; `undefined` when there is no file. */
function readFrom(
  path: string,
  offset: number,
  bytesMax: number,
): { text: string; place: Place } | undefined {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch {
    return undefined;
  }
  try {
    const { ino: inode } = fstatSync(file);
    const chunks: Buffer[] = [];
    let at = offset;
    while (at - offset < bytesMax) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const read = readSync(file, chunk, 0, CHUNK_BYTES, at);
      if (read === 0) break;
      chunks.push(chunk.subarray(0, read));
      at += read;
    }
    return { text: Buffer.concat(chunks).toString("utf8"), place: { inode, offset: at } };
  } finally {
    closeSync(file);
  }
}

/** The end of the log as it is now: `followLog` begins there. */
export function endOfLog(path: string): Place {
  const found = statSync(path, { throwIfNoEntry: false });
  return { inode: found?.ino ?? 0, offset: found?.size ?? 0 };
}

/** Lines written after a place, without end until aborted. A file that was rotated meanwhile is read to its end first. */
export async function* followLog(path: string, from: Place, signal: AbortSignal): AsyncGenerator<LogLine> {
  let place = from;
  let rest = "";
  while (!signal.aborted) {
    const now = statSync(path, { throwIfNoEntry: false });
    const isRotated = now !== undefined && now.ino !== place.inode;
    const file = isRotated ? fileOf(path, place.inode) : path;
    const read = file === undefined ? undefined : readFrom(file, place.offset, LOG_LIMITS.bytesMax * 2);
    if (read !== undefined) {
      const lines = (rest + read.text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line !== "") yield readLogLine(line);
      place = { inode: place.inode, offset: read.place.offset };
    }
    if (isRotated) place = { inode: now.ino, offset: 0 };
    else await delay(LOOK_MS, undefined, { signal }).catch(() => {});
  }
}

/** The rotated file with this inode, unless it was removed. */
function fileOf(path: string, inode: number): string | undefined {
  return logFiles(path).find((file) => statSync(file, { throwIfNoEntry: false })?.ino === inode);
}
