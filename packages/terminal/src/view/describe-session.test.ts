import type { Session, Wait } from "@holdfast/core";
import { viewQuestion } from "@holdfast/proto/view";
import { expect, test } from "vitest";
import type { Look } from "../frame/command.ts";
import { askedLines, beforeResume, commandLines, describeWaits } from "./describe-session.ts";
import { pauseAdvice } from "./pause-advice.ts";

const signal = (name: string, id: number): Wait => ({ type: "signal", id, name });
const described = (names: readonly string[], pending: readonly string[] = [], file = "agent.ts") =>
  describeWaits({ sessionId: "s", agent: { file }, waits: names.map(signal) } as unknown as Session, {
    io: { call: (line) => `holdfast ${line}` },
    now: 0,
    pending: new Set(pending),
  }).map(({ what, commands }) => [what, ...commands]);

test("a conversation waits for a message, and programs' signals are shown once they have arrived", () => {
  const names = ["next_input", "ci", "review", "steer"];
  const message = ["your next message", "holdfast chat --session s", `holdfast signal s next_input '"TEXT"'`];
  expect(described(names)).toEqual([message]);
  expect(described(names, ["steer"])).toEqual([message, ['signal "steer"']]);
  // Code may use the same names for its own signals.
  expect(described(["next_input", "ci"])).toEqual([
    ['signal "next_input"', "holdfast signal s next_input [JSON]"],
    ['signal "ci"', "holdfast signal s ci [JSON]"],
  ]);
});

test("the signals that the adapter of an external agent listens for are no waits for people", () => {
  const names = ["external_agent.report", "interrupt", "steer", "follow_up"];
  expect(described(names, [], "external:claude-code")).toEqual([]);
  expect(described(names, ["steer"], "external:claude-code")).toEqual([['signal "steer"']]);
  expect(described(names, [], "")).toEqual([]); // A coordinator knows no source of an agent.
  expect(described(["steer"])).toEqual([['signal "steer"', "holdfast signal s steer [JSON]"]]);
});

test("a session that too many orderly stops have paused asks for a longer grace, and for no correction of code", () => {
  const error = { name: "HoldfastError", message: "task x was cut off 10 times", fix: "give a longer grace" };
  const paused = { sessionId: "s", status: "paused", pauseReason: "agent_fault", agent: {}, waits: [] };
  const session = { ...paused, error: { ...error, code: "session_paused" } } as unknown as Session;
  const io = { call: (line: string) => `holdfast ${line}` };
  expect(pauseAdvice(session, io, false)).toEqual({
    why: "task x was cut off 10 times: give a longer grace",
    commands: ["holdfast resume s"],
  });
  expect(beforeResume(session)).toBe("continue with");
  const faulty = { ...session, error: { ...error, code: "agent_fault" } } as unknown as Session;
  expect(pauseAdvice(faulty, io, false)?.why).toBe("its agent made a mistake: correct the code");
  expect(beforeResume(faulty)).toBe("correct the code, then");
});

test("a call is shown whole below its question, and not twice where the question has all of it", () => {
  const call = { tool: "shell", folder: "/w" };
  expect(askedLines({ ...call, prompt: "Allow shell: ls?", action: "ls" })).toEqual([
    "Allow shell: ls?",
    "in /w",
  ]);
  const askedBy = "deny read_file(.env), which the call may break";
  expect(askedLines({ ...call, askedBy, prompt: "Allow shell: ls?", action: "ls" })).toContain(
    `asked by the rule ${askedBy}`,
  );
  const long = `ls ${"x".repeat(300)}`;
  const prompt = `Allow shell: ${long}`.slice(0, 200);
  expect(askedLines({ ...call, prompt, action: long })).toEqual([prompt, `  ${long}`, "in /w"]);
});

test("the question about an edit shows its lines once, and the arguments that they do not say", () => {
  const lines = (tool: string, input: object, isChangeShown?: boolean) =>
    askedLines(
      viewQuestion({ prompt: `Allow ${tool}: a.ts?`, details: { tool, input } }, "approval"),
      isChangeShown,
    );
  const edit = { file_path: "a.ts", old_string: "one\ntwo\n", new_string: "one\n2\u200b\n" };
  expect(lines("Edit", edit)).toEqual(["Allow Edit: a.ts?", "  - two", "  + 2\\u{200b}"]);
  expect(lines("Edit", { ...edit, replace_all: true, file_path: "src/b.ts" })).toEqual([
    "Allow Edit: a.ts?",
    "  file_path: src/b.ts",
    "  replace_all: true",
    "  - two",
    "  + 2\\u{200b}",
  ]);
  expect(lines("Write", { file_path: "a.ts", content: "x\n" }, true)).toEqual(["Allow Write: a.ts?"]);
  const details = { tool: "Write", input: { file_path: "/w/src/a.ts", content: "x" }, folder: "/w" };
  expect(askedLines(viewQuestion({ prompt: "Allow Write: src/a.ts?", details }, "approval"))).toEqual([
    "Allow Write: src/a.ts?",
    "  + x",
    "in /w",
  ]);
  // A patch, and an edit among several with an argument of its own, say more than their lines.
  const edits = [{ old_string: "1", new_string: "2", replace_all: true }];
  expect(lines("MultiEdit", { file_path: "a.ts", edits }).join("\n")).toContain('"replace_all":true');
  expect(lines("apply_patch", { patch: "--- a.ts\n+++ a.ts\n@@ -1 +1 @@\n-1\n+2" }).join("\n")).toContain(
    "@@ -1",
  );
});

test("commands stand in one line where the terminal has room, and none is broken where it has not", () => {
  const lines = (columns: number): string =>
    commandLines(["holdfast approve a 1", "holdfast approve a 1 --no"], "or: ", { columns } as Look);
  expect(lines(54)).toBe("  or: holdfast approve a 1   holdfast approve a 1 --no");
  expect(lines(53)).toBe("  or:\n    holdfast approve a 1\n    holdfast approve a 1 --no");
});
