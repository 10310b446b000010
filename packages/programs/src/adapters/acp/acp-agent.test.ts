// The model and the mode of a program of the Agent Client Protocol, messages to it, and output of its
// commands.

import { fakeableTimers } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test, vi } from "vitest";

import { ExternalSession } from "../../testing/external-session.ts";
import { acpCall } from "./acp-calls.ts";
import { optionRequest } from "./acp-options.ts";
import { AcpUpdates } from "./acp-updates.ts";

let session: ExternalSession | undefined;
afterEach(async () => {
  await session?.dispose();
  session = undefined;
});

test("a model and a mode are set in each process of a session, and the mode also when none was asked for", async () => {
  session = new ExternalSession("opencode", { rules: [], model: "second" });
  await session.converse("hello", { profile: "p" });
  await session.say("hello again");
  expect(session.lines("chosen")).toEqual(["second build", "second build"]);
});

test("a model that the program does not offer ends the turn, and the error names those that it offers", async () => {
  session = new ExternalSession("opencode");
  await session.converse("hello", { model: "third" });
  const { content } = (await session.entries()).at(-1) ?? {};
  expect(content).toContain('opencode offers no model "third"; it offers first, second');
  expect(session.lines("chosen")).toEqual([]);
});

test("an older program is asked for its mode in the older way", () => {
  const modes = { currentModeId: "ask", availableModes: [{ id: "ask" }, { id: "code" }] };
  expect(optionRequest({ modes }, { category: "mode", value: "ask" }, "old")).toBeUndefined();
  expect(optionRequest({ modes }, { category: "mode", value: "code" }, "old")).toEqual({
    method: "session/set_mode",
    params: { modeId: "code" },
  });
  expect(() => optionRequest({ modes }, { category: "model", value: "m" }, "old")).toThrow(
    'old offers no choice of a model, and "m" was asked for',
  );
});

test("the output of a command of the Codex bridge is the result of its call", () => {
  const events: unknown[] = [];
  const updates = new AcpUpdates((event) => events.push(event));
  const content = [{ type: "terminal", terminalId: "c" }];
  const call = {
    toolCallId: "c",
    kind: "execute",
    status: "in_progress",
    rawInput: { command: "ls" },
    content,
  };
  updates.update({ sessionUpdate: "tool_call", ...call });
  for (const data of ["a.t", "xt\n"]) {
    const piece = { terminal_output_delta: { data } };
    updates.update({ sessionUpdate: "tool_call_update", toolCallId: "c", _meta: piece });
  }
  updates.update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" });
  expect(events.at(-1)).toEqual({ type: "tool_result", id: "c", text: "a.txt\n", isError: false });
});

test("a rule decides about the file of a call without an input", async () => {
  session = new ExternalSession("gemini", {
    rules: [{ decision: "allow", tool: "edit_file", pattern: "docs/**" }],
  });
  await session.converse("ask:docs/a.txt", { profile: "p" });
  expect(session.lines("answers").join()).toContain('"optionId":"yes"');
});

test("the title of a command without an input is the command only of a program that is known for it", () => {
  const asked = (titlesAreCommands: boolean): object => {
    const updates = new AcpUpdates(() => {}, { titlesAreCommands });
    const locations: readonly string[] = [];
    updates.call({ toolCallId: "c", kind: "execute", title: "git diff", locations }, true);
    const { name: tool, input } = updates.callOf("c");
    return { input, subject: acpCall({ tool, input }, "/project").subject };
  };
  expect(asked(true)).toEqual({ input: { command: "git diff" }, subject: "git diff" });
  expect(asked(false)).toEqual({ input: { title: "git diff" }, subject: null });
});

const execute = { sessionUpdate: "tool_call_update", toolCallId: "c", kind: "execute" };

test("a call is recorded with its command, which OpenCode names after the folder of the command", async () => {
  session = new ExternalSession("opencode");
  await session.converse("write:a.txt");
  const calls = (await session.entries()).flatMap(({ content }) => content);
  expect(JSON.stringify(calls)).toContain('{"filePath":"a.txt"}');
  expect(JSON.stringify(calls)).not.toContain("cwd");

  const events: unknown[] = [];
  const updates = new AcpUpdates((event) => events.push(event), { saysBegin: true });
  updates.update({ ...execute, status: "pending", rawInput: { cwd: "/p" } });
  updates.update({ ...execute, toolCallId: "d", status: "pending", rawInput: { cwd: "/p" } });
  updates.update({ ...execute, status: "in_progress", rawInput: { cwd: "/p", command: "ls" } });
  updates.flush(); // The other call has not begun.
  const input = { cwd: "/p", command: "ls" };
  expect(events).toEqual([{ type: "tool_call", id: "c", name: "execute", input }]);
});

test.each<[when: string, next: (updates: AcpUpdates) => void]>([
  ["its input has rested", () => vi.advanceTimersByTime(1_000)],
  [
    "the program says something",
    (updates) =>
      updates.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "So." } }),
  ],
  ["the turn ends", (updates) => updates.flush()],
  ["it has its result", (updates) => updates.update({ ...execute, status: "completed" })],
  ["its permission is asked for", (updates) => updates.call({ toolCallId: "c" }, true)],
])("a call that is written piece by piece is recorded whole, once %s", (_when, next) => {
  vi.useFakeTimers();
  try {
    const events: unknown[] = [];
    const updates = new AcpUpdates((event) => events.push(event), {}, fakeableTimers);
    updates.update({ ...execute, status: "pending", rawInput: {} });
    for (const command of ["git", "git push", "git push origin"]) {
      updates.update({ ...execute, rawInput: { command } });
      vi.advanceTimersByTime(900);
    }
    expect(events).toEqual([]);
    next(updates);
    const input = { command: "git push origin" };
    expect(events[0]).toEqual({ type: "tool_call", id: "c", name: "execute", input });
    vi.runAllTimers();
    expect(events.filter((event) => (event as { type: string }).type === "tool_call")).toHaveLength(1);
  } finally {
    vi.useRealTimers();
  }
});
