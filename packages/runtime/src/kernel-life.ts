// On what a kernel begins: a session's start, its last checkpoint as it is stored, or the one its forerunner just made (K7).

import type { JsonText, Kernel, KernelOptions, SessionSnapshot } from "@holdfast/core";

/** The part of a kernel's options that tells one kernel of a session from the next. */
export type KernelLife = Pick<
  KernelOptions,
  "baseSeq" | "baseId" | "recorded" | "signals" | "stateText" | "turn" | "entryCount" | "leaf" | "cancel"
>;

/** The life of a session as it is stored: its records begin with the checkpoint, if there was one. */
export function storedLife({ records, signals }: Omit<SessionSnapshot, "session">): KernelLife {
  const [first, ...rest] = records;
  if (first?.type === "checkpoint") {
    return {
      baseSeq: first.seq + 1,
      baseId: first.id + 1,
      recorded: rest,
      signals,
      stateText: first.payload,
      turn: first.turn,
      entryCount: first.entryCount,
      leaf: first.leaf,
      cancel: first.cancel,
    };
  }
  return {
    baseSeq: 0,
    baseId: 0,
    recorded: records,
    signals,
    stateText: undefined,
    turn: 0,
    entryCount: 0,
    leaf: undefined,
    cancel: undefined,
  };
}

/** The life after the checkpoint at which `last` ended. */
export function nextLife(last: Kernel, stateText: JsonText): KernelLife {
  return {
    baseSeq: last.nextSeq,
    baseId: last.nextId,
    recorded: [],
    signals: last.pendingSignals(),
    stateText,
    turn: last.turn,
    entryCount: last.entryCount,
    leaf: last.leaf,
    cancel: last.cancelNotice,
  };
}
