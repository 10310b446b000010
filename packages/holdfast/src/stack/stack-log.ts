// The merged log of the local stack: one line for each line that a component writes.
//
//   2026-11-23T17:00:00.000Z runner Registered as rnr_…
//
//   - The log has at most `filesMax` files of about `bytesMax` bytes each. The oldest is removed first.
//   - Only this user can read the files, and no file is written through a link.
//   - A disk that is full loses lines. It does not stop the stack.
//   - No line of any component shows a secret that the stack holds.

import { closeSync, fstatSync, lstatSync, renameSync, rmSync, writeSync } from "node:fs";
import { MIB } from "@holdfast/core";
import { openPrivateAppend } from "@holdfast/system";
import { plain } from "@holdfast/terminal/frame/plain-text";
import { COMPONENTS, type Component } from "@holdfast/place/local-stack";

export interface LogLimits {
  readonly bytesMax: number;
  readonly filesMax: number;
}

export const LOG_LIMITS: LogLimits = { bytesMax: 4 * MIB, filesMax: 4 };

export interface LogLine {
  /** When it was written, as ISO 8601; empty for a line that no component wrote through the log. */
  readonly at: string;
  readonly component: Component;
  readonly text: string;
}

const LINE_CHARS = 16 * 1024;

/** The files of a log, the newest first. */
export function logFiles(path: string, { filesMax }: Pick<LogLimits, "filesMax"> = LOG_LIMITS): string[] {
  return Array.from({ length: filesMax }, (_, i) => (i === 0 ? path : `${path}.${i}`));
}

export class StackLog {
  readonly #path: string;
  readonly #limits: LogLimits;
  readonly #redacted: (text: string) => string;
  #file: number | undefined;
  #bytes = 0;

  /** @param redacted the text without secrets. @throws Error when the file cannot be opened. */
  constructor(path: string, redacted: (text: string) => string, limits: LogLimits = LOG_LIMITS) {
    this.#path = path;
    this.#redacted = redacted;
    this.#limits = limits;
    this.#open();
  }

  write(component: Component, text: string): void {
    // mutant: log-not-redacted
    const shown = plain(this.#redacted(text).slice(0, LINE_CHARS)).trimEnd();
    if (shown === "") return;
    const line = `${new Date().toISOString()} ${component} ${shown}\n`;
    const bytes = Buffer.from(line);
    try {
      if (this.#bytes + bytes.length > this.#limits.bytesMax && this.#bytes > 0) this.#rotate();
      if (this.#file !== undefined) this.#bytes += writeSync(this.#file, bytes);
    } catch {
      // A full disk loses lines, and does not stop the stack.
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #open(): void {
    this.#file = openPrivateAppend(this.#path);
    this.#bytes = fstatSync(this.#file).size;
  }

  #rotate(): void {
    this.close();
    const files = logFiles(this.#path, this.#limits);
    rmSync(files.at(-1)!, { force: true });
    for (let i = files.length - 2; i >= 0; i--) {
      if (lstatSync(files[i]!, { throwIfNoEntry: false }) !== undefined) renameSync(files[i]!, files[i + 1]!);
    }
    this.#open();
  }
}

const LINE = new RegExp(`^(\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z) (${COMPONENTS.join("|")}) (.*)$`, "s");

/** A line of the log. Text that the log did not write came from the supervisor's own process. */
export function readLogLine(line: string): LogLine {
  const [, at = "", component = "supervisor", text = line] = LINE.exec(line) ?? [];
  return { at, component: component as Component, text };
}
