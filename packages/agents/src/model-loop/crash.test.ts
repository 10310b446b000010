// The model loop is interrupted at commits, and at starts and ends of tasks. Its sessions have calls beside
// each other, an approval, children, an MCP call and a script. Others have an output that is corrected and a
// usage limit. `compaction.test.ts` has the context boundaries.
//
// A call that may be made once is uncertain where a crash cut it off. Nothing else differs from the
// undisturbed run.
//
// `npm test` plays a sample of the points, and the crash-points campaign plays all of them.

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PauseError } from "@holdfast/core";
import {
  crashEverywhere,
  startMcpHttpServer,
  type CrashScenario,
  type McpHttpServer,
} from "@holdfast/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";

import type { AgentRecord } from "../record/agent-record.ts";
import { mcpCapability } from "../servers/mcp-capability.ts";
import { scriptsCapability } from "../scripts/scripts-capability.ts";
import { McpServers } from "@holdfast/mcp";
import { findScripts, pushScript } from "../scripts/find-scripts.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel, type Play, type Say } from "../testing/fake-model.ts";
import { ModelLoop } from "./model-loop.ts";

const EVERY = isCampaign ? 1 : 41;
const UNCERTAIN = "nobody knows whether it took effect";

let folder: string;
let http: McpHttpServer;
let servers: McpServers;

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "model-loop-crash-")));
  http = await startMcpHttpServer();
  servers = new McpServers({ variable: () => undefined });
  write("work/a.txt", "one\n");
  write("work/b.txt", "two words\n");
  const parameters_schema = { properties: { file: { type: "string" } }, required: ["file"] };
  const manifest = { name: "count", description: "Counts words.", script_file: "main.sh", parameters_schema };
  write("home/.holdfast/scripts/count/script.json", JSON.stringify(manifest));
  write("home/.holdfast/scripts/count/main.sh", 'echo counted >> ledger\nwc -w < "$2"\n');
  for (const script of findScripts(places())) pushScript(script, places(), 0);
});
afterAll(async () => {
  await servers.close();
  await http.close();
  rmSync(folder, { recursive: true, force: true });
});

const places = () => ({
  project: join(folder, "work"),
  home: join(folder, "home"),
  env: {},
  trustFile: join(folder, "data/trusted-folders.json"),
});

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

function agentOf(play: Play | readonly Say[], record: Partial<AgentRecord> = {}) {
  const workspace = workspacesByRoot();
  const loop = new ModelLoop({
    model: fakeModel(play),
    workspace,
    root: places().project,
    capabilities: [mcpCapability(servers), scriptsCapability({ places: places(), workspace })],
  });
  return loop.agent({ ...RECORD, ...record }, [
    loop.agent({ ...RECORD, name: "other", prompt: "You are other." }),
  ]);
}

const allow = (tool: string): Partial<AgentRecord> => ({
  permissions: [{ decision: "allow", tool, pattern: null }],
});
const DONE: Say = { text: "Done." };

/** The lines of a file of the workspace. */
const linesOf = (name: string): number =>
  readFileSync(join(places().project, name), "utf8").split("\n").length - 1;
const called = (tool: string): number => http.log.filter((line) => line === `tools/call ${tool}`).length;

/** The model is over its limit until its reset, once in each run. */
let isLimited = false;

interface Case {
  readonly name: string;
  make(): Omit<CrashScenario, "name">;
  /** How often the effect that may happen once has happened, over all runs. */
  readonly onceEffects?: () => number;
}

const CASES: readonly Case[] = [
  {
    name: "calls beside each other",
    make: () => ({
      agent: agentOf([
        {
          calls: [
            ["read_file", { path: "a.txt" }],
            ["read_file", { path: "b.txt" }],
            ["list_files", {}],
          ],
        },
        DONE,
      ]),
    }),
  },
  {
    name: "an approval",
    make: () => ({
      agent: agentOf([{ calls: [["write_file", { path: "new.txt", content: "new\n" }]] }, DONE]),
      reset: () => rmSync(join(places().project, "new.txt"), { force: true }),
      effects: () => linesOf("new.txt"),
      world: async ({ runtime, sessionId, storage, until }) => {
        await until((session) => session?.status === "input_required" || session?.endedAt !== undefined);
        const { waits = [] } = (await storage.reader.session(sessionId)) ?? {};
        const [wait] = waits;
        if (wait?.type === "input")
          await runtime.answer(sessionId, { approved: true }, { question: wait.id });
      },
    }),
  },
  {
    name: "children",
    make: () => ({
      agent: agentOf(({ system }, number) => {
        if (system.includes("You are other."))
          return number === 0 ? { calls: [["read_file", { path: "a.txt" }]] } : { text: "helped" };
        const calls = ["one", "two"].map((input) => ["delegate", { agent: "other", input }] as const);
        return number === 0 ? { calls } : DONE;
      }),
    }),
  },
  {
    name: "a call of an MCP server",
    make: () => ({
      agent: agentOf([{ calls: [["mcp__test__greet", {}]] }, { calls: [["mcp__test__count", {}]] }, DONE], {
        ...allow("mcp__*"),
        mcpServers: { test: { type: "http", url: http.url, headers: {} } },
      }),
    }),
    onceEffects: () => called("count"),
  },
  {
    name: "a call of a script",
    make: () => ({
      agent: agentOf([{ calls: [["script__count", { file: "b.txt" }]] }, DONE], {
        ...allow("script__*"),
        scripts: ["count"],
      }),
      reset: () => write("work/ledger", ""),
    }),
    onceEffects: () => linesOf("ledger"),
  },
  {
    name: "a correction of the output",
    make: () => ({
      agent: agentOf(
        [
          { text: "It is low." },
          { calls: [["submit_output", { level: "medium" }]] },
          { calls: [["submit_output", { level: "low" }]] },
        ],
        {
          outputSchema: {
            type: "object",
            properties: { level: { enum: ["low", "high"] } },
            required: ["level"],
          },
        },
      ),
    }),
  },
  {
    name: "a wait for a usage limit",
    make: () => ({
      agent: agentOf(
        () => {
          if (!isLimited) return DONE;
          isLimited = false;
          const pause = { reason: "quota", pool: "p", resetsAt: Date.now() + 20 } as const;
          throw new PauseError("quota_exceeded", "over its limit", { pause });
        },
        { resumeAtReset: true },
      ),
      parks: true,
      reset: () => void (isLimited = true),
    }),
  },
];

test.each(CASES)(
  "a crash at any point changes nothing of a session with $name",
  { timeout: 900_000 },
  async ({ name, make, onceEffects }) => {
    const scenario = make();
    let before = 0;
    let repeated = 0;
    const report = await crashEverywhere(
      {
        ...scenario,
        name,
        input: "Begin.",
        reset: async () => {
          await scenario.reset?.();
          before = onceEffects?.() ?? 0;
        },
        effects: () => {
          if (onceEffects !== undefined && onceEffects() - before > 1) repeated++;
          return scenario.effects?.();
        },
      },
      undefined,
      { every: EVERY, from: CASES.findIndex((one) => one.name === name) },
    );
    expect(report.outcome).toMatchObject({ status: "completed" });
    // A call that may be made once is uncertain where a crash cut it off.
    const wrong = report.failures.filter(
      ({ got }) => onceEffects === undefined || !JSON.stringify(got).includes(UNCERTAIN),
    );
    expect(wrong).toEqual([]);
    expect(repeated).toBe(0);
    if (EVERY === 1) console.log(`${name}: ${report.runs} runs, ${report.failures.length} uncertain`);
  },
);
