// `SessionWeight`: how much memory a session takes while it is driven here, by estimate.
//
// The size of an agent's own variables is unknown. They come from the inputs, signals and records since its
// last checkpoint. Therefore these texts are counted twice: once as text, once as the values parsed from it.

import type { SealedSegment, SessionSnapshot, StoredSignal } from "@holdfast/core";

/** The memory of a session that has only begun to wait: measured 15.5 KB on Node 24. */
const SESSION_BYTES = 16 * 1024;
/** Most texts take one byte per character, and each is counted twice. */
const BYTES_PER_CHAR = 2;

export class SessionWeight {
  #chars: number;

  constructor({ session, records, signals, states }: SessionSnapshot) {
    this.#chars = (session.input?.length ?? 0) + payloadChars(records) + payloadChars(signals);
    for (const state of states) this.#chars += state.length;
  }

  get bytes(): number {
    return SESSION_BYTES + BYTES_PER_CHAR * this.#chars;
  }

  received(signals: readonly StoredSignal[]): void {
    this.#chars += payloadChars(signals);
  }

  committed({ records, entries }: Pick<SealedSegment, "records" | "entries">): void {
    this.#chars += payloadChars(records);
    for (const { content } of entries) this.#chars += content.length;
  }

  /** Only what a checkpoint keeps is left. */
  checkpointed(stateChars: number, signalChars: number): void {
    this.#chars = stateChars + signalChars;
  }
}

function payloadChars(items: readonly { readonly payload?: string | undefined }[]): number {
  let chars = 0;
  for (const { payload } of items) chars += payload?.length ?? 0;
  return chars;
}
