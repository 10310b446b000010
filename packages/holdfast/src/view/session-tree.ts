// A session in its tree: its parent, its children, their budgets, and its progress.

import { decodeJson, LIMITS, type CancelRequest, type Session, type StorageReader } from "@holdfast/core";
import { accountText } from "./budget-text.ts";
import { moment } from "./describe-session.ts";

/** The most sessions of a tree that are read; more are counted by their parents' rows. */
const TREE_SESSIONS = 200;

export interface KinNode {
  readonly session: Session;
  readonly children: readonly KinNode[];
}

/**
 * The sessions below a session, the oldest first, each once. @param most `Infinity` for a sum over all of
 * them.
 */
export async function readBelow(
  reader: StorageReader,
  session: Session,
  most = TREE_SESSIONS,
): Promise<readonly KinNode[]> {
  let left = most;
  const seen = new Set([session.sessionId]); // Rows that were brought in may name each other in a circle.
  const below = async ({ sessionId, children }: Session): Promise<readonly KinNode[]> => {
    if (children === 0 || left <= 0) return [];
    const found = await reader.sessions({ parent: sessionId, limit: Math.min(left, LIMITS.children) });
    left -= found.length;
    const nodes: KinNode[] = [];
    for (const child of found.toReversed()) {
      if (seen.has(child.sessionId)) continue;
      seen.add(child.sessionId);
      nodes.push({ session: child, children: await below(child) });
    }
    return nodes;
  };
  return below(session);
}

/** Sessions as trees: each under its parent where that one is among them, in the order they came. */
export function asTrees(sessions: readonly Session[]): readonly KinNode[] {
  const known = new Set(sessions.map(({ sessionId }) => sessionId));
  const under = Map.groupBy(sessions, ({ parent }) => {
    return parent !== undefined && known.has(parent.sessionId) ? parent.sessionId : undefined;
  });
  const node = (session: Session): KinNode => ({
    session,
    children: (under.get(session.sessionId) ?? [])
      .toSorted((a, b) => a.createdAt - b.createdAt || childOf(a) - childOf(b))
      .map(node),
  });
  return (under.get(undefined) ?? []).map(node);
}

function childOf({ parent }: Session): number {
  return parent?.child ?? 0;
}

/** Those above a session, the nearest first, each once. */
export async function* walkUp(
  reader: StorageReader,
  { sessionId, parent }: Session,
): AsyncGenerator<Session, void> {
  const seen = new Set([sessionId]);
  for (let next = parent; next !== undefined && !seen.has(next.sessionId);) {
    seen.add(next.sessionId);
    const above: Session | undefined = await reader.session(next.sessionId);
    if (above === undefined) return;
    yield above;
    next = above.parent;
  }
}

/** Each with how deep it stands, a parent before its children. */
export function* walk(nodes: readonly KinNode[], depth = 0): Generator<{ session: Session; depth: number }> {
  for (const { session, children } of nodes) {
    yield { session, depth };
    yield* walk(children, depth + 1);
  }
}

/** The facts about a session's tree for `show`. */
export function kinFacts(session: Session, now: number): (readonly [string, string | undefined])[] {
  const { sessionId, parent, handedOffTo, progress, deadlineAt, account, payers, cancel } = session;
  const budget = account === undefined ? "" : accountText(account);
  const others = payers.filter((payer) => payer !== sessionId);
  return [
    ["parent", parent === undefined ? undefined : `${parent.sessionId} (${ON_END[parent.onEnd]})`],
    ["handed over to", handedOffTo],
    ["progress", progress],
    [
      "deadline",
      deadlineAt === undefined || session.endedAt !== undefined ? undefined : moment(deadlineAt, now),
    ],
    ["budget", budget === "" ? undefined : budget],
    ["paid by", others.length === 0 ? undefined : others.join(", ")],
    ["cancelled", cancelText(cancel) ?? cancel?.mode],
  ];
}

const ON_END = {
  cancel: "cancelled with it",
  wait: "ends after this session",
  leave: "this session continues without it",
} as const;

const CAUSES = {
  parent: "its parent ended or was cancelled",
  deadline: "its deadline passed",
  input_timeout: "a question was not answered in time",
  budget_exceeded: "its budget was used up",
} as const;

/** The reason of a cancel, if there is one: the text of the caller, or the cause. */
export function cancelText(cancel: CancelRequest | undefined): string | undefined {
  return cancel?.reason ?? (cancel?.cause === undefined ? undefined : CAUSES[cancel.cause]);
}

/** The same for programs. */
export function kinJson(session: Session): object {
  const { parent, children, handedOffTo, progress, deadlineAt, account, payers, exhausted } = session;
  return {
    ...(parent === undefined ? {} : { parent }),
    ...(children === 0 ? {} : { childCount: children }),
    ...(handedOffTo === undefined ? {} : { handedOffTo }),
    ...(progress === undefined ? {} : { progress: decodeJson(progress) }),
    ...(deadlineAt === undefined ? {} : { deadlineAt }),
    ...(account === undefined ? {} : { budget: account }),
    ...(payers.length === 0 ? {} : { payers }),
    ...(exhausted === undefined ? {} : { exhausted }),
  };
}
