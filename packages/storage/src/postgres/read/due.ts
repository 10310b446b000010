// Due sessions and schedules, and the time of the next ones, read by the times in their rows.

import { type Due, type Schedule, unlessCorrupt } from "@holdfast/core";
import type { Database, Statement } from "../database/database.ts";
import type { Peers } from "../tables/peers.ts";
import { readItem, readSchedule } from "../tables/items.ts";

/** Sessions whose time is up, acted on in one go. */
const OVERDUE_MAX = 1_000;

const OVERDUE: Statement = {
  name: "overdue",
  text: `SELECT session_id FROM state WHERE overdue_at <= $1 ORDER BY overdue_at LIMIT ${OVERDUE_MAX}`,
};

const DUE: Statement = {
  name: "due",
  text: "SELECT session_id FROM state WHERE due_at <= $1 ORDER BY due_at, lane, session_id LIMIT $2",
};
const DUE_OF_AGENTS: Statement = {
  name: "due_of_agents",
  text: DUE.text.replace("ORDER BY", "AND agent = ANY($3) ORDER BY"),
};

const DUE_SCHEDULES: Statement = {
  name: "due_schedules",
  text: `SELECT kind, key, version, next_at, body, checksum FROM item WHERE next_at <= $1 ORDER BY next_at, key`,
};

const NEXT: Statement = {
  name: "next_due",
  text: `SELECT least((SELECT min(due_at) FROM state WHERE due_at > $1),
    (SELECT min(overdue_at) FROM state WHERE overdue_at > $1),
    (SELECT min(next_at) FROM item WHERE next_at > $1)) AS next_at`,
};

/** Sessions whose time is up, claimed or not: the caller acts on them before it asks what is due. */
export async function overdue(db: Database, now: number): Promise<string[]> {
  return (await db.run(OVERDUE, [now])).map((row) => row["session_id"] as string);
}

export async function listDue(
  db: Database,
  at: string,
  peers: Peers,
  { now, limit, agents }: { now: number; limit: number; agents?: readonly string[] },
): Promise<Due> {
  const asked =
    agents === undefined
      ? ([DUE, [now, limit]] as const)
      : ([DUE_OF_AGENTS, [now, limit, [...agents]]] as const);
  const [rows, items, next, found] = await db.readAll([
    asked,
    [DUE_SCHEDULES, [now]],
    [NEXT, [now]],
    peers.question,
  ]);
  if ((await peers.heed(found!)) !== undefined) {
    return listDue(db, at, peers, { now, limit, ...(agents === undefined ? {} : { agents }) });
  }
  const sessionIds = rows!.map((row) => row["session_id"] as string);
  const schedules: Schedule[] = items!.flatMap(
    (row) => unlessCorrupt(() => readSchedule(readItem(row, at).body)) ?? [],
  );
  const nextAt = next![0]!["next_at"] as number | null;
  return { sessionIds, schedules, ...(nextAt === null ? {} : { nextAt }) };
}
