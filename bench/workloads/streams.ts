// W9: 1,000 readers of event streams with 1,000 events a second in all. It measures the time from commit to
// reader and the cost of a reader. It also measures idle readers, and readers that do not read.
//
// Each reader has a session. This process commits records over HTTP, ten at a time, so ten readers share a
// commit. The coordinator's process notes the time of the commit, so the request is not in the time. A commit
// waits only for the previous commit of the same session, so a slow coordinator gets the same load.

import { JOURNAL_FORMAT, type AgentStorage, type Change, type JournalRecord } from "@holdfast/core";
import { openRemoteStorage } from "@holdfast/storage/remote";
import { startChild, type Child } from "../child.ts";
import { withFleet, type Fleet } from "../fleet.ts";
import { assertDone, median, nowMs, percentile } from "../measure.ts";
import type { Measured } from "../line.ts";
import type { Bench, Workload } from "../workload.ts";

const GROUP = 10;
const P50_GOAL_MS = 2;
const P99_GOAL_MS = 10;
const BYTES_GOAL = 64 * 1024;
const LEASE_MS = 3_600_000;
/**
 * Readers that read nothing, of a session that is many times what two kernels hold for a socket; they are
 * stuck after so long.
 */
const STUCK = 20;
const STUCK_MS = 2_000;
const LONG = "ses_long";
const LONG_BATCHES = 8;
const LONG_BATCH = { records: 6, chars: 500_000 };

const IDLE_MS = 5_000;

export interface ReadersOptions {
  readonly url: string;
  readonly token: string;
  readonly sessionIds: readonly string[];
}

export const streams: Workload = {
  id: "W9",
  title: "event streams: readers by the thousand",
  async *run(bench) {
    const few = await measureIdle(bench, bench.size(1_000, 10));
    yield few.line;
    if (!bench.isQuick) yield (await measureIdle(bench, 5_000, few)).line;
    const readers = bench.size(1_000, 20);
    const perSecond = bench.size(1_000, 100);
    const { alone, beside, rssBytes, heapBytes, bytesPerStuck } = await measure(bench, readers, perSecond);
    const variant = `${readers.toLocaleString("en-US")} readers, ${perSecond.toLocaleString("en-US")} events/s`;
    yield {
      ...lineOf(beside, perSecond),
      variant: `${variant}, beside ${bench.size(STUCK, 2)} that do not read`,
      more: { ...moreOf(beside), reachableBytesPerReaderThatDoesNot: bytesPerStuck },
    };
    const line = lineOf(alone, perSecond);
    yield {
      ...line,
      variant,
      goal: `${line.goal}, <= ${BYTES_GOAL / 1024} KiB per reader`,
      isGoalMet: line.isGoalMet && rssBytes <= BYTES_GOAL,
      more: { ...moreOf(alone), rssBytesPerReader: rssBytes, heapBytesPerReader: heapBytes },
    };
  },
};

/** A time in which events were committed. */
interface Span {
  readonly delayMs: readonly number[];
  readonly eventsPerSecond: number;
  readonly coordinatorCpuPart: number;
}

function lineOf({ delayMs, eventsPerSecond }: Span, perSecond: number) {
  const [p50Ms, p99Ms] = [median(delayMs), percentile(delayMs, 0.99)];
  return {
    unit: "ms",
    value: p50Ms,
    p50Ms,
    p99Ms,
    goal: `p50 <= ${P50_GOAL_MS} ms, p99 <= ${P99_GOAL_MS} ms`,
    // At a lower rate than was asked for nothing is met.
    isGoalMet: eventsPerSecond >= 0.95 * perSecond && p50Ms <= P50_GOAL_MS && p99Ms <= P99_GOAL_MS,
  };
}

function moreOf({ eventsPerSecond, coordinatorCpuPart }: Span): Readonly<Record<string, number>> {
  return { eventsPerSecond, coordinatorCpuPart };
}

interface Idle {
  readonly watchers: number;
  readonly rss: number;
  readonly line: Measured;
}

/** Nothing happens to any session: what looking costs. */
async function measureIdle(bench: Bench, watchers: number, fewer?: Idle): Promise<Idle> {
  const ms = bench.size(IDLE_MS, 300);
  return withFleet(bench, { runners: 0, notes: "records" }, async (fleet) => {
    const { url, adminToken: token } = fleet;
    const storage = openRemoteStorage({ url, token });
    const sessionIds = namesOf(watchers);
    await createSessions(storage, sessionIds);
    const child = startChild("readers", { url, token, sessionIds } satisfies ReadersOptions);
    try {
      await child.next("open");
      await wait(1_000); // Lets the work of opening them end.
      const before = await fleet.report();
      await wait(ms);
      const { cpuMicros, rss } = await fleet.report();
      const cpuPart = (cpuMicros - before.cpuMicros) / 1_000 / ms;
      const rssBytes = fewer && (rss - fewer.rss) / (watchers - fewer.watchers);
      return {
        watchers,
        rss,
        line: {
          variant: `${watchers.toLocaleString("en-US")} readers, no events`,
          unit: "% CPU",
          value: cpuPart * 100,
          more: {
            cpuMicrosPerReaderAndSecond: (cpuPart * 1e6) / watchers,
            ...(rssBytes === undefined ? {} : { rssBytesPerFurtherReader: rssBytes }),
          },
        },
      };
    } finally {
      await child.kill();
      await storage.close();
    }
  });
}

function namesOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `ses_watched-${String(i).padStart(5, "0")}`);
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function measure(bench: Bench, readers: number, perSecond: number) {
  return withFleet(bench, { runners: 0, notes: "records" }, async (fleet) => {
    const { url, adminToken: token } = fleet;
    const storage = openRemoteStorage({ url, token });
    const sessionIds = namesOf(readers);
    const producer = new Producer(storage, await createSessions(storage, sessionIds));
    await producer.produce(perSecond, bench.size(1_000, 200)); // Compiles code and fills caches before the readers come.
    const before = await fleet.report();
    const child = startChild("readers", { url, token, sessionIds } satisfies ReadersOptions);
    try {
      await child.next("open");
      await allSeen(child, producer.count);
      const open = await fleet.report();
      const span = async (): Promise<Span> => {
        const begun = await fleet.report();
        const startedAt = nowMs();
        const first = producer.count;
        await producer.produce(perSecond, bench.size(10_000, 500));
        const ms = nowMs() - startedAt;
        const seen = await allSeen(child, producer.count - first);
        const after = await fleet.report();
        return {
          delayMs: delaysOf(after, seen),
          eventsPerSecond: ((producer.count - first) * 1_000) / ms,
          coordinatorCpuPart: (after.cpuMicros - begun.cpuMicros) / 1_000 / ms,
        };
      };
      const alone = await span();
      const stuck = bench.size(STUCK, 2);
      await createLong(storage);
      const unstuck = await fleet.report();
      child.send({ stuck, sessionId: LONG });
      await wait(bench.size(STUCK_MS, 200));
      const isStuck = await fleet.report();
      return {
        alone,
        beside: await span(),
        rssBytes: Math.max(0, open.rss - before.rss) / readers,
        heapBytes: Math.max(0, open.reachable - before.reachable) / readers,
        bytesPerStuck: (isStuck.reachable - unstuck.reachable) / stuck,
      };
    } finally {
      await child.kill();
      await storage.close();
    }
  });
}

type Seen = readonly (readonly [key: string, at: number])[];

/** Waits until as many more were seen. */
async function allSeen(child: Child, count: number): Promise<Seen> {
  const all: (readonly [string, number])[] = [];
  while (all.length < count) {
    child.send({});
    all.push(...((await child.next("seen"))["seen"] as Seen));
    await wait(20);
  }
  assertDone("events that were seen", all.length, count);
  return all;
}

function delaysOf({ noted }: Awaited<ReturnType<Fleet["report"]>>, seen: Seen): readonly number[] {
  const storedAt = new Map(noted);
  return seen.map(([key, at]) => at - (storedAt.get(key) ?? Number.NaN));
}

/** A session whose journal has some 24 MB. */
async function createLong(storage: AgentStorage): Promise<void> {
  const [session] = await createSessions(storage, [LONG]);
  const payload = JSON.stringify("x".repeat(LONG_BATCH.chars));
  for (let i = 0; i < LONG_BATCHES; i++) {
    const firstSeq = i * LONG_BATCH.records;
    const records = Array.from({ length: LONG_BATCH.records }, (_, n) => eventOf(firstSeq + n, payload));
    const batch = {
      type: "commit_batch",
      ...session!,
      firstSeq,
      records,
      entries: [],
      consumed: [],
    } as const;
    const [result] = await storage.commit([batch], Date.now());
    assertDone("what became of a long batch", result?.status, "committed");
  }
}

function eventOf(seq: number, payload: string): JournalRecord {
  return { type: "schedule_task", seq, id: seq, kind: "event", hash: "0", payload };
}

/** Claimed as they are made. Answers their tokens. */
async function createSessions(
  storage: AgentStorage,
  sessionIds: readonly string[],
): Promise<readonly { readonly sessionId: string; readonly token: number }[]> {
  const changes = sessionIds.map(
    (sessionId) =>
      ({
        type: "create_session",
        sessionId,
        agent: { name: "watched", version: "1" },
        input: undefined,
        seed: 1,
        flags: 0,
        format: JOURNAL_FORMAT,
        claimFor: { owner: "bench", leaseMs: LEASE_MS },
      }) satisfies Change,
  );
  const results = await storage.commit(changes, Date.now());
  return results.map((result, i) => {
    if (result.status !== "created" || result.token === undefined)
      throw new Error(`a session was not made: ${result.status}`);
    return { sessionId: sessionIds[i]!, token: result.token };
  });
}

/** Commits records to sessions in turns. */
class Producer {
  readonly #storage: AgentStorage;
  readonly #sessions: readonly { readonly sessionId: string; readonly token: number }[];
  /** Records committed so far. */
  count = 0;

  constructor(
    storage: AgentStorage,
    sessions: readonly { readonly sessionId: string; readonly token: number }[],
  ) {
    this.#storage = storage;
    this.#sessions = sessions;
  }

  /** At this rate, for so long. */
  async produce(perSecond: number, ms: number): Promise<void> {
    const groups = Math.floor((perSecond * ms) / 1_000 / GROUP);
    const groupMs = (GROUP * 1_000) / perSecond;
    // The number of groups until the same sessions follow again.
    const apart = Math.max(1, Math.floor(this.#sessions.length / GROUP));
    const sent: Promise<void>[] = [];
    const startedAt = nowMs();
    for (let i = 0; i < groups; i++) {
      const early = startedAt + i * groupMs - nowMs();
      if (early > 0) await wait(early);
      await sent[i - apart];
      sent.push(this.#commitGroup());
    }
    await Promise.all(sent);
  }

  async #commitGroup(): Promise<void> {
    const changes = Array.from({ length: GROUP }, () => this.#next());
    const results = await this.#storage.commit(changes, Date.now());
    assertDone("events that were stored", [...new Set(results.map(({ status }) => status))], ["committed"]);
  }

  #next(): Change {
    const { sessionId, token } = this.#sessions[this.count % this.#sessions.length]!;
    const seq = Math.floor(this.count / this.#sessions.length);
    this.count++;
    return {
      type: "commit_batch",
      sessionId,
      token,
      firstSeq: seq,
      records: [eventOf(seq, '{"event":true}')],
      entries: [],
      consumed: [],
    };
  }
}
