// A session in its tree: its parent, its children and their callbacks, their budgets, and its progress.

import {
  CHILD_ENDED,
  decodeJson,
  defined,
  isEnded,
  LIMITS,
  shortIds,
  type Account,
  type CancelRequest,
  type Session,
  type StorageReader,
} from "@holdfast/core";
import { accountText } from "./budget-text.ts";
import { currentError, errorLine, moment, paintStatus } from "./describe-session.ts";
import type { Look } from "../frame/command.ts";
import { plainLine, table } from "../frame/plain-text.ts";
import type { JournalEvent } from "./journal-events.ts";

/** The most sessions of a tree that are read; more are counted by their parents' rows. */
const TREE_SESSIONS = 200;
/** The most characters of a callback that a list shows. */
const CALLBACK_CHARS = 100;

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
    // A session that was started from outside with a callback is not counted as a child.
    if ((children === 0 && sessionId !== session.sessionId) || left <= 0) return [];
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

/**
 * The form of the id of each session that one text shows: short on a terminal, and whole elsewhere, where a
 * program may read it.
 */
export function shownIds(
  sessions: readonly Pick<Session, "sessionId">[],
  { columns }: Pick<Look, "columns">,
): (id: string) => string {
  if (columns === Infinity) return (id) => id;
  const short = shortIds(sessions.map(({ sessionId }) => sessionId));
  return (id) => short.get(id) ?? id;
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
  const budget = account === undefined ? "" : accountText(account, now);
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
    ["cancelled", cancelText(cancel) ?? (cancel && MODES[cancel.mode])],
  ];
}

const ON_END = {
  cancel: "cancelled with it",
  wait: "ends after this session",
  leave: "this session continues without it",
} as const;

const MODES = {
  graceful: "its agent could clean up",
  hard: "at once, without its agent",
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

/** `holdfast budget --json` shows the spent amounts of windows. */
function withoutLedgers(account: Account): Omit<Account, "ledgers"> {
  const { ledgers: _ledgers, ...shown } = account;
  return shown;
}

/** The same for programs. */
export function kinJson(session: Session): object {
  const { parent, children, handedOffTo, progress, deadlineAt, account, payers } = session;
  const { exhausted, quota } = session;
  return {
    ...defined({ parent }),
    ...(children === 0 ? {} : { childCount: children }),
    ...defined({ handedOffTo }),
    ...(progress === undefined ? {} : { progress: decodeJson(progress) }),
    ...defined({ deadlineAt }),
    ...(account === undefined ? {} : { budget: withoutLedgers(account) }),
    ...(payers.length === 0 ? {} : { payers }),
    ...defined({ exhausted, quota }),
  };
}

/**
 * The callbacks that a session has received, by its journal. A session that has ended receives none any more,
 * and its children keep their results.
 */
export class ReceivedCallbacks {
  readonly #children = new Set<unknown>();

  note({ type, name, names, payload, payloads }: JournalEvent): void {
    if (type === "signal_received" && name === CHILD_ENDED) this.#add(payload);
    if (type !== "take_signals" || !Array.isArray(names) || !Array.isArray(payloads)) return;
    for (const [i, taken] of names.entries()) if (taken === CHILD_ENDED) this.#add(payloads[i]);
  }

  #add(payload: unknown): void {
    this.#children.add((payload as { readonly child?: unknown } | null)?.child);
  }

  /** The children of a session that have ended, and whose callback it has not received. */
  missing(children: readonly KinNode[]): readonly Session[] {
    return children
      .map(({ session }) => session)
      .filter(
        ({ sessionId, status, parent, handedOffTo }) =>
          parent?.notify === "callback" &&
          isEnded(status) &&
          handedOffTo === undefined &&
          !this.#children.has(sessionId),
      );
  }
}

/** Each with its end, on one line. */
export function callbackRows(sessions: readonly Session[], look: Look): readonly string[] {
  return table(
    sessions.map((session) => [
      session.sessionId,
      paintStatus(session, look),
      plainLine(session.output ?? errorLine(currentError(session)), CALLBACK_CHARS),
    ]),
  );
}

/** The same for programs. */
export function callbackJson(session: Session): object {
  const { sessionId, status, output } = session;
  const error = currentError(session);
  return {
    sessionId,
    status,
    ...(output === undefined ? {} : { output: decodeJson(output) }),
    ...defined({ error }),
  };
}
