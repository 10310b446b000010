// Leases: claims in the rows of their sessions. Taking one, renewing all of an owner, and restarting leases
// at an opening.
//
//   - A renewal changes no version, because no decision uses the cached expiry of a lease. A claim is taken
//     only if the row still has the expiry that was read.
//   - While no storage lives, nobody can renew. A storage that finds no other one alive therefore gives every
//     lease its full length again, from the first time that a caller gives (ST38). If another one lives,
//     holders could renew through that one, so a process that only sends a signal extends nothing.
//   - Rows are locked in the order of their ids, as groups do.

import type { AgentStorage, Claim, HeldClaim } from "@holdfast/core";
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

/**
 * A statement for held claims. One statement for all filters would read every claim, as its plan is made once
 * for all values.
 */
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
  // mutant: claim-end-unchecked
  text: `UPDATE state t SET token = $5, holder = $6, until = $7, lease_ms = $8, losses = $9, instance = $10,
      version = $11, due_at = CASE WHEN $7 = 'Infinity'::float8 THEN NULL
        WHEN t.ready_at IS NULL THEN NULL ELSE greatest(t.ready_at, $7) END
    WHERE t.lane = $1 AND t.session_id = $2 AND t.version = $3 AND t.until = $4 RETURNING t.version`,
};

/** The input for a claim: the head as it was read, the expiry in its row, and the new claim. */
export interface ClaimWrite {
  readonly head: Head;
  /** The expiry in the row, whether or not the last holder is alive. */
  readonly untilBefore: number;
  readonly claim: Claim & { readonly owner: string };
  readonly leaseMs: number;
  /** The instance that holds the claim, if it has no expiry. */
  readonly instance: string;
  /** The version of the row with the new claim. */
  readonly version: number;
}

/** Answers `false` when the row is not as it was read. */
export async function writeClaim(db: Database, write: ClaimWrite): Promise<boolean> {
  const { head, untilBefore, claim, leaseMs, instance, version } = write;
  const { token, owner, until, losses } = claim;
  const holder = until === Infinity ? instance : null;
  const row = [head.lane, head.sessionId, head.version, untilBefore];
  return (await db.run(CLAIM, [...row, token, owner, until, leaseMs, losses, holder, version])).length > 0;
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

export async function beginLeases(db: Database, now: number, instance: string): Promise<void> {
  await db.run(BEGIN, [now, instance]);
}
