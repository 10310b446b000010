// A question of an external program for a form, interrupted at every commit, and at starts and ends of tasks.
// The program asks the same in each turn, which is the worst that it can do. `npm test` plays a sample of
// these points, and the crash-points campaign plays all of them.

import { crashEverywhere } from "@holdfast/testkit";
import { expect, test } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";

import { AgentTurn } from "../program/agent-turn.ts";
import { externalAgent } from "../external-agent.ts";
import type { ExternalAgentProtocol, ExternalEnd, PermissionAnswer } from "../external-agent-protocol.ts";

const EVERY = isCampaign ? 1 : 12;
const FORM = {
  message: "Which size?",
  schema: { type: "object", properties: { size: { type: "string" } }, required: ["size"] },
};

/** A turn that asks, and answers with what it was told. */
class AskingTurn extends AgentTurn {
  readonly ended: Promise<ExternalEnd>;
  readonly #over = Promise.withResolvers<ExternalEnd>();

  constructor() {
    super();
    this.ended = this.#over.promise;
    this.give({ type: "session_started", model: "unknown", boundId: "own" });
    const request = { requestId: "1", toolCallId: "1", tool: "choose", input: {}, form: FORM };
    this.give({ type: "permission_request", request });
  }

  override answerPermission(_requestId: string, answer: PermissionAnswer): Promise<boolean> {
    this.#over.resolve({ type: "answered", text: JSON.stringify(answer) });
    return Promise.resolve(true);
  }

  abort(): Promise<ExternalEnd> {
    this.#over.resolve({ type: "aborted" });
    return this.ended;
  }
}

const program: ExternalAgentProtocol = {
  name: "asks",
  capabilities: () => ({ steer: "none", followUp: "none", resume: "id", usage: "none", model: false }),
  find: () => Promise.resolve({ program: process.execPath, version: "1" }),
  locate: () => process.execPath,
  start: () => Promise.resolve(new AskingTurn()),
  sendMessage: () => Promise.resolve(new AskingTurn()),
  resume: () => Promise.resolve(new AskingTurn()),
  ruledCall: ({ tool }) => ({ tool, subjectKind: "text", subject: null }),
  endLost: () => Promise.resolve(),
};

test("a crash between a question and its answer asks nobody again, and the answer reaches the program", async () => {
  const asked = new Set<number>();
  const report = await crashEverywhere(
    {
      name: "form",
      agent: externalAgent(program, { folder: process.cwd(), permissionModes: ["default"] }),
      input: "begin",
      reset: () => asked.clear(),
      world: async ({ runtime, sessionId, storage, until }) => {
        await until((session) => session?.waits.some(({ type }) => type === "input") === true);
        const session = await storage.reader.session(sessionId);
        const wait = session?.waits.find(({ type }) => type === "input");
        if (wait === undefined) return;
        asked.add(wait.id);
        await runtime.answer(sessionId, { size: "large" }, { question: wait.id });
      },
      effects: () => asked.size,
    },
    undefined,
    { every: EVERY },
  );
  expect(report.outcome).toEqual({
    status: "completed",
    output: JSON.stringify({ allowed: true, filled: { size: "large" } }),
  });
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
