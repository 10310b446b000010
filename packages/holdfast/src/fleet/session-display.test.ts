// The output of `show` and `list` for a session at a coordinator: its runner or why none has it, and only
// commands that help.

import { writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineAgent } from "@holdfast/runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";
import { sessionBecomes } from "../testing/fleet-sessions.ts";
import { Project, type Finished } from "../testing/holdfast-process.ts";

const TIMEOUT = { timeout: 60_000 };

let project: Project;
let fleet: Fleet;
let runnerId: string;
beforeAll(async () => {
  project = new Project({ eachAsProcess: true });
  fleet = await openFleet();
  ({ runnerId } = await fleet.runner({ name: "box-1", agents: [busy], graceMs: 0 }));
});
afterAll(async () => {
  await project.dispose();
  await fleet.close();
});

const busy = defineAgent({ name: "busy", run: async (ctx) => ctx.run("work", () => delay(60_000)) });

function cli(...args: string[]): Promise<Finished> {
  const env = { HOLDFAST_TOKEN: fleet.adminToken };
  return project.start([...args, "--url", fleet.url], { env, stdin: "" }).finished;
}

test.concurrent(
  "a session at work names its runner, and nothing that would take it away",
  TIMEOUT,
  async () => {
    const sessionId = await startSession(fleet, { agent: "busy" });
    await sessionBecomes(fleet, sessionId, { status: "working" });
    const { stdout } = await cli("show", sessionId);
    expect(stdout).toContain(`held by      box-1 (${runnerId}), for `);
    expect(stdout).not.toContain("resume");
  },
);

test.concurrent(
  "a session that no runner matches shows what is missing, until when it waits, and how to start a runner",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    const sessionId = await startSession(fleet, { agent: "busy", demands: { gpu: "yes", hostname: "far" } });
    const { stdout } = await cli("show", sessionId);
    expect(stdout).toMatch(
      /not taken +no registered runner has gpu=yes, hostname=far; it fails at .* unless one comes\n/,
    );
    expect(stdout).toContain(`holdfast runner --agents FILE --label gpu=yes --url ${fleet.url}`);
    expect(stdout).not.toContain("resume");
  },
);

test.concurrent(
  "the process of one that was pushed says where it went, and how to watch it there",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    writeFileSync(
      project.path("waits.ts"),
      `import { defineAgent } from "holdfast";
     export default defineAgent({ name: "absent", run: async (ctx) => ctx.waitForSignal("go") });`,
    );
    const run = project.start(["run", "waits.ts", "--session", "pushed"]);
    await run.says("waits for");
    const { code } = await cli("push", "pushed");
    const { code: left, stderr } = await run.finished;
    expect([code, left]).toEqual([0, 6]);
    expect(stderr).toContain(`session pushed has moved to ${fleet.url}`);
    expect(stderr).toContain(`holdfast logs pushed -f --url ${fleet.url}`);
    expect(stderr).not.toContain("resume");
  },
);

test.concurrent(
  "a follower of a session that was pulled is told where it went",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    const env = { HOLDFAST_TOKEN: fleet.adminToken };
    const followed = ["run", "--agent", "absent", "--session", "pulled", "--url", fleet.url];
    const run = project.start(followed, { env, stdin: "" });
    await run.says("followed from here");
    const db = project.path("pulled.db");
    const { code } = await cli("pull", "pulled", "--db", db);
    const { code: left, stderr } = await run.finished;
    expect([code, left]).toEqual([0, 6]);
    expect(stderr).toContain(`session pulled has moved to ${db}`);
    expect(stderr).toContain(`holdfast logs pulled -f --db ${db}`);
  },
);

test.concurrent(
  "a session that was paused for want of a runner shows the command that continues it",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    const sessionId = await startSession(fleet, { agent: "absent" });
    const now = Date.now();
    const claim = await fleet.storage.claim({ sessionId, owner: "test", now, leaseMs: 15_000 });
    const token = claim.status === "claimed" ? claim.token : 0;
    const session = { status: "paused", pauseReason: "no_matching_runner" } as const;
    const batch = { firstSeq: 0, records: [], entries: [], consumed: [], session };
    await fleet.storage.commit([{ type: "commit_batch", sessionId, token, ...batch }], now);
    const [shown, listed] = await Promise.all([cli("show", sessionId), cli("list")]);
    const unpause = `holdfast unpause ${sessionId} --url ${fleet.url}`;
    expect(shown.stdout).toContain(`start one (holdfast runner --agents FILE --url ${fleet.url})`);
    for (const { stdout } of [shown, listed]) {
      expect(stdout).toContain(unpause);
      expect(stdout).not.toContain("resume");
    }
  },
);
