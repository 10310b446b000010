// On what a kernel begins: a session's start, its last checkpoint as it is stored, or the one its forerunner just made (K7).

import {
  migrateState,
  readState,
  SessionState,
  type JsonText,
  type Kernel,
  type KernelOptions,
  type Session,
  type SessionSnapshot,
} from "@holdfast/core";
import type { Agent } from "./define.ts";

/** The part of a kernel's options that tells one kernel of a session from the next. */
export type KernelLife = Pick<
  KernelOptions,
  | "baseSeq"
  | "baseId"
  | "recorded"
  | "signals"
  | "state"
  | "turn"
  | "entryCount"
  | "leaf"
  | "cancel"
  | "relations"
  | "repeats"
>;

/**
 * The life of a session as it is stored: its records begin with the checkpoint, if there was one.
 *
 * @throws HoldfastError `state_version` when its state is of a version that this agent cannot read.
 */
export function storedLife({ session, records, signals, states }: SessionSnapshot, agent: Agent): KernelLife {
  const [first, ...rest] = records;
  if (first?.type === "checkpoint") {
    const stored = readState([...states, first.payload ?? "null"] as readonly JsonText[], first);
    return {
      baseSeq: first.seq + 1,
      baseId: first.id + 1,
      recorded: rest,
      signals,
      state: new SessionState(agent.state, migrateState(agent.state, stored, agent.name)),
      turn: first.turn,
      entryCount: first.entryCount,
      leaf: first.leaf,
      cancel: first.cancel,
      relations: relationsOf(session, session.children, first.awaited ?? []),
      repeats: first.repeats ?? [],
    };
  }
  return {
    baseSeq: 0,
    baseId: 0,
    recorded: records,
    signals,
    state: new SessionState(agent.state, undefined),
    turn: 0,
    entryCount: 0,
    leaf: undefined,
    cancel: undefined,
    relations: relationsOf(session, session.children, []),
    repeats: [],
  };
}

/** The life after the checkpoint at which `last` ended. */
export function nextLife(last: Kernel, state: SessionState, session: Session): KernelLife {
  return {
    baseSeq: last.nextSeq,
    baseId: last.nextId,
    recorded: [],
    signals: last.pendingSignals(),
    state,
    turn: last.turn,
    entryCount: last.entryCount,
    leaf: last.leaf,
    cancel: last.cancelNotice,
    relations: relationsOf(session, last.children.children, last.children.awaited),
    repeats: last.repeats.seen,
  };
}

function relationsOf(
  { parent, depth, shared, flags, format }: Session,
  children: number,
  awaited: readonly number[],
): KernelLife["relations"] {
  return { parent, depth, children, awaited, shared, flags, format };
}
