// Claims in the rows of their sessions: taking one, renewing all of an owner, and what opening a storage does to those it finds.
//
//   postgres-leases-1. A renewal changes no version: nobody decides by what is cached of a lease's end, and a claim is
//       taken only where the end that was read still stands.
//   postgres-leases-2. While no storage lives, nobody can renew. So the first time that is told to a storage which
//       finds that no other one was just alive gives every lease that ends its length once more (ST38). Where one lives
//       it could be asked, and is not extended by whoever opens the database to send a signal.
//   postgres-leases-3. Rows are locked in the order of their ids, as groups do.

import type { AgentStorage, HeldClaim } from "@holdfast/core";
import type { Claim } from "@holdfast/core/internal";
import type { Database, Statement } from "../database/database.ts";
import type { Head } from "./heads.ts";
import { isWithin, JUST_SAID_MS } from "./instance.ts";

/** Rows with a claim that ends, of sessions that have not. Completed by a condition. */
const LEASED = `WITH leased AS MATERIALIZED (SELECT t.lane, t.session_id, t.until FROM state t
    WHERE t.holder IS NOT NULL AND t.ended = 0 AND t.until < 'Infinity'`;
const IN_ORDER = "ORDER BY t.lane, t.session_id FOR UPDATE)";

/** @param until an expression over `t`. */
const lengthen = (until: string): string => `UPDATE state t SET until = ${until},
    due_at = CASE WHEN t.ready_at IS NULL THEN NULL ELSE greatest(t.ready_at, ${until}) END`;

const RENEW: Statement = {
  name: "renew",
  text: `${LEASED} AND t.holder = $1 AND ($4::text[] IS NULL OR t.session_id = ANY($4)) ${IN_ORDER},
    renewed AS (${lengthen("greatest(t.until, $2)")}, lease_ms = $3 FROM leased l
      WHERE t.lane = l.lane AND t.session_id = l.session_id)
    SELECT count(*) AS sessions FROM leased`,
};

const BEGIN: Statement = {
  name: "begin_leases",
  text: `${LEASED} AND t.until < $1 + t.lease_ms
      AND NOT EXISTS (SELECT 1 FROM instance WHERE instance <> $2 AND ${isWithin("said_at", JUST_SAID_MS)})
      ${IN_ORDER}
    ${lengthen("$1 + t.lease_ms")} FROM leased l WHERE t.lane = l.lane AND t.session_id = l.session_id`,
};

/** A way to claims that are held: one statement for all would read every claim there is, as its plan is made once for all values. */
const held = (name: string, where: string): Statement => ({
  name,
  text: `SELECT t.session_id, t.holder, t.token, t.until, t.lease_ms, t.losses, (t.body::json ->> 'inbox')::int4 AS inbox FROM state t
    WHERE t.holder IS NOT NULL AND t.ended = 0 AND t.until < 'Infinity' AND t.until > $1 ${where}
      AND t.session_id > $2::text COLLATE "C" ORDER BY t.session_id LIMIT $3`,
});

const HELD = held("held", "");
const HELD_BY = held("held_by", "AND t.holder = $4");
const HELD_SESSION = held(
  "held_session",
  `AND t.lane = (SELECT lane FROM session WHERE session_id = $4) AND t.session_id = $4
      AND ($5::text IS NULL OR t.holder = $5)`,
);

const CLAIM: Statement = {
  name: "claim",
  text: `UPDATE state t SET token = $5, holder = $6, until = $7, lease_ms = $8, losses = $9, instance = $10,
      version = t.version + 1, due_at = CASE WHEN $7 = 'Infinity'::float8 THEN NULL
        WHEN t.ready_at IS NULL THEN NULL ELSE greatest(t.ready_at, $7) END
    WHERE t.lane = $1 AND t.session_id = $2 AND t.version = $3 AND t.until = $4 RETURNING t.version`,
};

/** What a claim is made from: the head as it was read, the end its row has, and what it is to be. */
export interface ClaimWrite {
  readonly head: Head;
  /** As the row has it, whether or not who held it is alive. */
  readonly untilBefore: number;
  readonly claim: Claim & { readonly owner: string };
  readonly leaseMs: number;
  /** Who holds it, when it has no end. */
  readonly instance: string;
}

/** `false` when the row is not as it was read. */
export async function writeClaim(db: Database, write: ClaimWrite): Promise<boolean> {
  const { head, untilBefore, claim, leaseMs, instance } = write;
  const { token, owner, until, losses } = claim;
  const holder = until === Infinity ? instance : null;
  const row = [head.lane, head.sessionId, head.version, untilBefore];
  return (await db.run(CLAIM, [...row, token, owner, until, leaseMs, losses, holder])).length > 0;
}

export async function renewLeases(
  db: Database,
  { owner, sessionIds, now, leaseMs }: Parameters<AgentStorage["renew"]>[0],
): Promise<number> {
  const [row] = await db.run(RENEW, [owner, now + leaseMs, leaseMs, sessionIds ?? null]);
  return row?.["sessions"] as number;
}

export async function readClaims(
  db: Database,
  { now, limit, sessionId, owner, after = "" }: Parameters<AgentStorage["heldClaims"]>[0],
): Promise<HeldClaim[]> {
  const page = [now, after, Math.max(limit, 0)];
  const rows =
    sessionId !== undefined
      ? await db.run(HELD_SESSION, [...page, sessionId, owner ?? null])
      : await (owner === undefined ? db.run(HELD, page) : db.run(HELD_BY, [...page, owner]));
  return rows.map((row) => ({
    sessionId: row["session_id"] as string,
    owner: row["holder"] as string,
    token: row["token"] as number,
    until: row["until"] as number,
    leaseMs: row["lease_ms"] as number,
    inbox: row["inbox"] as number,
    losses: row["losses"] as number,
  }));
}

/** postgres-leases-2. */
export async function beginLeases(db: Database, now: number, instance: string): Promise<void> {
  await db.run(BEGIN, [now, instance]);
}
