// A process of its own that uses a storage, to be watched and killed by tests.
//
//   hold PATH             own the database, say `ready`, and close when stdin ends
//   own PATH              own the database, say `ready` or the code of what refused it, and close
//   commit PATH COUNT     own it, and commit groups of steps; after each, say `ack N` on stdout
//   die PATH COUNT        the same, and then kill itself, as a kill from outside may come too late
//   unsynced PATH COUNT   `commit` with synchronous=OFF, so that a test can see a missing sync
//
// Each group N is one batch for every session of `SESSIONS`, and an entry that says N.

import { writeSync } from "node:fs";
import { HoldfastError, type Change } from "@holdfast/core";
import { openForWriting } from "../file/database.ts";
import { openSqliteStorage } from "../open.ts";
import { SqliteStorage } from "../engine/sqlite-storage.ts";

export const SESSIONS = ["ses-1", "ses-2", "ses-3"];

if (process.argv[2] !== undefined) await main(process.argv.slice(2));

async function main([mode, path = "", count]: readonly string[]): Promise<void> {
  if (mode === "own") return own(path);
  const storage = mode === "unsynced" ? openUnsynced(path) : await openSqliteStorage({ path });
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
    const storage = await openSqliteStorage({ path });
    say("ready");
    await storage.close();
  } catch (error) {
    say(HoldfastError.is(error) ? error.code : String(error));
  }
}

function openUnsynced(path: string): SqliteStorage {
  const driver = openForWriting(path, true);
  driver.exec("PRAGMA synchronous = OFF");
  return new SqliteStorage({ driver, path });
}

async function commitGroups(storage: SqliteStorage, groups: number): Promise<void> {
  const creating = SESSIONS.map((sessionId): Change => {
    const agent = { name: "agent", version: "1" };
    const claimFor = { owner: "test", leaseMs: Infinity };
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
  });
  const created = await storage.commit(creating, 0);
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
