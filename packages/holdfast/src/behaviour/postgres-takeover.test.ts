// Processes of one host over one PostgreSQL database, of which some are killed or stopped. The death of a
// process is detected at once. The claims of any other process last until their time is up.
//
// No time is asserted. Right after each death, the dead process's time is extended by ten minutes, so that
// only its death explains what happens next.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createRuntime, type Runtime } from "@holdfast/runtime";
import { openPostgresStorage, type PostgresStorage } from "@holdfast/storage/postgres";
import { newSchema, runSql, sharedServerUrl } from "@holdfast/storage/postgres-testing";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { SESSION_ID, STEPS, stepping } from "../testing/stepping-agent.ts";

const PROGRAM = fileURLToPath(new URL("../testing/takeover-process.ts", import.meta.url));

let url: string;
let schema: string;

beforeEach(async () => {
  url = await sharedServerUrl();
  schema = newSchema();
});

interface Started {
  said(line: string): Promise<void>;
  send(signal: NodeJS.Signals): void;
  /** Kill it, and have it live by its time for ten minutes more. */
  die(): Promise<void>;
  readonly lines: readonly string[];
}

function start(how: "start" | "recover" | "resume", ...more: readonly string[]): Started {
  const child = spawn(process.execPath, ["--no-warnings", PROGRAM, url, schema, how, ...more], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines: string[] = [];
  const output = createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  const ended = once(child, "close");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return {
    lines,
    send: (signal) => void child.kill(signal),
    said: async (line) => {
      while (!lines.includes(line)) await Promise.race([once(output, "line"), failAfter(ended, line)]);
    },
    die: async () => {
      child.kill("SIGKILL");
      await ended;
      await setSilentFor("-10 minutes");
    },
  };
}

async function failAfter(ended: Promise<unknown>, line: string): Promise<void> {
  await ended;
  throw new Error(`the process ended before it said "${line}"`);
}

/** Make all instances look silent for an interval; live instances report again within seconds. */
async function setSilentFor(interval: string): Promise<void> {
  await runSql(url, `UPDATE ${schema}.instance SET said_at = now() - interval '${interval}'`);
}

async function openHere(): Promise<PostgresStorage> {
  const storage = await openPostgresStorage({ url, schema });
  onTestFinished(() => storage.close());
  return storage;
}

/** A runtime of this process. Its steps end at once, and are told. */
function runHere(storage: PostgresStorage): { readonly runtime: Runtime; readonly steps: number[] } {
  const steps: number[] = [];
  const agent = stepping({ onStep: (n) => steps.push(n), last: async () => undefined });
  const runtime = createRuntime({ storage, agents: [agent] });
  onTestFinished(() => runtime.close());
  return { runtime, steps };
}

/** Which of several goes on with it does not matter. */
async function completed(storage: PostgresStorage): Promise<void> {
  const isCompleted = async () => (await storage.reader.session(SESSION_ID))?.status === "completed";
  await vi.waitUntil(isCompleted, { timeout: 30_000, interval: 50 });
}

/** Each step is recorded as done once, and the last one lost one attempt. */
async function expectEachOnce(storage: PostgresStorage): Promise<void> {
  const session = await storage.reader.session(SESSION_ID);
  expect(session).toMatchObject({ status: "completed" });
  const records = await storage.reader.journal(SESSION_ID, 0, 1_000);
  expect(records.map(({ seq }) => seq)).toEqual(records.map((_, seq) => seq));
  expect(records.filter(({ type }) => type === "task_completed")).toHaveLength(STEPS);
}

const LAST = [STEPS - 1];

test(
  "a live process goes on at once with what a killed one ran, and only one of several does",
  ofCampaign,
  async () => {
    const storages = [await openHere(), await openHere(), await openHere()] as const;
    const others = storages.map(runHere);
    const killed = start("start");
    await killed.said("hanging");
    await killed.die();
    await completed(storages[0]);
    expect(others.flatMap(({ steps }) => steps)).toEqual(LAST);
    await expectEachOnce(storages[0]);
  },
);

test(
  "a process that goes on for a killed one is killed as well, and so is the next",
  ofCampaign,
  async () => {
    for (const how of ["start", "recover", "resume", "recover"] as const) {
      const killed = start(how);
      await killed.said("hanging");
      // Nothing that was committed runs again.
      const steps = killed.lines.filter((line) => line.startsWith("step"));
      expect(steps).toHaveLength(how === "start" ? STEPS : 1);
      await killed.die();
    }
    const storage = await openHere();
    const { runtime, steps } = runHere(storage);
    expect(await runtime.recover()).toEqual([SESSION_ID]);
    expect(await runtime.handle(SESSION_ID).result()).toBe("done");
    expect(steps).toEqual(LAST);
    await expectEachOnce(storage);
  },
);

test("nothing of a dead process stays on the host or among the instances", ofCampaign, async () => {
  const killed = start("start");
  await killed.said("hanging");
  const [row] = await runSql(url, `SELECT presence FROM ${schema}.instance`);
  await killed.die();
  const storage = await openHere();
  await storage.due({ now: 0, limit: 1 });
  expect(await runSql(url, `SELECT instance FROM ${schema}.instance`)).toEqual([]);
  expect(existsSync((JSON.parse(row!["presence"] as string) as { socket: string }).socket)).toBe(false);
});

test("a stopped process keeps its claim until its time is up, and is fenced when it goes on", async () => {
  const stopped = start("start");
  await stopped.said("hanging");
  const storage = await openHere();
  const { runtime, steps } = runHere(storage);
  stopped.send("SIGSTOP");
  await setSilentFor("-10 minutes");
  const again = { sessionId: SESSION_ID, owner: "other", now: 0, leaseMs: 1_000 };
  const looks = storage.statementCount;
  await vi.waitUntil(() => storage.statementCount > looks + 20, { timeout: 30_000 });
  expect(await storage.claim(again)).toMatchObject({ status: "busy" });
  expect(await runtime.recover()).toEqual([]);
  expect(steps).toEqual([]);

  // Longer ago than anybody is waited for, and than the server is up.
  await runSql(url, `UPDATE ${schema}.instance SET said_at = '-infinity'`);
  expect(await runtime.recover()).toEqual([SESSION_ID]);
  expect(await runtime.handle(SESSION_ID).result()).toBe("done");
  expect(steps).toEqual(LAST);
  stopped.send("SIGUSR2");
  stopped.send("SIGCONT");
  await stopped.said("failed session_claimed");
  await expectEachOnce(storage);
});

test(
  "a step that blocks its process for longer than a silent process is waited for keeps its session",
  ofCampaign,
  async () => {
    const storage = await openHere();
    const blocked = start("start", "25");
    await blocked.said("blocking");
    const { runtime, steps } = runHere(storage); // Earlier it could claim the new session itself.
    await Promise.race([
      blocked.said("result done"),
      vi.waitUntil(() => steps.length > 0, { timeout: 60_000 }),
    ]);
    expect(await runtime.recover()).toEqual([]);
    expect(steps).toEqual([]);
    await expectEachOnce(storage);
  },
);
