// A task of A2A whose coordinator and runner are killed in the middle: its client asks again and has one result.

import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { TaskState, type Task } from "@a2a-js/sdk";
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from "@a2a-js/sdk/client";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { afterEach, expect, test, vi } from "vitest";
import { readLedger, startCoordinator, startRunnerProcess } from "../testing/fleet-processes.ts";
import { Project } from "../testing/holdfast-process.ts";

const AGENT = `
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { defineAgent } from "holdfast";
export default defineAgent({ name: "slow", run: async (ctx, { prompt }) => {
  await ctx.run("first", async (task) => appendFileSync("ledger", \`\${process.pid} \${task.sessionId} first\\n\`));
  return ctx.run("second", async () => {
    writeFileSync("second-began", ""); // The first step is recorded then.
    while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 20));
    return \`done: \${prompt}\`;
  });
} });
`;
const LEASE_MS = 6_000;
const PATIENCE = { timeout: 60_000, interval: 50 };

let project: Project;
afterEach(() => project.dispose());

test(
  "a task outlives kill -9 of its coordinator and of its runner, and its message starts nothing again",
  { ...ofCampaign, timeout: 180_000 },
  async () => {
    project = new Project({ eachAsProcess: true });
    writeFileSync(project.path("agents.ts"), AGENT);
    const first = await startCoordinator(project, { leaseMs: LEASE_MS });
    const runner = await startRunnerProcess(project, first, "one", ["--agents", "agents.ts"]);
    const client = await clientOf(first.url, first.adminToken);
    const message = {
      messageId: "the-only-one",
      contextId: "",
      taskId: "",
      role: 1,
      parts: [
        {
          content: { $case: "text" as const, value: "now" },
          metadata: undefined,
          filename: "",
          mediaType: "",
        },
      ],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    };
    const request = {
      tenant: "",
      message,
      configuration: {
        acceptedOutputModes: [],
        taskPushNotificationConfig: undefined,
        returnImmediately: true,
      },
      metadata: undefined,
    };
    const { id } = (await client.sendMessage(request)) as Task;
    await vi.waitFor(() => expect(existsSync(project.path("second-began"))).toBe(true), PATIENCE);
    expect(readLedger(project)).toHaveLength(1);

    runner.kill("SIGKILL");
    first.process.kill("SIGKILL");
    await Promise.all([runner.finished, first.process.finished]);
    const port = Number(new URL(first.url).port);
    const second = await startCoordinator(project, { leaseMs: LEASE_MS, port });
    await startRunnerProcess(project, second, "two", ["--agents", "agents.ts"]);
    expect(((await client.sendMessage(request)) as Task).id).toBe(id);

    const results: string[] = [];
    const states: TaskState[] = [];
    for await (const { payload } of client.resubscribeTask({ tenant: "", id })) {
      if (payload?.$case === "task") await delay(100).then(() => writeFileSync(project.path("go"), ""));
      if (payload?.$case === "statusUpdate") states.push(payload.value.status!.state);
      if (payload?.$case === "artifactUpdate")
        results.push(JSON.stringify(payload.value.artifact?.parts[0]?.content));
    }
    expect(results).toEqual([JSON.stringify({ $case: "text", value: "done: now" })]);
    expect(states.at(-1)).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(readLedger(project)).toHaveLength(1);
  },
);

async function clientOf(url: string, token: string) {
  const asCaller: typeof fetch = (at, init = {}) => {
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${token}`);
    return fetch(at, { ...init, headers });
  };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl: asCaller })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl: asCaller }),
  });
  return factory.createFromUrl(`${url}/a2a/slow/`);
}
