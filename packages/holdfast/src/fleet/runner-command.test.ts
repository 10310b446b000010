// The command `runner`: what it says, what it refuses, and how it ends.

import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";
import { ended, PATIENCE, sessionBecomes } from "../testing/fleet-sessions.ts";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
let fleet: Fleet;
beforeEach(async () => {
  project = new Project({ eachAsProcess: true });
  fleet = await openFleet();
  writeFileSync(
    project.path("agents.ts"),
    `import { readFileSync } from "node:fs";
     import { defineAgent } from "holdfast";
     export const reads = defineAgent({ name: "reads", run: async (ctx) => ctx.run("read", () => readFileSync("note", "utf8")) });
     export const waits = defineAgent({ name: "waits", run: async (ctx) => ctx.waitForSignal("go") });`,
  );
});
afterEach(async () => {
  await project.dispose();
  await fleet.close();
});

const TIMEOUT = { timeout: 60_000 };

async function fleetRunner(runnerId: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${fleet.adminToken}` };
  return (await fetch(`${fleet.url}/v1/runners/${runnerId}`, { headers })).json();
}

describe("holdfast runner", () => {
  test(
    "a port that is taken ends it with exit code 7, and it is named",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      const { port } = new URL(fleet.url);
      const args = ["runner", "-c", fleet.url, "--agents", "agents.ts", "--health-port", port];
      const env = { HOLDFAST_TOKEN: await fleet.token("registration", "r") };
      const { code, stderr } = await project.start(args, { env, stdin: "" }).finished;
      expect(code).toBe(7);
      expect(stderr).toContain(
        `the runner's health cannot listen on port ${port}: another process listens there`,
      );
      expect(stderr).toContain("choose another port with --health-port");
    },
  );

  test.each(
    sampled([
      ["that is not JSON", "{", "", "the policy is not JSON"],
      [
        "with a wrong field",
        '{"network":{"allow":["https://x"]}}',
        "#/network/allow",
        '"allow" has a wrong value',
      ],
      ["with an unknown field", '{"root":["/"]}', "#/root", 'the policy has no "root"'],
    ]),
  )("a runner does not start with a policy %s", TIMEOUT, async (_what, text, pointer, message) => {
    mkdirSync(project.path("work"));
    writeFileSync(project.path("policy.json"), text);
    const args = [
      "runner",
      "-c",
      fleet.url,
      "-p",
      "work",
      "--agents",
      "agents.ts",
      "--policy",
      "policy.json",
    ];
    const { code, stderr } = await project.start(args, { stdin: "" }).finished;
    expect(code).toBe(3);
    expect(stderr).toContain(`error[E_CONFIG_INVALID]: ${message}`);
    expect(stderr).toContain(`at: ${project.path("policy.json")}${pointer}\n`);
  });

  test(
    "a policy that others may write, or that lies in the project, is refused",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      mkdirSync(project.path("work"));
      for (const [file, mode, message] of [
        ["policy.json", 0o602, "other users may write the file"],
        ["work/policy.json", 0o600, "the policy lies in the project, where agents may change it"],
        ["none.json", undefined, "the policy cannot be read"],
      ] as const) {
        if (mode !== undefined) {
          writeFileSync(project.path(file), "{}");
          chmodSync(project.path(file), mode);
        }
        const args = ["runner", "-c", fleet.url, "-p", "work", "--agents", "agents.ts", "--policy", file];
        const { code, stderr } = await project.start(args, { stdin: "" }).finished;
        expect([code, stderr]).toEqual([3, expect.stringContaining(message)]);
      }
    },
  );

  test(
    "an executor that the policy does not allow is refused at the start",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      mkdirSync(project.path("work"));
      writeFileSync(project.path("policy.json"), '{"executors":["claude-code"]}');
      const args = [
        "runner",
        "-c",
        fleet.url,
        "-p",
        "work",
        "-x",
        "test-executor",
        "--policy",
        "policy.json",
      ];
      const { code, stderr } = await project.start(args, { stdin: "" }).finished;
      expect([code, stderr]).toEqual([
        12,
        expect.stringContaining(
          "error[E_POLICY_DENIED]: the policy of this runner does not allow the executor",
        ),
      ]);
    },
  );

  test(
    "an allowed name is an executor beside the policy, and never one of the project",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      const put = (folder: string): void => {
        mkdirSync(project.path(`${folder}/executors/mine`), { recursive: true });
        writeFileSync(project.path(`${folder}/executors/mine/ao-mine-exec`), "#!/bin/sh\n", { mode: 0o755 });
      };
      put("work");
      writeFileSync(project.path("policy.json"), '{"executors":["mine"]}');
      const env = { HOLDFAST_TOKEN: await fleet.token("registration", "r") };
      const base = ["runner", "-c", fleet.url, "-p", "work", "--policy", "policy.json"];
      const byName = await project.start([...base, "-x", "mine"], { env, stdin: "" }).finished;
      expect([byName.code, byName.stderr]).toEqual([
        4,
        expect.stringContaining('there is no executor "mine"'),
      ]);
      const path = "work/executors/mine/ao-mine-exec";
      const byPath = await project.start([...base, "-e", path], { env, stdin: "" }).finished;
      expect([byPath.code, byPath.stderr]).toEqual([
        12,
        expect.stringMatching(/E_POLICY_DENIED.*only from outside.*got: \S+ao-mine-exec/s),
      ]);
      put(".");
      const { executors } = await project.json<{ executors: { name: string; path: string }[] }>(
        ...base,
        "--executor-list",
      );
      expect(executors[0]).toEqual({ name: "mine", path: project.path("executors/mine/ao-mine-exec") });
      const runner = project.start([...base, "-x", "mine"], { env, stdin: "" });
      await runner.says("Runner started");
      runner.kill("SIGINT");
      await runner.finished;
    },
  );

  test(
    "the policy of the user's configuration folder limits the sessions that are held",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      mkdirSync(project.path("work"));
      mkdirSync(project.path(".config/holdfast"), { recursive: true });
      writeFileSync(project.path(".config/holdfast/runner-policy.json"), '{"concurrency":2}');
      const env = { HOLDFAST_TOKEN: await fleet.token("registration", "r") };
      const args = ["runner", "-c", fleet.url, "-p", "work", "--agents", "agents.ts", "--max-runs", "9"];
      const runner = project.start(args, { env, stdin: "" });
      await runner.says("Runner started");
      const [, runnerId] = /Registered as (\S+)/.exec(runner.stderr)!;
      expect(await fleetRunner(runnerId!)).toMatchObject({ maxRuns: 2 });
      expect(runner.stderr).toContain("--max-runs is lowered to 2, the policy's concurrency");
      runner.kill("SIGINT");
      await runner.finished;
    },
  );

  test(
    "a runner ends where another server answers at its URL, and does not wait for it",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      const server = createServer((_request, response) => void response.writeHead(404).end("none"));
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const env = { HOLDFAST_TOKEN: "hf_reg_none" };
      const { code, stderr } = await project.start(["runner", "-c", url, "--agents", "agents.ts"], {
        env,
        stdin: "",
      }).finished;
      expect([code, stderr]).toEqual([
        7,
        expect.stringContaining("answers, but is not a Holdfast coordinator"),
      ]);
      server.close();
    },
  );

  test(
    "a runner reports its work, runs in the project's folder, and releases its sessions at Ctrl-C",
    TIMEOUT,
    async () => {
      mkdirSync(project.path("work"));
      writeFileSync(project.path("work/note"), "found");
      const runner = project.start(
        [
          "runner",
          "-c",
          fleet.url,
          "-p",
          "work",
          "--agents",
          "agents.ts",
          "--label",
          "a=b",
          "--max-runs",
          "2",
          "-v",
          "--health-port",
          "0",
        ],
        { env: { HOLDFAST_TOKEN: await fleet.token("registration", "r") } },
      );
      await runner.says(/Health on http:\/\/127\.0\.0\.1:\d+/);
      expect(runner.stderr).toMatch(
        new RegExp(
          `^Connecting to Agent Coordinator at ${fleet.url}\nRegistered as rnr_\\S+\nRunner started - waiting for runs\n`,
        ),
      );
      const sessionId = await startSession(fleet, { agent: "reads", demands: { a: "b" } });
      expect(await ended(fleet, sessionId)).toMatchObject({ output: '"found"' });
      await runner.says(`Received run run_${sessionId}.1 (start_session) of agent reads`);
      await runner.says(`${sessionId} completed`);
      const waiting = await startSession(fleet, { agent: "waits" });
      await sessionBecomes(fleet, waiting, { status: "waiting" });
      const health = /Health on (\S+)/.exec(runner.stderr)![1]!;
      expect(await (await fetch(health)).json()).toMatchObject({ status: "ok", held: 1, maxRuns: 2 });
      runner.kill("SIGINT");
      expect(await runner.finished).toMatchObject({ code: 130, signal: null });
      expect(runner.stderr).toContain("Runner stopped");
      // It was given back, not left to its lease.
      const claim = { sessionId: waiting, owner: "test", now: Date.now(), leaseMs: 1_000 };
      expect(await fleet.storage.claim(claim)).toMatchObject({ status: "claimed", losses: 0 });
    },
  );

  test(
    "with --json says the same to programs, and takes its token from standard input",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      const token = await fleet.token("registration", "r");
      const runner = project.start(
        ["runner", "-c", fleet.url, "--agents", "agents.ts", "--token-file", "-", "--json"],
        {
          stdin: `${token}\n`,
        },
      );
      await runner.says('"started"');
      const types = runner.stdout
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { type: string }).type);
      expect(types).toEqual(["connecting", "registered", "started"]);
      runner.kill("SIGTERM");
      expect((await runner.finished).code).toBe(143);
      expect(runner.stderr).toBe("");
      const folder = project.path(".local/share/holdfast/runners");
      for (const file of readdirSync(folder))
        expect(readFileSync(`${folder}/${file}`, "utf8")).not.toContain(token);
    },
  );

  test(
    "a runner takes its settings from the environment and ends when the coordinator drains it",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      mkdirSync(project.path("work"));
      const env = {
        HOLDFAST_TOKEN: await fleet.token("registration", "r"),
        AGENT_ORCHESTRATOR_API_URL: fleet.url,
        PROJECT_DIR: project.path("work"),
        POLL_TIMEOUT: "5",
      };
      const args = ["runner", "--agents", "agents.ts", "--json"];
      const vague = await project.start(args, { env: { ...env, POLL_TIMEOUT: "soon" } }).finished;
      expect(vague).toMatchObject({ code: 2 });
      expect(vague.stdout + vague.stderr).toMatch(/POLL_TIMEOUT is not .*soon/);
      const runner = project.start(args, { env: { ...env, HEARTBEAT_INTERVAL: "60" } });
      await runner.says('"started"');
      // A third of the lease of 15 s is the most.
      expect(runner.stdout).toMatch(/"type":"renewed_more_often","askedMs":60000,"renewMs":5000/);
      const runnerId = /rnr_[0-9a-f-]+/.exec(runner.stdout)![0];
      const listed = await fleetRunner(runnerId);
      expect(listed).toMatchObject({ project: project.path("work") });
      const response = await fetch(`${fleet.url}/v1/runners/${runnerId}/drain`, {
        method: "POST",
        headers: { authorization: `Bearer ${fleet.adminToken}` },
      });
      expect(response.status).toBe(202);
      expect((await runner.finished).code).toBe(0);
    },
  );

  test("a runner waits for a coordinator that is not there yet", { ...ofCampaign, ...TIMEOUT }, async () => {
    const runner = project.start(["runner", "-c", "http://127.0.0.1:9", "--agents", "agents.ts"], {
      env: { HOLDFAST_TOKEN: "hf_reg_x" },
    });
    await runner.says(
      /cannot be reached: http:\/\/127\.0\.0\.1:9; trying again\n {2}got: .*ECONNREFUSED.*\n {2}fix: check that it runs/,
    );
    runner.kill("SIGINT");
    expect((await runner.finished).code).toBe(130);
  });

  test(
    "a runner refuses wrong files and options, and says how to correct them",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      writeFileSync(project.path("none.ts"), "export const x = 1;");
      const agents = ["--agents", "agents.ts"];
      const cases: readonly (readonly [args: readonly string[], code: number, says: RegExp])[] = [
        [["extra", ...agents], 2, /extra/],
        [["--agents", "missing.ts"], 2, /there is no file missing\.ts/],
        [["--tasks", "none.ts"], 3, /exports no task[^]*defineTask/],
        [[...agents, "--max-runs", "0"], 2, /--max-runs/],
        [[...agents, "--label", "gpu"], 2, /NAME=VALUE/],
        [[...agents, "--grace", "soon"], 2, /--grace/],
        [[...agents, "-p", "nowhere"], 2, /there is no folder nowhere/],
        [[...agents, "--token-file", "nowhere"], 2, /token's file/],
        [[...agents, "-c", "http://10.0.0.1:8765"], 2, /unencrypted[^]*--insecure/],
        [[...agents, "-c", fleet.url], 5, /not registered yet[^]*holdfast|HOLDFAST_TOKEN/],
      ];
      const results = await Promise.all(cases.map(([args]) => project.run("runner", ...args)));
      for (const [i, [args, code, says]] of cases.entries()) {
        const { code: got, stderr } = results[i]!;
        expect(stderr, args.join(" ")).toMatch(says);
        expect(got, `${args.join(" ")}: ${stderr}`).toBe(code);
        expect(stderr).not.toMatch(/\n {4}at /);
      }
    },
  );

  test(
    "a runner with an invalid token ends with advice, and does not try again without end",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      const env = { HOLDFAST_TOKEN: await fleet.token("registration", "r") };
      const runner = project.start(["runner", "-c", fleet.url, "--agents", "agents.ts", "--json"], { env });
      await runner.says('"started"');
      const runnerId = /rnr_[0-9a-f-]+/.exec(runner.stdout)![0];
      await fetch(`${fleet.url}/v1/runners/${runnerId}`, {
        method: "DELETE",
        headers: { authorization: `Bearer ${fleet.adminToken}` },
      });
      await vi.waitFor(() => expect(runner.child.exitCode).not.toBeNull(), { ...PATIENCE, timeout: 50_000 });
      const { code, stderr } = await runner.finished;
      expect(code).toBe(5);
      expect(stderr).toContain("E_");
    },
  );
});
