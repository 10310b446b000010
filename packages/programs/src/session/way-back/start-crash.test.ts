// An external agent that starts another agent by `start_agent_session`, interrupted at every commit, and at
// starts and ends of tasks. Its program repeats the call in each turn, which is the worst that it can do.
// `npm test` plays a sample of these points, and the crash-points campaign plays all of them.

import { defineAgent } from "@holdfast/runtime";
import { crashEverywhere } from "@holdfast/testkit";
import { expect, test } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";

import { externalAgent } from "../external-agent.ts";
import type { ExternalAgentProtocol, ExternalTurn } from "../external-agent-protocol.ts";
import { RemoteTurn } from "../../adapters/remote/remote-turn.ts";

const EVERY = isCampaign ? 1 : 5;
const CALL = { agent_name: "worker", parameters: { prompt: "work" } };

/** A program that starts the worker in each turn, and answers with its result. */
const program: ExternalAgentProtocol = {
  name: "repeats",
  capabilities: () => ({ steer: "none", followUp: "none", resume: "id", usage: "none", model: false }),
  find: () => Promise.resolve({ program: process.execPath, version: "1" }),
  locate: () => process.execPath,
  start: (turn) => Promise.resolve(work(turn)),
  sendMessage: (turn) => Promise.resolve(work(turn)),
  resume: (turn) => Promise.resolve(work(turn)),
  ruledCall: ({ tool }) => ({ tool, subjectKind: "text", subject: null }),
  endLost: () => Promise.resolve(),
};

function work({ wayBack }: ExternalTurn): RemoteTurn {
  return new RemoteTurn(async ({ emit, signal }) => {
    emit({ type: "session_started", model: "unknown", boundId: "own" });
    const over = new Promise<undefined>((resolve) =>
      signal.addEventListener("abort", () => resolve(undefined), { once: true }),
    );
    const result = await Promise.race([wayBack!.call("start_agent_session", CALL, signal), over]);
    return result === undefined ? { type: "aborted" } : { type: "answered", text: result.text };
  });
}

test("a crash between the call and its answer starts no second child", async () => {
  /** The sessions of the worker that have worked. */
  const workers = new Set<string>();
  const worker = defineAgent({
    name: "worker",
    run: (ctx) => ctx.run("work", ({ sessionId }) => (workers.add(sessionId), "worked")),
  });
  const report = await crashEverywhere(
    {
      name: "start_agent_session",
      agent: externalAgent(program, {
        folder: process.cwd(),
        permissionModes: ["default"],
        agents: [worker],
      }),
      input: "begin",
      loses: true,
      reset: () => workers.clear(),
      effects: () => workers.size,
    },
    undefined,
    { every: EVERY },
  );
  expect(report.outcome).toEqual({ status: "completed", output: "worked" });
  // The entries differ, because the program is told of a turn that was cut off.
  const wrong = report.failures.filter(({ got, expected }) => {
    const [end, wanted] = [got, expected] as { outcome?: unknown; effects?: unknown }[];
    return (
      end === undefined ||
      end.effects !== 1 ||
      JSON.stringify(end.outcome) !== JSON.stringify(wanted?.outcome)
    );
  });
  expect(wrong).toEqual([]);
}, 600_000);
