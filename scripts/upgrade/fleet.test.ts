// An upgrade of a fleet over PostgreSQL with sessions in flight. Today's version is the packed one, and the next
// one is planted (`next-version.ts`). The fleet is killed and replaced as a whole, or one process after the
// other. Nothing is lost or done twice, and questions keep their ids.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VERSION } from "@holdfast/core";
import { newSchema, runSql, sharedServerUrl } from "@holdfast/storage/postgres-testing";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { call } from "../../packages/holdfast/src/testing/coordinator-process.ts";
import { registrationToken, startSession } from "../../packages/holdfast/src/testing/coordinator-client.ts";
import { ExternalProject } from "../../packages/holdfast/src/testing/external-project.ts";
import {
  startCoordinator,
  startRunnerProcess,
  type CoordinatorProcess,
} from "../../packages/holdfast/src/testing/fleet-processes.ts";
import type { HoldfastProcess } from "../../packages/holdfast/src/testing/holdfast-process.ts";
import { NEXT_NUMBER, nextVersion } from "./next-version.ts";

/** Longer than a machine with much other work keeps a process from running, so that only kills end a lease. */
const LEASE_MS = 45_000;
/** Longer than a test waits for anything, so that no session goes on because a lease has passed. */
const ROLLING_LEASE_MS = 1_200_000;
const PATIENCE = { timeout: 300_000, interval: 500 };
const TIMEOUT = { ...ofCampaign, timeout: 1_200_000 };

const AGENTS = `import { appendFileSync, existsSync } from "node:fs";
import { defineAgent, defineTask, local, PauseError } from "holdfast";
const done = (ctx, what) =>
  ctx.run(what, () => appendFileSync("effects.txt", ctx.sessionId + " " + what + "\\n"), { effect: "once" });
const agent = (name, body, more = {}) =>
  defineAgent({ name, ...more, run: async (ctx) => {
    await done(ctx, "before");
    const output = await body(ctx);
    await done(ctx, "after");
    return output;
  } });
export const question = agent("question", (ctx) => ctx.requestInput("Which?", { answer: "any" }));
export const approval = agent("approval", async (ctx) => (await ctx.requestInput("Deploy?", { answer: "approval" })).approved);
export const waits = agent("waits", (ctx) => ctx.waitForSignal("go"));
export const child = agent("child", (ctx) => ctx.waitForChild(ctx.spawnAgent(local(waits), null)), { agents: [waits] });
export const timer = agent("timer", async (ctx) => { await ctx.sleep(60_000); return "woken"; });
export const step = agent("step", (ctx) => ctx.run("slow", async () => {
  appendFileSync("slow.txt", "begun\\n");
  while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 50));
  return "stepped";
}, { effect: "read" }));
const limited = defineTask({ name: "limited", run: () => {
  appendFileSync("limits.txt", "asked\\n");
  if (existsSync("go")) return "served";
  throw new PauseError("quota_exceeded", "the plan is used up", {
    pause: { reason: "quota", pool: "plan", resetsAt: Date.now() + 30_000, resumeAtReset: true } });
} });
export const quota = agent("quota", (ctx) => ctx.scheduleTask(limited, null), { tasks: [limited] });
export const queued = agent("queued", (ctx) => ctx.scheduleTask("elsewhere", 20));
export const tick = defineAgent({ name: "tick", run: async (ctx) => ctx.run("tick", () => "ticked") });
`;
const TASKS = `import { appendFileSync } from "node:fs";
import { defineTask } from "holdfast";
export const elsewhere = defineTask({ name: "elsewhere", run: (n, { sessionId }) => {
  appendFileSync("effects.txt", sessionId + " elsewhere\\n");
  return n + 1;
} });
`;

/** The command that ends the wait of each kind of session, and its output. */
const WAITS: Readonly<Record<string, { readonly unblock?: readonly string[]; readonly output: unknown }>> = {
  question: { unblock: ["answer", '"left"'], output: "left" },
  approval: { unblock: ["approve"], output: true },
  waits: { unblock: ["signal", "go", "7"], output: 7 },
  child: { output: 8 },
  timer: { output: "woken" },
  step: { output: "stepped" },
  quota: { output: "served" },
  queued: { output: 21 },
};
const PROGRAM = "step:p-1 gate:p-0 step:p-2";

interface Shown {
  readonly sessionId: string;
  readonly status: string;
  readonly agent: string;
  readonly parentSessionId?: string;
}

let folder: string;
let next: string;
let project: ExternalProject;
let database: string;
let storage: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-next-"));
  next = nextVersion(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(async () => {
  project = new ExternalProject();
  project.write("agents.ts", AGENTS);
  project.write("tasks.ts", TASKS);
  database = newSchema();
  const server = await sharedServerUrl();
  await runSql(server, `CREATE DATABASE ${database}`);
  const url = new URL(server);
  url.pathname = `/${database}`;
  storage = url.href;
});
afterEach(async () => {
  await project.dispose();
  await runSql(await sharedServerUrl(), `DROP DATABASE ${database} WITH (FORCE)`);
});

const lines = (file: string): readonly string[] =>
  existsSync(project.path(file)) ? readFileSync(project.path(file), "utf8").trimEnd().split("\n") : [];

type Version = { readonly launcher?: string };
const TODAY: Version = {};
const ofNext = (): Version => ({ launcher: next });

const coordinatorOf = (version: Version, leaseMs = LEASE_MS, port = 0): Promise<CoordinatorProcess> =>
  startCoordinator(project, { ...version, storage, port, leaseMs });

/** Stops a coordinator and starts one of the next version in its place. */
async function upgraded({ process, url }: CoordinatorProcess): Promise<CoordinatorProcess> {
  await stop(process);
  return coordinatorOf(ofNext(), ROLLING_LEASE_MS, Number(new URL(url).port));
}

function runnerOf(
  version: Version,
  coordinator: CoordinatorProcess,
  name: string,
  args: readonly string[] = ["--agents", "agents.ts", "codex", "--grace", "1s"],
): Promise<HoldfastProcess> {
  return startRunnerProcess(project, coordinator, name, args, { ...version, env: project.environment() });
}

const ask = (at: CoordinatorProcess, path: string, body?: unknown) => call(at.url, at.adminToken, path, body);

const shown = (at: CoordinatorProcess, id: string): Promise<Shown> => ask(at, `sessions/${id}`);

/** A command of a version, at a coordinator. */
async function command(version: Version, at: CoordinatorProcess, ...args: readonly string[]) {
  const env = { ...project.environment(), HOLDFAST_URL: at.url, HOLDFAST_TOKEN: at.adminToken };
  const finished = await project.finish(args, { ...version, env });
  expect(finished.code, `${args.join(" ")}: ${finished.stderr}`).toBe(0);
  return finished.stdout;
}

/** The ids of the questions that wait for a person, which today's and the next command both show. */
async function questions(version: Version, at: CoordinatorProcess): Promise<readonly string[]> {
  const { items } = JSON.parse(await command(version, at, "inbox", "--json")) as {
    readonly items: readonly { readonly id: string; readonly kind: string }[];
  };
  return items.flatMap(({ kind, id }) => (kind === "pause" ? [] : `${kind} ${id}`)).toSorted();
}

/** One session of each kind, by its kind, and a schedule: all of them wait. */
async function startWaiting(at: CoordinatorProcess): Promise<ReadonlyMap<string, string>> {
  const ids = new Map<string, string>();
  for (const kind of Object.keys(WAITS)) ids.set(kind, await startSession(at, { agent: kind }));
  ids.set("codex", await startSession(at, { agent: "codex", input: { text: PROGRAM } }));
  await fetch(`${at.url}/v1/schedules/ticks`, {
    method: "PUT",
    headers: { authorization: `Bearer ${at.adminToken}`, "content-type": "application/json" },
    body: JSON.stringify({ cron: "*/20 * * * * *", start: { agent: "tick" } }),
  });
  const statuses = {
    question: "input_required",
    approval: "input_required",
    waits: "waiting",
    child: "waiting",
    timer: "waiting",
    step: "working",
    codex: "working",
  };
  await vi.waitFor(async () => {
    for (const [kind, status] of Object.entries(statuses))
      expect(await shown(at, ids.get(kind)!), kind).toMatchObject({ status });
    expect(lines("slow.txt"), "a step is at work").toEqual(["begun"]);
    expect((await sessions(at)).map(({ agent }) => agent)).toContain("task:elsewhere");
    expect(lines("gates"), "the program is in the middle of its turn").toEqual(["p-0"]);
    expect(await childOf(at, ids.get("child")!)).toMatchObject({ status: "waiting" });
    expect(lines("limits.txt")).not.toEqual([]);
    expect(await ticks(at)).not.toEqual([]);
  }, PATIENCE);
  return ids;
}

async function sessions(at: CoordinatorProcess): Promise<readonly Shown[]> {
  const { sessions: all } = await ask(at, "sessions?limit=200");
  return all as readonly Shown[];
}
const ticks = async (at: CoordinatorProcess): Promise<readonly Shown[]> =>
  (await sessions(at)).filter(({ agent }) => agent === "tick");
const childOf = async (at: CoordinatorProcess, id: string): Promise<Shown | undefined> =>
  (await sessions(at)).find(({ parentSessionId }) => parentSessionId === id);

/** Ends each wait by a command, and expects that each session ends, with each effect once. */
async function expectContinued(
  version: Version,
  at: CoordinatorProcess,
  ids: ReadonlyMap<string, string>,
  unblocked: ReadonlySet<string> = new Set(),
): Promise<void> {
  project.write("go", "");
  project.write("open-0", "");
  for (const [kind, { unblock: [verb, ...rest] = [] }] of Object.entries(WAITS))
    if (verb !== undefined && !unblocked.has(kind)) await command(version, at, verb, ids.get(kind)!, ...rest);
  const { sessionId } = (await childOf(at, ids.get("child")!))!;
  await ask(at, `sessions/${sessionId}/signals`, { name: "go", payload: 8 });
  for (const id of [...ids.values(), sessionId]) await becomes(at, id, "completed");
  for (const [kind, { output }] of Object.entries(WAITS))
    expect(await ask(at, `sessions/${ids.get(kind)!}/result`), kind).toMatchObject({ output });
  await ask(at, "schedules/ticks/pause", {});
  await vi.waitFor(async () => {
    for (const { status } of await sessions(at)) expect(status).toBe("completed");
  }, PATIENCE);
  expectOnce(
    [...ids]
      .filter(([kind]) => kind !== "codex")
      .map(([, id]) => id)
      .concat(sessionId),
  );
  expect(lines("effects.txt").filter((line) => line === `${ids.get("queued")} elsewhere`)).toHaveLength(1);
  expect(Object.fromEntries(project.steps())).toEqual({ "p-1": 1, "p-2": 1 });
}

/** Neither lost nor doubled. */
function expectOnce(ids: readonly string[]): void {
  const effects = lines("effects.txt");
  expect(new Set(effects).size, "an effect was done twice").toBe(effects.length);
  for (const id of ids) expect(effects).toEqual(expect.arrayContaining([`${id} before`, `${id} after`]));
}

describe("an upgrade of a fleet over PostgreSQL", () => {
  test(
    "sessions that wait in every way go on after all processes were killed and replaced, and today's version refuses the database",
    TIMEOUT,
    async () => {
      const first = await coordinatorOf(TODAY);
      const runner = await runnerOf(TODAY, first, "first");
      const ids = await startWaiting(first);
      const asked = await questions(TODAY, first);
      const check = ["upgrade", "--check", "--agents", "agents.ts", "codex"];
      expect(await command(ofNext(), first, ...check)).toContain(
        `would continue with Holdfast ${NEXT_NUMBER}`,
      );
      const early = (await ticks(first)).map(({ sessionId }) => sessionId);
      for (const process of [runner, first.process]) {
        process.kill("SIGKILL");
        await process.finished;
      }

      const at = await coordinatorOf(ofNext());
      expect(JSON.stringify(await ask(at, "version"))).toContain(NEXT_NUMBER);
      expect(await questions(ofNext(), at)).toEqual(asked);
      await runnerOf(ofNext(), at, "second");
      await runnerOf(ofNext(), at, "tasks", ["--tasks", "tasks.ts"]);
      await vi.waitFor(async () => {
        const after = (await ticks(at)).filter(({ sessionId }) => !early.includes(sessionId));
        expect(after.some(({ status }) => status === "completed")).toBe(true);
      }, PATIENCE);
      await expectContinued(ofNext(), at, ids);

      await expectRefused(at);
    },
  );

  test(
    "rolling, the coordinators go first: one of each version serve today's runners, and what the next one starts waits for a runner of its own",
    TIMEOUT,
    async () => {
      const first = await coordinatorOf(TODAY, ROLLING_LEASE_MS);
      const other = await coordinatorOf(TODAY, ROLLING_LEASE_MS);
      const runner = await runnerOf(TODAY, first, "today");
      const ids = await startWaiting(first);
      const asked = await questions(TODAY, first);
      const at = await upgraded(first);
      await runner.says("is back");
      for (const table of ["session", "state"])
        await runSql(storage, `UPDATE holdfast.${table} SET planted = 'of next'`);

      // The older coordinator, runner and command work on, over the tables of the next version.
      for (const [version, place] of [
        [TODAY, other],
        [TODAY, at],
        [ofNext(), at],
      ] as const)
        expect(await questions(version, place)).toEqual(asked);
      await command(TODAY, other, "answer", ids.get("question")!, '"left"');
      const late = await startSession(other, { agent: "tick" });
      await becomes(other, late, "completed");
      await becomes(other, ids.get("question")!, "completed");

      const newer = await startSession(at, { agent: "tick" });
      const spare = await runnerOf(TODAY, other, "spare");
      await expectLeftToNewer(newer, at, other);
      await runnerOf(ofNext(), at, "next");
      await becomes(at, newer, "completed");
      await runnerOf(TODAY, at, "tasks", ["--tasks", "tasks.ts"]);
      for (const process of [runner, spare, other.process]) await stop(process);
      await expectContinued(ofNext(), at, ids, new Set(["question"]));
      expect(await newerColumns(ids.values())).toEqual([{ planted: "of next", of_state: "of next" }]);
      await expectRefused(at);
    },
  );

  test(
    "rolling, a runner that goes first is refused, says what to upgrade first and changes nothing; after the coordinator it goes on",
    TIMEOUT,
    async () => {
      const first = await coordinatorOf(TODAY, ROLLING_LEASE_MS);
      const runner = await runnerOf(TODAY, first, "today");
      const id = await startSession(first, { agent: "approval" });
      await becomes(first, id, "input_required");
      const token = await registrationToken(first, "next");
      const start = (url: string) =>
        project.start(["runner", "-c", url, "--name", "next", "--agents", "agents.ts"], {
          ...ofNext(),
          env: { ...project.environment(), HOLDFAST_TOKEN: token },
        });
      const before = await contentOf(storage, ALWAYS_WRITTEN);
      const refused = start(first.url);
      await refused.says(/upgrade the coordinators first|waiting for runs/);
      expect(refused.stderr).not.toContain("waiting for runs");
      const { code, stderr } = await refused.finished;
      expect(code).toBe(11);
      expect(stderr).toContain(`the runner has Holdfast ${NEXT_NUMBER}, and this coordinator ${VERSION}`);
      expect(await contentOf(storage, ALWAYS_WRITTEN)).toEqual(before);
      const { runners } = await ask(first, "runners");
      expect(runners).toMatchObject([{ name: "today" }]);

      const at = await upgraded(first);
      await start(at.url).says("waiting for runs");
      await stop(runner);
      await command(ofNext(), at, "approve", id);
      await becomes(at, id, "completed");
      expectOnce([id]);
    },
  );
});

async function stop(process: HoldfastProcess): Promise<void> {
  process.kill("SIGTERM");
  await process.finished;
}

/** A coordinator and a command of today do not run a session that the next version has begun, and leave it as it is. */
async function expectLeftToNewer(id: string, ...places: readonly CoordinatorProcess[]): Promise<void> {
  const [at, other] = places as [CoordinatorProcess, CoordinatorProcess];
  await vi.waitFor(async () => {
    for (const place of places)
      expect(await command(TODAY, place, "runs", "--session", id)).toContain("does not know the session's");
  }, PATIENCE);
  const before = await shown(at, id);
  const env = { ...project.environment(), HOLDFAST_URL: other.url, HOLDFAST_TOKEN: other.adminToken };
  const resumed = await project.finish(["resume", id, "--agent", "agents.ts"], { env });
  expect([resumed.code, resumed.stderr]).toEqual([11, expect.stringContaining("begun by a newer Holdfast")]);
  expect(before).toMatchObject({ status: "submitted" });
  expect(await shown(at, id)).toEqual(before);
}

/** Contents of the next version's columns of these sessions. */
function newerColumns(ids: Iterable<string>): Promise<readonly unknown[]> {
  return runSql(
    storage,
    `SELECT DISTINCT s.planted, t.planted AS of_state FROM holdfast.session s
       JOIN holdfast.state t ON t.session_id = s.session_id
      WHERE s.session_id IN (${Array.from(ids, (id) => `'${id}'`).join(", ")})`,
  );
}

async function becomes(at: CoordinatorProcess, id: string, status: string): Promise<void> {
  await vi.waitFor(async () => expect(await shown(at, id)).toMatchObject({ status }), PATIENCE);
}

/** Today's version does not open the database of the next one, whose coordinator has stopped, and leaves it as it is. */
async function expectRefused({ process }: CoordinatorProcess): Promise<void> {
  await stop(process); // It writes that it is alive.
  const before = await contentOf(storage);
  const { code, stderr } = await project.start(["coordinator", "--storage", storage, "--port", "0"]).finished;
  expect([code, stderr]).toEqual([11, expect.stringContaining("schema version 2")]);
  expect(await contentOf(storage)).toEqual(before);
}

/** Tables that processes write to although nobody asks for anything. */
const ALWAYS_WRITTEN = ["instance", "item", "state"];

/** All rows of the database, and its columns. @param without tables that are left out. */
async function contentOf(url: string, without: readonly string[] = []): Promise<unknown> {
  const tables = await runSql(
    url,
    "SELECT table_name, string_agg(column_name, ',' ORDER BY ordinal_position) AS columns FROM information_schema.columns WHERE table_schema = 'holdfast' GROUP BY 1 ORDER BY 1",
  );
  const rows = tables
    .map(({ table_name: name }) => String(name))
    .filter((name) => !without.includes(name))
    .map((name) =>
      runSql(url, `SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) AS hash FROM holdfast.${name} t`),
    );
  return [tables, await Promise.all(rows)];
}
