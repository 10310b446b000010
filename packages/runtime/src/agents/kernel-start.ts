// Where a kernel starts: `storedLife` at a session's start or its last stored checkpoint, `nextLife` at the
// checkpoint that the previous kernel just made (K7).

import {
  isForkPending,
  type JsonText,
  type Kernel,
  type KernelOptions,
  migrateState,
  parentAt,
  readState,
  seedAt,
  type Session,
  type SessionSnapshot,
  SessionState,
} from "@holdfast/core";
import type { Agent } from "./define.ts";

/** The kernel options that differ from one kernel of a session to the next. */
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
  | "notBefore"
  | "relations"
  | "seed"
  | "origins"
  | "forkPending"
  | "repeats"
>;

/**
 * The start of a session's next kernel from storage: the records begin with the last checkpoint, if there is
 * one.
 *
 * @param token of the session's claim; 0 for a session that is not stored yet.
 * @throws HoldfastError `state_version` when the agent cannot read the version of the state.
 */
export function storedLife(
  { session, records, signals, states }: SessionSnapshot,
  agent: Agent,
  token = 0,
): KernelLife {
  const [first, ...rest] = records;
  const { children } = session;
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
      notBefore: first.at,
      ...descentOf(session, first.seq + 1),
      forkPending: isForkPending(session, first.seq + 1, rest),
      // Children a fork's origin waited for are not the fork's.
      relations: relationsOf(session, {
        baseSeq: first.seq + 1,
        token,
        children,
        awaited: session.fork?.at === first.seq + 1 ? [] : (first.awaited ?? []),
      }),
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
    ...descentOf(session, 0),
    forkPending: isForkPending(session, 0, records),
    relations: relationsOf(session, { baseSeq: 0, token, children, awaited: [] }),
    repeats: [],
  };
}

/** The start of the kernel after the checkpoint at which `last` ended. */
export function nextLife(last: Kernel, state: SessionState, session: Session, token = 0): KernelLife {
  return {
    baseSeq: last.cursor.seq,
    baseId: last.cursor.id,
    recorded: [],
    signals: last.pending,
    state,
    turn: last.turn.number,
    entryCount: last.tip.count,
    leaf: last.tip.leaf,
    cancel: last.turn.cancel,
    notBefore: last.now,
    ...descentOf(session, last.cursor.seq),
    relations: {
      ...relationsOf(session, {
        baseSeq: last.cursor.seq,
        token,
        children: last.children.relations.children,
        awaited: last.children.ends.awaited,
      }),
      persistence: last.children.relations.persistence,
    },
    repeats: last.repeats.seen,
  };
}

/** The seed and the origins of a kernel that starts at this position. */
function descentOf(session: Session, baseSeq: number): Pick<KernelLife, "seed" | "origins"> {
  return { seed: seedAt(session, baseSeq), origins: session.fork?.origins ?? [] };
}

interface Beginning {
  readonly baseSeq: number;
  readonly token: number;
  readonly children: number;
  readonly awaited: readonly number[];
}

function relationsOf(
  session: Session,
  { baseSeq, token, children, awaited }: Beginning,
): KernelLife["relations"] {
  const { depth, shared, flags, format, persistence = "full" } = session;
  return {
    ...(session.persistence === undefined ? {} : { life: token }),
    parent: parentAt(session, baseSeq),
    depth,
    children,
    awaited,
    shared,
    persistence,
    flags,
    format,
  };
}
