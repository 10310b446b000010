// A process of its own that uses a storage, to be watched and killed by tests.
//
//   hold PATH             own the database, say `ready`, and close when stdin ends
//   own PATH              own the database, say `ready` or the code of what refused it, and close
//   share PATH            open it, with or without another owner, say `ready`, and do as `share` says
//   commit PATH COUNT     own it, and commit groups of steps; after each, say `ack N` on stdout
//   die PATH COUNT        the same, and then kill itself, as a kill from outside may come too late
//   unsynced PATH COUNT   `commit` with synchronous=OFF, so that a test can see a missing sync
//
// Each group N is one batch for every session of `SESSIONS`, and an entry that says N.

import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { HoldfastError, type Change, type CreateSession } from "@holdfast/core";
import { openForWriting } from "../file/database.ts";
import { openSqliteStorage, ownSqliteStorage } from "../open.ts";
import { SqliteStorage } from "../engine/sqlite-storage.ts";

export const SESSIONS = ["ses-1", "ses-2", "ses-3"];

if (process.argv[2] !== undefined) await main(process.argv.slice(2));

async function main([mode, path = "", count]: readonly string[]): Promise<void> {
  if (mode === "own") return own(path);
  if (mode === "share") return share(path);
  const storage = mode === "unsynced" ? openUnsynced(path) : await ownSqliteStorage({ path });
  if (mode === "hold") {
    process.stdin.resume().once("end", () => void storage.close());
    say("ready");
    return;
  }
  await commitGroups(storage, Number(count ?? Infinity));
  if (mode === "die") process.kill(process.pid, "SIGKILL");
  await storage.close();
}

async function own(path: string): Promise<void> {
  try {
    const storage = await ownSqliteStorage({ path });
    say("ready");
    await storage.close();
  } catch (error) {
    say(HoldfastError.is(error) ? error.code : String(error));
  }
}

/**
 * Each line of stdin is answered by one line. `create S`, `claim S`, `step S` and `release S` are answered by
 * the status of the result, and `owner` by the pid of the owner. The end of stdin closes the storage.
 */
async function share(path: string): Promise<void> {
  const storage = await openSqliteStorage({ path });
  const owner = `process ${process.pid}`;
  const tokens = new Map<string, number>();
  const steps = new Map<string, number>();
  const commit = async (sessionId: string, change: Change) => {
    const [result] = await storage.commit([change], Date.now());
    if (result !== undefined && "token" in result) tokens.set(sessionId, result.token ?? 0);
    return result!.status;
  };
  const acts: Readonly<Record<string, (sessionId: string) => Promise<string>>> = {
    owner: async () => String("owner" in storage ? (storage.owner as { pid: number }).pid : process.pid),
    create: (sessionId) => commit(sessionId, creating(sessionId, { owner, leaseMs: Infinity })),
    claim: async (sessionId) => {
      const result = await storage.claim({ sessionId, owner, now: Date.now(), leaseMs: Infinity });
      if (result.status !== "claimed") return result.status;
      tokens.set(sessionId, result.token);
      const session = await storage.reader.session(sessionId);
      steps.set(sessionId, (session?.nextSeq ?? 0) / 2);
      return result.status;
    },
    step: async (sessionId) => {
      const n = steps.get(sessionId) ?? 0;
      const status = await commit(sessionId, step(sessionId, tokens.get(sessionId) ?? 1, n));
      if (status === "committed") steps.set(sessionId, n + 1);
      return status;
    },
    release: (sessionId) =>
      commit(sessionId, { type: "release_claim", sessionId, token: tokens.get(sessionId) ?? 1 }),
  };
  say("ready");
  for await (const line of createInterface({ input: process.stdin })) {
    const [act = "", sessionId = ""] = line.split(" ");
    say(`${line}: ${await acts[act]!(sessionId).catch((error: unknown) => String(error))}`);
  }
  await storage.close();
}

function openUnsynced(path: string): SqliteStorage {
  const driver = openForWriting(path, true);
  driver.exec("PRAGMA synchronous = OFF");
  return new SqliteStorage({ driver, path });
}

async function commitGroups(storage: SqliteStorage, groups: number): Promise<void> {
  const claimFor = { owner: "test", leaseMs: Infinity };
  const changes = SESSIONS.map((sessionId) => creating(sessionId, claimFor));
  const created = await storage.commit(changes, 0);
  const tokens = created.map((result) => ("token" in result ? (result.token ?? 0) : 0));
  for (let n = 0; n < groups; n++) {
    const results = await storage.commit(
      SESSIONS.map((sessionId, i) => step(sessionId, tokens[i]!, n)),
      n,
    );
    if (results.some(({ status }) => status !== "committed")) throw new Error(JSON.stringify(results));
    say(`ack ${n}`);
  }
}

function creating(sessionId: string, claimFor: NonNullable<CreateSession["claimFor"]>): CreateSession {
  const agent = { name: "agent", version: "1" };
  return {
    type: "create_session",
    sessionId,
    agent,
    input: undefined,
    seed: 1,
    flags: 0,
    format: 1,
    claimFor,
  };
}

function step(sessionId: string, token: number, n: number): Change {
  const at = { id: n * 2, index: n };
  return {
    type: "commit_batch",
    sessionId,
    token,
    firstSeq: n * 2,
    records: [
      { type: "append_entry", seq: n * 2, id: n * 2, role: "user", hash: `h${n}` },
      { type: "start_timer", seq: n * 2 + 1, id: n * 2 + 1, fireAt: n },
    ],
    entries: [{ ...at, role: "user", turn: n, content: JSON.stringify({ n, text: "x".repeat(n % 700) }) }],
    consumed: [],
  };
}

/** Past every buffer of ours, so that what was said is said when the process is killed. */
function say(line: string): void {
  writeSync(1, `${line}\n`);
}
