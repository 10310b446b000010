// `holdfast run FILE --url` beside runners that offer the same agent: the session is followed to its end,
// wherever it runs.

import { defineAgent, local } from "@holdfast/runtime";
import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";
import { ended, signal, sessionBecomes } from "../testing/fleet-sessions.ts";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
let fleet: Fleet;
beforeEach(async () => {
  project = new Project({ eachAsProcess: true });
  fleet = await openFleet();
  writeFileSync(
    project.path("waits.ts"),
    `import { defineAgent } from "holdfast";
     export const waits = defineAgent({ name: "waits", run: async (ctx) => ctx.waitForSignal("go") });`,
  );
});
afterEach(async () => {
  await project.dispose();
  await fleet.close();
});

const waits = defineAgent({ name: "waits", run: async (ctx) => ctx.waitForSignal("go") });

test(
  "a session that a runner has is followed to its end, and told",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    await fleet.runner({ agents: [waits] });
    const sessionId = await startSession(fleet, { agent: "waits" });
    await sessionBecomes(fleet, sessionId, { status: "waiting" });
    const env = { HOLDFAST_TOKEN: fleet.adminToken };
    const run = project.start(["run", "waits.ts", "--session", sessionId, "--url", fleet.url], { env });
    await run.says("runs it; it is followed from here");
    await signal(fleet, sessionId, "go", "gone");
    const { code, stdout, stderr } = await run.finished;
    expect([code, stdout]).toEqual([0, "gone\n"]);
    expect(stderr).toContain('signal "go"');
    expect(stderr).toContain("completed");
  },
);

test("a session that no runner has any more is taken over", { timeout: 60_000 }, async () => {
  const sessionId = await startSession(fleet, { agent: "waits" });
  const gone = { sessionId, owner: "gone", now: Date.now(), leaseMs: 600_000 };
  const claim = await fleet.storage.claim(gone);
  const env = { HOLDFAST_TOKEN: fleet.adminToken };
  const run = project.start(["resume", sessionId, "--agent", "waits.ts", "--url", fleet.url], { env });
  await run.says("gone runs it; it is followed from here");
  if (claim.status !== "claimed") throw new Error(`the claim is ${claim.status}`);
  // As its lease would pass.
  await fleet.storage.commit([{ type: "release_claim", sessionId, token: claim.token }], Date.now());
  await run.says("no runner has it any more: it continues here");
  await signal(fleet, sessionId, "go", "on");
  expect(await run.finished).toMatchObject({ code: 0, stdout: "on\n" });
});

test(
  "logs -f follows a session to its end, also when the coordinator is away for a while",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    await fleet.runner({ agents: [waits] });
    const sessionId = await startSession(fleet, { agent: "waits" });
    await sessionBecomes(fleet, sessionId, { status: "waiting" });
    const env = { HOLDFAST_TOKEN: fleet.adminToken };
    const logs = project.start(["logs", sessionId, "-f", "--url", fleet.url], { env });
    await logs.says('"go"');
    await fleet.restart(1_000);
    await signal(fleet, sessionId, "go", "gone");
    const { code, stdout, stderr } = await logs.finished;
    expect([code, stderr.match(/cannot be reached/g)]).toEqual([0, ["cannot be reached"]]);
    expect(stdout).toContain("gone");
    const numbers = [...stdout.matchAll(/^ +(\d+) /gm)].map(([, number]) => Number(number));
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  },
);

test(
  "a pause elsewhere is reported, with the command that continues the session",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    await fleet.runner({ agents: [waits] });
    const sessionId = await startSession(fleet, { agent: "waits" });
    await sessionBecomes(fleet, sessionId, { status: "waiting" });
    const env = { HOLDFAST_TOKEN: fleet.adminToken };
    const run = project.start(["resume", sessionId, "--agent", "waits.ts", "--url", fleet.url], { env });
    await run.says("runs it; it is followed from here");
    await fleet.remote.commit([{ type: "pause_session", sessionId }], Date.now());
    const { code, stderr } = await run.finished;
    expect(code).toBe(1);
    expect(stderr).toContain(`unpause ${sessionId} --url ${fleet.url}`);
  },
);

test(
  "an agent that runners have is started by its name, at one that has what is demanded",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    const where = (name: string) => defineAgent({ name: "where", run: async (_ctx, input) => [name, input] });
    await fleet.runner({ agents: [where("poor")] });
    await fleet.runner({ agents: [where("rich")], labels: { gpu: "yes" } });
    const env = { HOLDFAST_TOKEN: fleet.adminToken };
    const byName = (...args: string[]) =>
      project.start(["run", "--agent", ...args, "--url", fleet.url], { env });
    const run = byName("where", "--input", "7", "--demand", "gpu=yes", "--session", "w");
    expect(await run.finished).toMatchObject({ code: 0, stdout: '[\n  "rich",\n  7\n]\n' });
    // Asked again it is the same session; and one of another agent is not it.
    const again = byName("where", "--input", "7", "--demand", "gpu=yes", "--session", "w");
    const other = byName("waits", "--session", "w");
    expect(await again.finished).toMatchObject({ code: 0, stdout: run.stdout });
    expect(await other.finished).toMatchObject({ code: 6, stderr: expect.stringContaining("session w") });
  },
);

test(
  "a follower of an unclaimed session sees the reason, and stops nothing by leaving",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    const env = { HOLDFAST_TOKEN: fleet.adminToken };
    const run = project.start(["run", "--agent", "absent", "--session", "a", "--url", fleet.url], { env });
    await run.says('no runner has claimed it yet: no registered runner offers the agent "absent"');
    run.kill("SIGINT");
    const { code, stderr } = await run.finished;
    expect(code).toBe(130);
    expect(stderr).toContain(`holdfast attach a --url ${fleet.url}`);
    expect(await fleet.storage.reader.session("a")).toMatchObject({ status: "submitted" });
  },
);

test(
  "a follower shows the question of a child at a runner, and the command that answers it",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    const child = defineAgent({
      name: "child",
      run: async (ctx) => (await ctx.requestInput({ prompt: "Go on?" })).approved,
    });
    const parent = defineAgent({
      name: "parent",
      agents: [child],
      run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(child))),
    });
    await fleet.runner({ agents: [parent, child] });
    const env = { HOLDFAST_TOKEN: fleet.adminToken };
    const run = project.start(["run", "--agent", "parent", "--session", "p", "--url", fleet.url], { env });
    await run.says("(child) asks: Go on?");
    await run.says(" --no");
    const [, approve] = /^ +(holdfast approve .*?) {3}/m.exec(run.stderr) ?? [];
    expect(await project.shell(approve!, { env })).toMatchObject({ code: 0 });
    expect(await run.finished).toMatchObject({ code: 0, stdout: "true\n" });
    expect(run.stderr.match(/asks: Go on/g)).toHaveLength(1);
  },
);

test(
  "a process that runs a session says what it does not heed of its children's demands",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    writeFileSync(
      project.path("parent.ts"),
      `import { defineAgent, remote } from "holdfast";
     const child = defineAgent({ name: "child", run: async () => "done" });
     export default defineAgent({ name: "parent", agents: [child], async run(ctx) {
       return ctx.waitForChild(ctx.spawnAgent(remote(child), undefined, { labels: { gpu: "yes" } }));
     } });`,
    );
    const env = { HOLDFAST_TOKEN: fleet.adminToken };
    const { stdout, stderr } = await project.start(["run", "parent.ts", "--url", fleet.url], {
      env,
      stdin: "",
    }).finished;
    expect(stdout).toBe("done\n");
    expect(stderr).toMatch(/child \S+ demands gpu=yes, and runs in this process all the same/);
    expect(stderr).toContain(`holdfast run --agent parent --url ${fleet.url}`);
  },
);

test(
  "a follower ends with exit code 9 when children at a runner have used up the budget",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    const step = defineAgent({
      name: "step",
      run: async (ctx) => [await ctx.run("one", () => 1), await ctx.run("two", () => 2)],
    });
    const family = defineAgent({
      name: "family",
      agents: [step],
      run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(step))),
    });
    await fleet.runner({ agents: [family, step] });
    const env = { HOLDFAST_TOKEN: fleet.adminToken };
    const started = ["run", "--agent", "family", "--session", "f", "--budget", "1steps"];
    const followed = await project.start([...started, "--url", fleet.url], { env, stdin: "" }).finished;
    expect(followed).toMatchObject({
      code: 9,
      stderr: expect.stringMatching(
        /continue with: holdfast budget f --raise 4steps .*\nand then: holdfast attach f/,
      ),
    });
    const [, raise] = /continue with: (.*)$/m.exec(followed.stderr) ?? [];
    expect(await project.shell(raise!, { env })).toMatchObject({ code: 0 });
    expect(await ended(fleet, "f")).toMatchObject({ status: "completed", output: "[1,2]" });
  },
);

test(
  "the commands that a used-up budget prints work as they are, also for a coordinator's session that runs here",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    writeFileSync(
      project.path("steps.ts"),
      `import { defineAgent } from "holdfast";
     export default defineAgent({ name: "steps", async run(ctx) {
       return [await ctx.run("one", () => 1), await ctx.run("two", () => 2)];
     } });`,
    );
    const env = { HOLDFAST_TOKEN: fleet.adminToken };
    const started = ["run", "steps.ts", "--session", "b", "--budget", "1steps", "--url", fleet.url];
    const { code, stderr } = await project.start(started, { env, stdin: "" }).finished;
    expect(code).toBe(9);
    const [, raise, resume] = /continue with: (.*)\nand then: (.*)$/m.exec(stderr) ?? [];
    expect(await project.shell(raise!, { env })).toMatchObject({ code: 0 });
    expect(await project.shell(resume!, { env })).toMatchObject({ code: 0 });
    expect(await ended(fleet, "b")).toMatchObject({ status: "completed", output: "[1,2]" });
  },
);
