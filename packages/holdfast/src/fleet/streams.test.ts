// V1 and session-watch-1 over real processes: event streams are cut off at any place, many times, while the
// coordinator is killed under their readers.
//
// HOLDFAST_RECONNECTS sets how often; `npm test` takes a few, `npm run campaign -- streams` ten thousand.

import { defined } from "@holdfast/core";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { EventReader } from "@holdfast/testkit/event-reader";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startCoordinator, type CoordinatorProcess } from "../testing/fleet-processes.ts";
import { Project } from "../testing/holdfast-process.ts";

const RECONNECTS = Number(process.env["HOLDFAST_RECONNECTS"] ?? 40);
const SESSIONS = Math.min(4, Math.ceil(RECONNECTS / 20));
const READERS = 4 * SESSIONS;
/** The coordinator is ended, one time by a kill and the next time asked to, after each so many. */
const RECONNECTS_PER_LIFE = 250;
const EVENT_EVERY_MS = 5;
const AGAIN_MS = 20;
/** A connection is cut after at most so many events, or so many bytes. */
const EVENTS_MAX = 15;
const BYTES_MAX = 6_000;

let project: Project;
let coordinator: CoordinatorProcess;
let proxy: Server;
let reconnects: number;
/** The first event that a reader should not have received. */
let problem: Error | undefined;

beforeEach(async () => {
  project = new Project({ eachAsProcess: true });
  coordinator = await startCoordinator(project);
  proxy = await startCuttingProxy(Number(new URL(coordinator.url).port));
  reconnects = 0;
  problem = undefined;
});
afterEach(async () => {
  proxy.close();
  await project.dispose();
});

test(
  `V1, session-watch-1: ${RECONNECTS} reconnects, by readers, in the middle of an event, or at the coordinator's end, leave no gap, repeat nothing and invent nothing`,
  { timeout: 60_000 + RECONNECTS * 1_000 },
  async () => {
    const sessionIds = Array.from({ length: SESSIONS }, (_, i) => `ses_cut-${i}`);
    const tokens = await create(sessionIds);
    const writers = sessionIds.map((sessionId, i) => new Writer(sessionId, tokens[i]!));
    const writing = writers.map((writer) => writer.write());
    const readers = Array.from({ length: READERS }, (_, i) => {
      const sessionId = sessionIds[i % SESSIONS]!;
      return { sessionId, ...beginReading(sessionId) };
    });

    const haveBeen = (count: number): boolean => reconnects >= count;
    for (let life = 1; !haveBeen(RECONNECTS); life++) {
      const enough = Math.min(RECONNECTS, reconnects + RECONNECTS_PER_LIFE);
      while (!haveBeen(enough)) await wait(AGAIN_MS);
      if (problem !== undefined) throw problem;
      await restart(life % 2 === 1 ? "SIGKILL" : "SIGTERM");
    }
    for (const writer of writers) writer.end();
    await Promise.all(writing);

    for (const { sessionId, reader, reading } of readers) {
      await reading;
      const expected = await journal(sessionId);
      expect(reader.records.length, `events that a reader of ${sessionId} was told`).toBe(expected.length);
      expect(reader.records.findIndex((record, seq) => record !== expected[seq])).toBe(-1);
    }
    for (const { sessionId, acknowledged } of writers) {
      const records = await journal(sessionId);
      expect(records.length).toBeGreaterThan(0);
      for (const [seq, record] of acknowledged) expect(records[seq]).toBe(record); // H1.
    }
  },
);

/** Reads to the session's end, whatever comes in between. */
function beginReading(sessionId: string): { readonly reader: EventReader; readonly reading: Promise<void> } {
  let left = Infinity;
  const reader: EventReader = new EventReader({
    ...coordinator, // Its address and its token outlive it.
    token: coordinator.adminToken,
    sessionId,
    onRecord: () => {
      if (left-- <= 0) reader.cut();
    },
  });
  const read = async (): Promise<void> => {
    for (;;) {
      const isOver = reconnects >= RECONNECTS;
      const isCutByOther = Math.random() < 0.5;
      left = isOver || isCutByOther ? Infinity : drawn(EVENTS_MAX);
      const end = await reader.read(
        isOver || !isCutByOther ? undefined : (proxy.address() as AddressInfo).port,
      );
      if (end === "ended") return;
      if (end === "cut") reconnects++;
      else await wait(AGAIN_MS);
    }
  };
  const reading = read().catch((error: Error) => {
    problem ??= error;
    reconnects = RECONNECTS;
  });
  return { reader, reading };
}

/** Commits events to a session, each once, although it may not hear what became of one. */
class Writer {
  readonly sessionId: string;
  readonly #token: number;
  readonly acknowledged = new Map<number, string>();
  #isOver = false;

  constructor(sessionId: string, token: number) {
    this.sessionId = sessionId;
    this.#token = token;
  }

  end(): void {
    this.#isOver = true;
  }

  async write(): Promise<void> {
    // Each try is another record: what was shown and then not committed would be another one than the
    // journal's.
    for (let seq = 0, tries = 0; ; tries++) {
      const record = { type: "warned", seq, at: tries, message: "x".repeat(drawn(500)) };
      const isLast = this.#isOver;
      const session = isLast ? { session: { status: "completed", waits: [] } } : {};
      const status = await commit([
        {
          type: "commit_batch",
          sessionId: this.sessionId,
          token: this.#token,
          firstSeq: seq,
          records: [record],
          entries: [],
          consumed: [],
          ...session,
        },
      ]).then(
        ([result]) => result?.status,
        () => "unknown",
      );
      if (status === "committed") this.acknowledged.set(seq, JSON.stringify(record));
      // The one before was stored, and nobody could say so.
      if (status === "committed" || status === "invalid") seq++;
      if (isLast && status === "committed") return;
      await wait(status === "unknown" ? AGAIN_MS : EVENT_EVERY_MS);
    }
  }
}

async function restart(signal: NodeJS.Signals): Promise<void> {
  coordinator.process.kill(signal);
  await coordinator.process.finished;
  coordinator = await startCoordinator(project, { port: Number(new URL(coordinator.url).port) });
}

/** Each connection ends after so many bytes of what is answered, wherever that is. */
async function startCuttingProxy(port: number): Promise<Server> {
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    let left = drawn(BYTES_MAX);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const)
      one.on("error", () => {}).on("close", () => other.destroy());
    near.on("data", (bytes) => far.write(bytes));
    far.on("data", (bytes) => {
      near.write(bytes.subarray(0, left));
      left -= bytes.length;
      if (left <= 0) near.destroySoon();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

async function create(sessionIds: readonly string[]): Promise<readonly number[]> {
  const results = await commit(
    sessionIds.map((sessionId) => ({
      type: "create_session",
      sessionId,
      agent: { name: "written", version: "1" },
      seed: 1,
      flags: 0,
      format: 1,
      claimFor: { owner: "writer", leaseMs: 3_600_000 },
    })),
  );
  return results.map(({ token }) => token!);
}

async function commit(
  changes: readonly object[],
): Promise<readonly { readonly status: string; readonly token?: number }[]> {
  const answer = await ask("POST", "storage/commit", JSON.stringify({ changes }));
  return answer["results"] as { status: string; token?: number }[];
}

/** As storage has it: each record as JSON. */
async function journal(sessionId: string): Promise<readonly string[]> {
  const records: string[] = [];
  for (;;) {
    const page = await ask("GET", `sessions/${sessionId}/events?fromSeq=${records.length}&limit=500`);
    const found = page["records"] as readonly unknown[];
    if (found.length === 0) return records;
    records.push(...found.map((record) => JSON.stringify(record)));
  }
}

async function ask(method: string, path: string, body?: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${coordinator.url}/v1/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${coordinator.adminToken}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...defined({ body }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} was answered ${response.status}: ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

/** A whole number from 0 to below this. */
function drawn(below: number): number {
  return Math.floor(Math.random() * below);
}
