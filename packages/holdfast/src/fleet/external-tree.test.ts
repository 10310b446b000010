// A tree of agents over two runners (`external-tree-agents.ts`), under one budget. A campaign kills every
// kind of its processes.

import { copyFileSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { AgentStorage, Session } from "@holdfast/core";
import { openRemoteStorage } from "@holdfast/storage/remote";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { ExternalProject } from "../testing/external-project.ts";
import { externalTree, TREE_PLACES, type TreeWork } from "../testing/external-tree-agents.ts";
import { openFleet } from "../testing/fleet.ts";
import { startCoordinator, startRunnerProcess } from "../testing/fleet-processes.ts";
import type { HoldfastProcess } from "../testing/holdfast-process.ts";

const CHILDREN = ["claude-code", "codex", "own"] as const;
type Child = (typeof CHILDREN)[number];

const KILLS = Number(process.env["HOLDFAST_TREE_KILLS"] ?? 5);
/** The steps of each child between two gates. A step takes a tenth of a second. */
const STEPS = 3;
/** Each is killed once, and then any of them. */
const VICTIMS = ["a", "b", "fake-claude-code", "coordinator", "fake-codex"];
const LEASE_MS = 6_000;
const BUDGET = { maxTokens: 1_000_000 };
const PATIENCE = { timeout: 120_000, interval: 50 };

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

/** The work of all children: steps, and a gate behind them, so many times. */
function workOf(gates: number): TreeWork {
  const round = (child: Child, gate: number): readonly string[] => [
    ...Array.from({ length: STEPS }, (_, step) => `step:${child}-${gate}-${step}`),
    `gate:${child}-${gate}`,
  ];
  const of = (child: Child) =>
    Array.from({ length: gates }, (_, gate) => round(child, gate))
      .flat()
      .join(" ");
  return { "claude-code": of("claude-code"), codex: of("codex"), own: of("own") };
}

type Reader = AgentStorage["reader"];

async function treeOf(reader: Reader, lead: string): Promise<Readonly<Record<Child, Session>>> {
  const children = await reader.sessions({ parent: lead, limit: 100 });
  expect(children).toHaveLength(CHILDREN.length);
  return Object.fromEntries(children.map((child) => [child.agent.name, child])) as Record<Child, Session>;
}

async function textsOf(reader: Reader, id: string): Promise<readonly string[]> {
  return (await reader.entries(id, 0, 10_000)).map((entry) => JSON.stringify(entry));
}

/** The tree has ended as it should: each result once, and one budget that has counted the work of all. */
async function expectEnded(reader: Reader, id: string, work: TreeWork, output: unknown): Promise<void> {
  const lead = await vi.waitFor(async () => {
    const session = await reader.session(id);
    expect(session?.endedAt, `the lead is ${session?.status}`).toBeDefined();
    return session!;
  }, PATIENCE);
  expect(lead).toMatchObject({ status: "completed", output: JSON.stringify(output) });
  const tree = await treeOf(reader, id);
  const results = await textsOf(reader, id);
  for (const child of CHILDREN) {
    expect(tree[child], child).toMatchObject({ status: "completed" });
    expect(results.filter((text) => text.includes(`${child}: Done: ${work[child]}`))).toHaveLength(1);
  }
  const spent = CHILDREN.map((child) => tree[child].account!.spent.tokens);
  for (const tokens of spent) expect(tokens).toBeGreaterThan(0);
  expect(lead.account?.spent.tokens).toBe(spent.reduce((sum, tokens) => sum + tokens));
  expect(lead.account?.spent.tokens).toBeLessThan(BUDGET.maxTokens);
}

test("a tree over two runners has each result once, and spends one budget", { timeout: 60_000 }, async () => {
  const fleet = await openFleet();
  try {
    const environment = { ...project.environment(), HOME: project.folder };
    const agents = () => Object.values(externalTree(project.folder, environment));
    for (const place of new Set(Object.values(TREE_PLACES)))
      await fleet.runner({ name: place, labels: { place }, agents: agents(), workspace: project.folder });
    writeFileSync(project.path("open-0"), "");
    const work = workOf(1);
    const input = { ...work, codex: `${work.codex} session:signal_parent:ready` };
    const id = await startSession(fleet, { agent: "lead", input, budget: BUDGET });
    await expectEnded(fleet.storage.reader, id, input, { text: "ready" });
    expect([...project.steps().values()]).toEqual(Array.from({ length: CHILDREN.length * STEPS }, () => 1));
  } finally {
    await fleet.close();
  }
  expect(programs("fake-")).toEqual([]);
});

/** Processes that work in the project and whose command line has this word. */
function programs(word: string): readonly number[] {
  return readdirSync("/proc")
    .filter((pid) => {
      try {
        const isHere = readlinkSync(`/proc/${pid}/cwd`).startsWith(project.folder);
        return isHere && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(word);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** A fleet of processes, of which one is killed at a time and started again. */
class KilledFleet {
  readonly reader: Reader;
  readonly #remote: AgentStorage;
  readonly #coordinator: Awaited<ReturnType<typeof startCoordinator>>;
  readonly #running = new Map<string, HoldfastProcess>();

  private constructor(coordinator: Awaited<ReturnType<typeof startCoordinator>>) {
    this.#coordinator = coordinator;
    this.#remote = openRemoteStorage({ url: coordinator.url, token: coordinator.adminToken });
    this.reader = this.#remote.reader;
    this.#running.set("coordinator", coordinator.process);
  }

  static async open(): Promise<KilledFleet> {
    copyFileSync(
      new URL("../testing/external-tree-agents.ts", import.meta.url),
      project.path("external-tree.ts"),
    );
    writeFileSync(
      project.path("agents.ts"),
      'import { externalTree } from "./external-tree.ts";\nexport const { lead, claude, codex, own } = externalTree(process.cwd());\n',
    );
    const fleet = new KilledFleet(await startCoordinator(project, { leaseMs: LEASE_MS }));
    await fleet.#startRunner("a");
    await fleet.#startRunner("b");
    return fleet;
  }

  start(input: TreeWork): Promise<string> {
    return startSession(this.#coordinator, { agent: "lead", input, budget: BUDGET });
  }

  async kill(victim: string): Promise<void> {
    const process = this.#running.get(victim)!;
    process.kill("SIGKILL");
    await process.finished;
    if (victim !== "coordinator") return this.#startRunner(victim);
    const port = Number(new URL(this.#coordinator.url).port);
    const { process: next } = await startCoordinator(project, { leaseMs: LEASE_MS, port });
    this.#running.set(victim, next);
  }

  async close(): Promise<void> {
    await this.#remote.close();
    for (const process of this.#running.values()) process.kill("SIGTERM");
    await Promise.all([...this.#running.values()].map(({ finished }) => finished));
  }

  async #startRunner(place: string): Promise<void> {
    const args = ["--agents", "agents.ts", "--label", `place=${place}`];
    const env = project.environment();
    this.#running.set(place, await startRunnerProcess(project, this.#coordinator, place, args, { env }));
  }
}

// A run takes half a minute. The kills campaign plays it.
test.runIf(isCampaign)(
  `a tree over two runners loses and repeats nothing when ${KILLS} processes of it are killed`,
  { timeout: KILLS * 120_000 + 120_000 },
  async () => {
    const fleet = await KilledFleet.open();
    try {
      const work = workOf(KILLS + 1);
      const id = await fleet.start(work);
      await arrived(fleet.reader, id, 0);
      const tree = await treeOf(fleet.reader, id);
      /** How often each step was done when its result was stored. */
      const reported = new Map<string, number>();
      for (let kill = 0; kill < KILLS; kill++) {
        for (const child of CHILDREN)
          for (const text of await textsOf(fleet.reader, tree[child].sessionId))
            for (const [, step = ""] of text.matchAll(/step ([\w-]+) is done/g))
              if (!reported.has(step)) reported.set(step, project.steps().get(step)!);
        const victim = VICTIMS[kill] ?? VICTIMS[Math.floor(Math.random() * VICTIMS.length)]!;
        writeFileSync(project.path(`open-${kill}`), "");
        await delay(Math.random() * STEPS * 150); // At any moment of the steps between two gates.
        if (victim.startsWith("fake-")) for (const pid of programs(victim)) process.kill(pid, "SIGKILL");
        else await fleet.kill(victim);
        await arrived(fleet.reader, id, kill + 1);
      }
      writeFileSync(project.path(`open-${KILLS}`), "");
      await expectEnded(fleet.reader, id, work, null);
      const steps = project.steps();
      expect(steps.size).toBe(CHILDREN.length * STEPS * (KILLS + 1));
      expect(reported.size).toBeGreaterThan(KILLS);
      for (const [step, count] of reported) expect(steps.get(step), `step ${step}`).toBe(count);
    } finally {
      await fleet.close();
    }
    expect(programs("")).toEqual([]);
  },
);

/** Waits until every child is at this gate. An error says what each session waits for. */
async function arrived(reader: Reader, lead: string, gate: number): Promise<void> {
  await vi.waitFor(async () => {
    const arrivals = project.lines("gates");
    const missing = CHILDREN.filter((child) => !arrivals.includes(`${child}-${gate}`));
    if (missing.length === 0) return;
    const sessions = [await reader.session(lead), ...(await reader.sessions({ parent: lead, limit: 100 }))];
    const states = sessions.map((one) => [one?.agent.name, one?.status, one?.waits, one?.error]);
    throw new Error(`${missing.join(" and ")} did not reach gate ${gate}: ${JSON.stringify(states)}`);
  }, PATIENCE);
}
