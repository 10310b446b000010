// A program that writes nothing: its session is reported as unresponsive, and is never ended for that.

import { createRuntime, MemoryStorage } from "@holdfast/runtime";
import { expect, test } from "vitest";

import { externalAgent } from "./external-agent.ts";
import type { ExternalAgentProtocol } from "./external-agent-protocol.ts";
import { RemoteTurn } from "../adapters/remote/remote-turn.ts";

test("a silent program is reported as unresponsive again and again, its session works, and its late answer counts", async () => {
  const { promise: speaks, resolve: speak } = Promise.withResolvers<undefined>();
  const work = (): Promise<RemoteTurn> =>
    Promise.resolve(
      new RemoteTurn(async ({ emit }) => {
        emit({ type: "session_started", model: "unknown", boundId: "own" });
        await speaks;
        return { type: "answered", text: "Late." };
      }),
    );
  const program: ExternalAgentProtocol = {
    name: "silent",
    capabilities: () => ({ steer: "none", followUp: "none", resume: "id", usage: "none", model: false }),
    find: () => Promise.resolve({ program: process.execPath, version: "1" }),
    locate: () => process.execPath,
    start: work,
    sendMessage: work,
    resume: work,
    ruledCall: ({ tool }) => ({ tool, subjectKind: "text", subject: null }),
    endLost: () => Promise.resolve(),
  };
  const reports: unknown[] = [];
  const runtime = createRuntime({
    storage: new MemoryStorage(),
    tracer: {
      trace: (event) => {
        if (event.type === "task_delta" && event.delta.type === "progress") reports.push(event.delta.data);
      },
    },
  });
  const agent = externalAgent(program, {
    folder: process.cwd(),
    permissionModes: ["default"],
    silenceMs: 10,
  });
  const handle = await runtime.start(agent, "begin");
  await expect.poll(() => reports.length, { timeout: 30_000 }).toBeGreaterThan(1);
  expect(reports[0]).toEqual({ unresponsive: "no output for 0.01 s" });
  expect((await handle.session()).status).toBe("working");
  speak(undefined);
  expect(await handle.result()).toBe("Late.");
  await runtime.close();
});
