// Messages that reach a session after the answer of its program, and before its end.

import { setTimeout as delay } from "node:timers/promises";
import { createRuntime, defineAgent, MemoryStorage } from "@holdfast/runtime";
import { expect, test } from "vitest";

import { externalAgent } from "./external-agent.ts";
import type { ExternalAgentProtocol, ExternalTurn } from "./external-agent-protocol.ts";
import { RemoteTurn } from "../adapters/remote/remote-turn.ts";

const CALL = { agent_name: "worker", parameters: {}, mode: "sync" };

/** A program that starts the worker with its first request, and answers each request without waiting for it. */
function program(prompts: string[]): ExternalAgentProtocol {
  const work = ({ wayBack, prompt }: ExternalTurn): Promise<RemoteTurn> => {
    const isFirst = prompts.push(prompt) === 1;
    return Promise.resolve(
      new RemoteTurn(async ({ emit, signal }) => {
        emit({ type: "session_started", model: "unknown", boundId: "own" });
        if (isFirst) void wayBack!.call("start_agent_session", CALL, signal).catch(() => {});
        await delay(100);
        return { type: "answered", text: `Done: ${prompt}` };
      }),
    );
  };
  return {
    name: "hurries",
    capabilities: () => ({ steer: "none", followUp: "none", resume: "id", usage: "none", model: false }),
    find: () => Promise.resolve({ program: process.execPath, version: "1" }),
    locate: () => process.execPath,
    start: work,
    sendMessage: work,
    resume: work,
    ruledCall: ({ tool }) => ({ tool, subjectKind: "text", subject: null }),
    endLost: () => Promise.resolve(),
  };
}

test.each(["follow_up", "steer"])(
  "a %s after the last answer is the next request of a session that is no conversation",
  async (name) => {
    const prompts: string[] = [];
    const started = Promise.withResolvers<string>();
    const worker = defineAgent({
      name: "worker",
      run: (ctx) => {
        started.resolve(ctx.sessionId);
        return ctx.waitForSignal("go");
      },
    });
    const storage = new MemoryStorage();
    const runtime = createRuntime({ storage });
    try {
      const agent = externalAgent(program(prompts), {
        folder: process.cwd(),
        permissionModes: ["default"],
        agents: [worker],
      });
      const handle = await runtime.start(agent, "begin");
      const hasAnswered = async (): Promise<boolean> =>
        (await storage.reader.journal(handle.sessionId, 0, 1_000)).some(
          ({ type, ...record }) =>
            type === "task_completed" && JSON.stringify(record).includes("Done: begin"),
        );
      const workerId = await started.promise;
      while (!(await hasAnswered())) await delay(20);
      await handle.signal(name, "and the tests");
      await runtime.signal(workerId, "go", "worked");
      expect(await handle.result()).toBe("Done: and the tests");
      expect(prompts).toEqual(["begin", "and the tests"]);
    } finally {
      await runtime.close();
    }
  },
);
