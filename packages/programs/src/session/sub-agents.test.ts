// The sub-agents of an external program: their work is recorded as theirs, and never as the work or the
// answer of the agent itself.

import { afterEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { ExternalSession } from "../testing/external-session.ts";
import { codexResultOf } from "../adapters/codex/codex-items.ts";

let session: ExternalSession;
afterEach(() => session.dispose());

interface Content {
  readonly text?: string;
  readonly toolCalls?: readonly { readonly id: string; readonly name: string }[];
  readonly toolCallId?: string;
  readonly parentCallId?: string;
}

/** The entries as `whose role text`, with the call that started the sub-agent. */
async function said(): Promise<{ readonly lines: readonly string[]; readonly parents: ReadonlySet<string> }> {
  const lines: string[] = [];
  const parents = new Set<string>();
  for (const { role, content } of await session.entries()) {
    const {
      text,
      toolCalls = [],
      parentCallId,
    } = (typeof content === "string" ? { text: content } : content) as Content;
    if (parentCallId !== undefined) parents.add(parentCallId);
    const what = [text, ...toolCalls.map(({ name }) => name)].filter((one) => one !== "");
    lines.push(`${parentCallId === undefined ? "main" : "sub"} ${role}: ${what.join(" ")}`);
  }
  return { lines, parents };
}

const callIds = async (name: string): Promise<readonly string[]> =>
  (await session.entries()).flatMap(({ content }) =>
    ((content as Content).toolCalls ?? []).filter((call) => call.name === name).map(({ id }) => id),
  );

test("the work of a sub-agent of Claude Code names the call that started it, and is no answer", async () => {
  session = new ExternalSession("claude-code");
  await session.converse("sub-agent");
  const { lines, parents } = await said();
  expect(lines).toEqual([
    "main user: sub-agent",
    "main assistant: Task",
    "sub thinking: The sub-agent thinks.",
    "sub assistant: Bash",
    "sub tool: listed",
    "sub assistant: The sub-agent has looked.",
    "main tool: The sub-agent has looked.",
    "main assistant: Done: sub-agent",
  ]);
  expect([...parents]).toEqual(await callIds("Task"));
});

test(
  "a sub-agent that speaks last does not hide the answer, and its usage is counted once",
  ofCampaign,
  async () => {
    session = new ExternalSession("claude-code");
    await session.converse("sub-agent:late");
    expect((await said()).lines.slice(-2)).toEqual([
      "main assistant: Done: sub-agent:late",
      "sub assistant: The sub-agent has looked.",
    ]);
    // Four messages of 10 and 5 tokens, the answer, and the other model of the result.
    expect(await session.usage()).toMatchObject([{ inputTokens: 40 + 1_100 + 7, outputTokens: 20 + 20 + 3 }]);
  },
);

test("the work of a thread of Codex names the call that started it, and is no answer", async () => {
  session = new ExternalSession("codex");
  await session.converse("sub-agent");
  const { lines, parents } = await said();
  expect(lines).toEqual([
    "main user: sub-agent",
    "main assistant: spawn_agent",
    "sub thinking: The sub-agent thinks.",
    "sub assistant: shell",
    "main tool: completed",
    "sub tool: listed",
    "sub assistant: The sub-agent has looked.",
    "main assistant: Done: sub-agent",
  ]);
  expect([...parents]).toEqual(await callIds("spawn_agent"));
  // One call of the model of the sub-agent, and one of the agent itself.
  expect(await session.usage()).toMatchObject([{ inputTokens: 50 + 110, outputTokens: 6 + 20 }]);
});

test("a call that has waited for sub-agents of Codex has their last messages as its result", () => {
  const done = { status: "completed", message: "The sub-agent has looked." };
  const begun = { status: "pendingInit", message: null };
  const call = { type: "collabAgentToolCall", tool: "wait", status: "completed" };
  expect(codexResultOf({ ...call, agentsStates: { a: done, b: begun } }).text).toBe(done.message);
  expect(codexResultOf({ ...call, agentsStates: { b: begun } }).text).toBe("completed");
});
