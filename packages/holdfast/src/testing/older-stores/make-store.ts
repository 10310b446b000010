// Makes a store as an older build leaves it when its process is killed. Writes the store down as SQL, and one of its sessions as a file.
//
//   node packages/holdfast/src/testing/older-stores/make-store.ts BUILD sqlite|postgres
//
// BUILD is a checkout of the last commit with that schema version, installed. A store that is written down already is kept: it stands
// for what is out there. See README.md.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startServer, runSql } from "@holdfast/storage/postgres-testing";
import type { CreateSession } from "@holdfast/core";
import type * as Postgres from "@holdfast/storage/postgres";
import type * as Holdfast from "../../index.ts";
import { agentsOf, BUDGET, LARGE_INPUT, SESSIONS, WIDTH } from "./agents.ts";
import { dumpPostgres, dumpSqlite } from "./dump.ts";

type Kind = "sqlite" | "postgres";

/** The schema of our tables in the server that is started for it. */
const SCHEMA = "holdfast";
const ASK_EVERY_MS = 20;
const LEASE_MS = 60_000;

/** A build by its public interface. The types are today's: what is used of it has not changed. */
class Build {
  readonly root: string;

  constructor(root: string) {
    this.root = resolve(root);
  }

  holdfast(): Promise<typeof Holdfast> {
    return this.#load("packages/holdfast/src/index.ts") as Promise<typeof Holdfast>;
  }

  async open(kind: Kind, at: string): Promise<Holdfast.AgentStorage> {
    if (kind === "sqlite") return (await this.holdfast()).openSqliteStorage({ path: at });
    const postgres = (await this.#load("packages/storage/src/postgres/index.ts")) as typeof Postgres;
    return postgres.openPostgresStorage({ url: at, schema: SCHEMA });
  }

  #load(path: string): Promise<unknown> {
    return import(pathToFileURL(join(this.root, path)).href);
  }
}

await main(process.argv.slice(2));

async function main([root, kind, at]: readonly string[]): Promise<void> {
  if (root === undefined || (kind !== "sqlite" && kind !== "postgres"))
    throw new Error("usage: make-store.ts BUILD sqlite|postgres");
  const build = new Build(root);
  if (at === undefined) await make(build, kind);
  else await fill(build, kind, at);
}

async function make(build: Build, kind: Kind): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-older-"));
  const server = kind === "postgres" ? await startServer({ fsync: false }) : undefined;
  const at = server?.url ?? join(folder, "store.db");
  try {
    await fillAndDie(build, kind, at);
    const version = await versionOf(kind, at);
    const file = (ending: string) => fileURLToPath(new URL(`./${kind}-${version}${ending}`, import.meta.url));
    if (existsSync(file(".sql"))) throw new Error(`${file(".sql")} is kept: it is there already`);
    writeFileSync(file(".sql"), kind === "sqlite" ? dumpSqlite(at) : await dumpPostgres(at, SCHEMA));
    writeFileSync(file(".session.jsonl"), await exported(build, kind, at));
  } finally {
    await server?.stop();
    rmSync(folder, { recursive: true });
  }
}

async function versionOf(kind: Kind, at: string): Promise<number> {
  if (kind === "postgres") {
    const [row] = await runSql(at, `SELECT value FROM ${SCHEMA}.meta WHERE key = 'schema_version'`);
    return Number(row?.["value"]);
  }
  const database = new DatabaseSync(at, { readOnly: true });
  const row = database.prepare("PRAGMA user_version").get();
  database.close();
  return Number(row?.["user_version"]);
}

/** Have a process of the build fill the store, and kill it in the middle of a task. */
async function fillAndDie(build: Build, kind: Kind, at: string): Promise<void> {
  const args = ["--no-warnings", fileURLToPath(import.meta.url), build.root, kind, at];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close");
  const [said] = (await Promise.race([once(child.stdout, "data"), ended])) as [unknown];
  if (String(said) !== "filled\n") throw new Error(`the process that fills the store said ${String(said)}`);
  child.kill("SIGKILL");
  await ended;
}

async function exported(build: Build, kind: Kind, at: string): Promise<string> {
  const { createRuntime } = await build.holdfast();
  const storage = await build.open(kind, at);
  const runtime = createRuntime({ storage, owner: "exporter", development: false });
  let text = "";
  for await (const line of runtime.export(SESSIONS.listening)) text += line;
  await runtime.close();
  await storage.close();
  return text;
}

/** In a process of its own, which is killed when it has said that it is done. */
async function fill(build: Build, kind: Kind, at: string): Promise<void> {
  const holdfast = await build.holdfast();
  const begun = Promise.withResolvers<void>();
  let running = 0;
  const { brief, spender, asker, sleeper, listener, parent } = agentsOf(holdfast, async (label) => {
    if (!label.startsWith("wide")) return;
    if (++running === WIDTH) begun.resolve();
    await new Promise(() => {});
  });
  const storage = await build.open(kind, at);
  const runtime = holdfast.createRuntime({ storage, adopt: false, owner: "maker", development: false });
  const { reader } = storage;

  const ended = await runtime.start(brief, LARGE_INPUT, { sessionId: SESSIONS.ended });
  await ended.result();
  await runtime.start(asker, undefined, { sessionId: SESSIONS.question });
  await runtime.start(sleeper, undefined, { sessionId: SESSIONS.timer });
  await runtime.start(parent, undefined, { sessionId: SESSIONS.parent });
  await runtime.start(listener, undefined, { sessionId: SESSIONS.listening, budget: BUDGET });
  await runtime.signal(SESSIONS.listening, "later", { n: 7 }, { signalId: "sig-later" });
  await runtime.schedule({
    id: "nightly",
    cron: "0 3 * * *",
    timeZone: "UTC",
    signal: { sessionId: SESSIONS.listening, name: "night" },
  });
  await signalWhileNobodyRunsIt();
  // As a coordinator stores what a client starts: nobody runs it yet.
  const { flags, format } = (await reader.session(SESSIONS.ended))!;
  const agent = { name: brief.name, version: brief.version };
  const creation = { type: "create_session", agent, input: '"later"', seed: 1, flags, format } as const;
  await storage.commit([{ ...creation, sessionId: SESSIONS.queued }], Date.now());
  await storeLedger(creation);
  await runtime.start(spender, undefined, { sessionId: SESSIONS.hold, budget: BUDGET });
  await begun.promise;
  const waiting = [SESSIONS.timer, SESSIONS.parent, SESSIONS.child, SESSIONS.listening];
  for (const sessionId of waiting) await reaches(sessionId, "waiting");
  await reaches(SESSIONS.question, "input_required");
  process.stdout.write("filled\n");
  await sleep(60_000);

  /** A runtime brings the session to its wait and closes. Another one that knows no agent sends the signal. */
  async function signalWhileNobodyRunsIt(): Promise<void> {
    const other = holdfast.createRuntime({ storage, owner: "other", development: false });
    await other.start(listener, undefined, { sessionId: SESSIONS.signalled });
    await reaches(SESSIONS.signalled, "waiting");
    await other.close();
    const besides = holdfast.createRuntime({ storage, owner: "besides", development: false });
    await besides.signal(SESSIONS.signalled, "go", 1, { signalId: "sig-go" });
    await besides.close();
  }

  /** A document, an audited session that a runner leases, and a session that was deleted. */
  async function storeLedger(template: Omit<CreateSession, "sessionId">): Promise<void> {
    const now = Date.now();
    const change = { ...template, sessionId: SESSIONS.leased };
    const audit = { actor: "anna", action: "start", object: SESSIONS.leased };
    const document = { collection: "notes", id: "note-1", body: '{"text":"kept"}' };
    const put = await storage.commit([{ type: "put_document", ...document }], now).catch(() => undefined);
    if (put?.[0]?.status !== "done") return; // The first tables of SQLite have no place for any of this.
    await storage.commit([{ type: "audited", change, audit }], now);
    await storage.claim({ sessionId: SESSIONS.leased, owner: "runner", now, leaseMs: LEASE_MS });
    const sessionId = "ses-deleted";
    await storage.commit([{ ...template, sessionId }], now);
    await storage.commit([{ type: "request_cancel", sessionId, mode: "hard", graceMs: 0 }], now);
    await storage.commit([{ type: "delete_session", sessionId, subtree: "refuse" }], now);
  }

  async function reaches(sessionId: string, status: string): Promise<void> {
    while ((await reader.session(sessionId))?.status !== status) await sleep(ASK_EVERY_MS);
  }
}
