import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openWorkspace } from "@holdfast/workspace";
import { resolveModel, scriptedModel, type ModelProvider } from "@holdfast/agents";
import { createRuntime, MemoryStorage, type AgentTracer, type Runtime } from "holdfast";
import { startScriptedModelServer, type ModelFaultPlan, type ScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { codingAgent } from "./agent.ts";
import { copyFixture, git } from "./fixture.ts";
import { chooseModelAgain } from "./model.ts";
import { screen } from "./screen.ts";
import { fixtureScript } from "./script.ts";

const CANARY = "canary-key-c41fe2";
const START = fileURLToPath(new URL("./start.ts", import.meta.url));

let base: string;
let repo: string;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "coding-example-"));
  repo = join(base, "repo");
  await copyFixture(repo);
});
afterEach(() => rm(base, { recursive: true, force: true }));

describe("the coding agent, from its first question to its commit", () => {
  let server: ScriptedModelServer;
  let storage: MemoryStorage;
  let runtime: Runtime;
  let shown: string;
  beforeEach(async () => {
    server = await startScriptedModelServer({ script: fixtureScript });
    storage = new MemoryStorage();
    shown = "";
  });
  afterEach(async () => {
    await runtime.close();
    await server.close();
  });

  /** Run it, approving its plans, or refusing the first with a reason. */
  async function work(
    model: ModelProvider,
    options: { readonly refuseFirst?: string; readonly faults?: ModelFaultPlan } = {},
  ) {
    server.setFaults(options.faults);
    const plans: (string | undefined)[] = [];
    let calls = 0;
    const tracer: AgentTracer = screen({
      write: (text) => void (shown += text),
      onAnswered: () => {},
      onReply: () => void (calls += 1),
      onQuestion: (sessionId, { plan }) => {
        plans.push(plan);
        const { refuseFirst } = options;
        const answer =
          plans.length === 1 && refuseFirst !== undefined
            ? { approved: false, reason: refuseFirst }
            : { approved: true };
        void runtime.answer(sessionId, answer);
      },
    });
    runtime = createRuntime({ storage, tracer });
    const handle = await runtime.start(codingAgent(model), { repo, text: "Mend it." });
    const report = await handle.result();
    return { report, plans, calls, sessionId: handle.sessionId };
  }

  async function expectFixed(commit: string | null): Promise<void> {
    const workspace = await openWorkspace({ root: repo });
    expect((await workspace.execute(["node", "--test"])).end).toEqual({ type: "exit", exitCode: 0 });
    expect(await git(repo, "rev-parse", "HEAD")).toBe(commit);
    expect(await git(repo, "rev-list", "--count", "HEAD")).toBe("2");
    expect(await git(repo, "show", "--format=", "--name-only")).toBe("src/discount.js\nsrc/money.js");
    expect(await git(repo, "status", "--porcelain")).toBe("");
  }

  test(
    "it looks, plans, asks, edits, tests, looks again, edits, tests, and commits exactly once",
    ofCampaign,
    async () => {
      const { report, plans, calls } = await work(scriptedModel(server.url));
      expect({ status: report.status, calls }).toEqual({ status: "completed", calls: 10 });
      expect(plans).toEqual([expect.stringContaining("Compare with >=")]);
      await expectFixed(report.commit);
      const testRuns = shown.split("\n").filter((line) => line.includes("npm test"));
      expect(testRuns.map((line) => /exit code \d/.exec(line)?.[0])).toEqual([
        "exit code 1",
        "exit code 1",
        "exit code 0",
      ]);
      expect(shown).toContain("One test still fails: 19.99 is read as 1998");
      expect(shown).not.toContain("!"); // No warning of the development checks either.
    },
  );

  test("a person refuses with a reason, and gets another plan", ofCampaign, async () => {
    const { report, plans, calls } = await work(scriptedModel(server.url), { refuseFirst: "name the file" });
    expect({ status: report.status, calls }).toEqual({ status: "completed", calls: 11 });
    expect(plans).toEqual([expect.any(String), expect.stringContaining("the last plan (name the file)")]);
    await expectFixed(report.commit);
  });

  test(
    "a server that is down, slow to recover and cuts its answers changes nothing but the time",
    ofCampaign,
    async () => {
      const { report, calls } = await work(scriptedModel(server.url), {
        faults: {
          2: { type: "cut", afterChunks: 5 },
          4: { type: "server_error", status: 529 },
          5: { type: "garbage" },
          9: { type: "stream_error" },
        },
      });
      expect({ status: report.status, calls }).toEqual({ status: "completed", calls: 10 });
      await expectFixed(report.commit);
    },
  );

  test(
    "a key is in nothing that is recorded, shown, committed or given to commands",
    ofCampaign,
    async () => {
      const env = { ANTHROPIC_API_KEY: CANARY, ANTHROPIC_BASE_URL: server.url };
      const before = process.env["ANTHROPIC_API_KEY"];
      process.env["ANTHROPIC_API_KEY"] = CANARY; // As it is in the environment of a user's process.
      try {
        const { sessionId, report } = await work(resolveModel(env) ?? expect.fail("no model"));
        expect(server.requests[0]?.headers["x-api-key"]).toBe(CANARY);
        const records = JSON.stringify(await storage.reader.journal(sessionId, 0, 10_000));
        const entries = JSON.stringify(await storage.reader.entries(sessionId, 0, 10_000));
        const patch = await git(repo, "show", String(report.commit));
        for (const text of [
          records,
          entries,
          shown,
          patch,
          JSON.stringify(server.requests.map((request) => request.body)),
        ]) {
          expect(text).not.toContain(CANARY);
          expect(text.length).toBeGreaterThan(100);
        }
        const workspace = await openWorkspace({ root: repo });
        expect((await workspace.execute(["env"])).stdout).not.toContain(CANARY);
      } finally {
        if (before === undefined) delete process.env["ANTHROPIC_API_KEY"];
        else process.env["ANTHROPIC_API_KEY"] = before;
      }
    },
  );

  test("a wrong key ends it with an error that names the variable", ofCampaign, async () => {
    await server.close();
    server = await startScriptedModelServer({ script: fixtureScript, apiKeys: ["another"] });
    const model = resolveModel({ ANTHROPIC_API_KEY: CANARY, ANTHROPIC_BASE_URL: server.url });
    await expect(work(model ?? expect.fail("no model"))).rejects.toThrow(/ANTHROPIC_API_KEY was refused/);
    expect(server.requests).toHaveLength(1);
  });

  test("the script says that it knows only one repository", ofCampaign, async () => {
    await git(repo, "mv", "src/money.js", "src/coins.js");
    await git(repo, "-c", "user.name=P", "-c", "user.email=p@example.invalid", "commit", "-qm", "other");
    await expect(work(scriptedModel(server.url))).rejects.toThrow(/written for one example repository/);
  });
});

describe("which model a session goes on with", () => {
  test("without a key the script, unless the session has worked with a real model", () => {
    expect(chooseModelAgain({}, undefined).isScripted).toBe(true);
    expect(chooseModelAgain({}, "scripted/scripted-model").isScripted).toBe(true);
    expect(() => chooseModelAgain({}, "anthropic/claude-sonnet-5")).toThrow(
      /works with anthropic\/claude-sonnet-5/,
    );
    expect(chooseModelAgain({ OPENAI_API_KEY: "k" }, "anthropic/claude-sonnet-5").model).toBe("gpt-5.5");
  });
});

describe("npm start", () => {
  /** `start.ts` as a process without a terminal, with a database of its own. */
  async function start(args: readonly string[], env: Record<string, string> = {}) {
    const child = spawn(process.execPath, [START, ...args], {
      cwd: base,
      env: {
        PATH: process.env["PATH"],
        HOME: base,
        HOLDFAST_DB: join(base, ".holdfast/holdfast.db"),
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => void (output += text));
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    return { code, output };
  }

  test(
    "without a key and without a terminal it says that the model is a script, approves itself, and succeeds",
    ofCampaign,
    async () => {
      const { code, output } = await start([]);
      expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining("SCRIPTED model") });
      expect(output).toContain("is approved without one");
      expect(output.match(/is approved without one/g)).toHaveLength(1);
      expect(output).toContain("completed: Two mistakes are mended");
      expect(output).not.toMatch(/^ *! /m); // No warning.
      const id = /Session: (ses_[0-9a-f-]+)/.exec(output)?.[1] ?? "none";
      expect(output).toContain(`npx holdfast show ${id}`);
      expect(output).toContain(`npx holdfast logs ${id}`);
      const copy = /Repository: (\S+) \(.*NOT isolated/.exec(output)?.[1] ?? "";
      expect(await git(copy, "rev-list", "--count", "HEAD")).toBe("2");
    },
  );

  test(
    "with a key it names the model and the cap, and without a terminal its plan waits for a person",
    ofCampaign,
    async () => {
      const server = await startScriptedModelServer({ script: fixtureScript });
      const { code, output } = await start(["--repo", repo], {
        ANTHROPIC_API_KEY: CANARY,
        ANTHROPIC_BASE_URL: server.url,
      });
      await server.close();
      expect(output).toMatch(
        /^Model: claude-sonnet-5 by Anthropic .*Cap: no call that could bring it above \$2\.00,/m, // Node 22 says before that its SQLite is experimental.
      );
      expect({ code, output: output.includes(CANARY) }).toEqual({ code: 0, output: false });
      const id = /Session: (ses_[0-9a-f-]+)/.exec(output)?.[1] ?? "none";
      expect(output).toContain(`npx holdfast approve ${id}`);
      expect(await git(repo, "rev-list", "--count", "HEAD")).toBe("1");
    },
  );

  test("--help tells how it is called, and does nothing", ofCampaign, async () => {
    const { code, output } = await start(["--help"]);
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining("usage: npm start") });
    await expect(readFile(join(base, ".holdfast/holdfast.db"))).rejects.toThrow("ENOENT");
  });

  test.each<[string, readonly string[], Record<string, string>, number, string]>([
    [
      "a repository that is not there, without a key",
      ["--repo", "nowhere"],
      {},
      2,
      "nowhere is not a directory",
    ],
    ["a repository of one's own without a key", ["--repo", "."], {}, 3, "E_CONFIG_INVALID"],
    [
      "a repository that is not there",
      ["--repo", "nowhere"],
      { ANTHROPIC_API_KEY: CANARY },
      2,
      "nowhere is not a directory",
    ],
    [
      "a folder that is no repository",
      ["--repo", "."],
      { ANTHROPIC_API_KEY: CANARY },
      2,
      "is not a git repository",
    ],
    [
      "changes that are not committed",
      ["--repo", "changed"],
      { ANTHROPIC_API_KEY: CANARY },
      2,
      "not committed",
    ],
    ["an option nobody knows", ["--rep"], {}, 2, "E_USAGE"],
    [
      "an address that is none",
      [],
      { OPENAI_BASE_URL: "nowhere", HOLDFAST_MODEL: "m" },
      3,
      "OPENAI_BASE_URL",
    ],
  ])("%s: one error, no stack, nothing made", ofCampaign, async (_what, args, env, expected, says) => {
    await mkdir(join(base, "changed"));
    await git(join(base, "changed"), "init", "--quiet");
    await writeFile(join(base, "changed/new.txt"), "");
    const { code, output } = await start(args, env);
    expect({ code, output }).toEqual({ code: expected, output: expect.stringContaining(says) });
    expect(output).not.toMatch(/\n\s+at /);
    await expect(readFile(join(base, ".holdfast/holdfast.db"))).rejects.toThrow("ENOENT");
  });
});
