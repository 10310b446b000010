// `MessageLines`: JSON objects, one a line, from the output of a persistent executor.

import { MIB } from "@holdfast/core";
import { OutputLines } from "@holdfast/system";

/** A line above this size is no message of an executor. */
const LINE_CHARS_MAX = MIB;

export type Message = Readonly<Record<string, unknown>> & { readonly type: string };

export class MessageLines {
  readonly #lines = new OutputLines(LINE_CHARS_MAX);

  /** The beginning of a message that no line end has followed. */
  get rest(): string {
    return this.#lines.rest.trim();
  }

  /** A line was longer than any message. Nothing is kept from then on. */
  get isTooLong(): boolean {
    return this.#lines.isTooLong;
  }

  /** The messages that are complete now. Lines that are no JSON object with a type are skipped. */
  push(text: string): readonly Message[] {
    return this.#lines.push(text).flatMap((line) => messageOf(line) ?? []);
  }
}

function messageOf(line: string): Message | undefined {
  if (!line.trimStart().startsWith("{")) return undefined;
  try {
    const value = JSON.parse(line) as Message;
    return typeof value.type === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
