// O14 as processes: two coordinators over one PostgreSQL, one of which is killed, and then the server under
// the other.

import { writeFileSync } from "node:fs";
import { runSql, startServer, type PostgresServer } from "@holdfast/storage/postgres-testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import {
  call,
  completing,
  registerRunner,
  startCoordinator,
  tokenIn,
} from "../testing/coordinator-process.ts";
import { Project } from "../testing/holdfast-process.ts";

let server: PostgresServer;
let project: Project;

beforeAll(async () => {
  server = await startServer({ fsync: false });
  project = new Project();
});

afterAll(async () => {
  await project.dispose();
  await server.stop();
});

test(
  "O14: a second coordinator continues the sessions of the first, also after both have ended",
  ofCampaign,
  async () => {
    const storage = ["--storage", server.url];
    const first = await startCoordinator(project, ...storage);
    // A password may stand in several places of an address, and none of them is for the terminal.
    const second = await startCoordinator(project, "--storage", `${server.url}?password=opensesame`);
    const admin = tokenIn(first);
    const runner = await registerRunner(first);
    const poll = (url: string, pollId: string) =>
      call(url, runner.token, `runners/${runner.runnerId}/poll`, {
        pollId,
        free: 1,
        waitMs: 10_000,
        agents: [{ name: "greeter" }],
      });
    const finish = ({ url }: { url: string }, { sessionId, token }: { sessionId: string; token: string }) =>
      call(url, runner.token, "storage/commit", completing(sessionId, token, `told by ${sessionId}`));
    const result = ({ url }: { url: string }, sessionId: string) =>
      call(url, admin, `sessions/${sessionId}/result?waitMs=10000`);

    // Started through one while the runner waits at the other, which then ends it; the result is waited for
    // at the one.
    const waiting = poll(second.url, "p1");
    const { sessionId: one } = await call(first.url, admin, "sessions", { agent: "greeter", input: 1 });
    const { claims } = await waiting;
    expect(claims).toMatchObject([{ sessionId: one }]);
    const reported = result(first, one);
    expect((await finish(second, claims[0])).results).toMatchObject([{ status: "committed" }]);
    expect(await reported).toMatchObject({ output: `told by ${one}` });

    // Given to the runner by one that dies before it has heard of it again.
    const { sessionId: two } = await call(second.url, admin, "sessions", { agent: "greeter", input: 2 });
    const held = await poll(first.url, "p2");
    expect(held.claims).toMatchObject([{ sessionId: two }]);
    first.process.kill("SIGKILL");
    await first.process.finished;
    expect((await finish(second, held.claims[0])).results).toMatchObject([{ status: "committed" }]);
    expect(await result(second, two)).toMatchObject({ output: `told by ${two}` });

    // The server dies under the other coordinator, which reports that and continues.
    await server.kill();
    expect(await call(second.url, admin, `sessions/${one}`)).toMatchObject({
      status: 503,
      code: "storage_unavailable",
    });
    await server.start();
    expect(await result(second, one)).toMatchObject({ output: `told by ${one}` });
    second.process.kill("SIGINT");
    const { stdout, stderr } = await second.process.finished;
    expect(stdout + stderr).not.toMatch(/^\s+at .*:\d+:\d+/m);
    expect(stdout).toContain('"storage":"postgres://');
    expect(stdout + stderr).not.toContain("opensesame");
    const mistyped = await project.run("coordinator", "--storage", "pg://ada:open/se@same@db.example/fleet");
    expect(mistyped).toMatchObject({ code: 2, stderr: expect.stringContaining('"pg://…" is no storage') });

    const examined = await project.run("doctor", "--storage", server.url);
    expect(examined).toMatchObject({ code: 0, stdout: expect.stringContaining("2 completed") });
    await runSql(server.url, "UPDATE holdfast.state SET body = body || ' '");
    const damaged = await project.run("doctor", "--storage", server.url);
    expect(damaged).toMatchObject({ code: 10, stdout: expect.stringContaining("not what was written") });
  },
);

test(
  "a runner that names both coordinators goes on when the one that it asks is killed",
  ofCampaign,
  async () => {
    const storage = ["--storage", server.url];
    const [first, second] = [
      await startCoordinator(project, ...storage),
      await startCoordinator(project, ...storage),
    ];
    const admin = tokenIn(first);
    const { secret } = await call(first.url, admin, "tokens", { kind: "registration", name: "box" });
    writeFileSync(
      project.path("agents.ts"),
      `import { defineAgent } from "holdfast";
     import { setTimeout as delay } from "node:timers/promises";
     export const slow = defineAgent({
       name: "slow",
       run: (ctx) => ctx.run("wait", async () => (await delay(5_000), "done")),
     });`,
    );
    const words = ["runner", "-c", first.url, "-c", second.url, "--agents", "agents.ts"];
    const runner = project.start(words, { env: { HOLDFAST_TOKEN: secret }, stdin: "" });
    await runner.says("waiting for runs");
    const { sessionId } = await call(first.url, admin, "sessions", { agent: "slow" });
    await runner.says("Received run");
    first.process.kill("SIGKILL");
    const ended = await call(second.url, admin, `sessions/${sessionId}/result?waitMs=30000`);
    expect(ended).toMatchObject({ output: "done" });
    const { sessionId: later } = await call(second.url, admin, "sessions", { agent: "slow" });
    expect(await call(second.url, admin, `sessions/${later}/result?waitMs=30000`)).toMatchObject({
      output: "done",
    });
    expect(runner.stderr.match(/Registered as/g)).toHaveLength(1);
    runner.kill("SIGINT");
    expect((await runner.finished).code).toBe(130);
  },
);
