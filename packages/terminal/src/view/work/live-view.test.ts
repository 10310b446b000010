// `liveView`: what is said once, whichever of its two sources comes first.

import type { Session, TraceEvent } from "@holdfast/core";
import { expect, test } from "vitest";
import type { Io } from "../../frame/command.ts";
import { liveView, type LiveView, type LiveViewOptions } from "./live-view.ts";

const SESSION = "ses_a";
const TASK = `${SESSION}-2`;

test("a text whose entry was shown before its tokens came is not shown again", () => {
  const { view, shown } = begun();
  view.event({ seq: 4, type: "schedule_task", id: 2, task: 2, taskId: TASK, kind: "model" });
  view.event({ seq: 5, type: "task_completed", task: 2, taskId: TASK, kind: "model" });
  view.event({ seq: 6, type: "append_entry", role: "assistant", content: { text: "I look." } });
  view.trace(token("I look."));
  view.event({ seq: 7, type: "append_entry", role: "assistant", content: { text: "I have looked." } });
  expect(shown()).toBe("agent  ses_a\nI look.\nI have looked.\n");
});

test("a question does not repeat the change that stands below its call, and advises no option where answers are typed", () => {
  const { view, shown } = begun();
  const input = { file_path: "a.ts", content: "x\n" };
  const toolCalls = [{ id: "c", name: "Write", input }];
  view.event({ seq: 4, type: "append_entry", role: "assistant", content: { text: "", toolCalls } });
  const details = { tool: "write_file", input, lastingRule: "write_file(a.ts)" };
  view.event({
    seq: 5,
    type: "request_input",
    id: 5,
    prompt: "Allow write_file: a.ts?",
    takes: "approval",
    details,
  });
  expect(shown()).not.toContain("content:");
  expect(shown().match(/^ +\+ x$/gm)).toHaveLength(1);
  expect(shown()).toContain("with --for session or --for project"); // Nobody types here, so a command is typed.
  const typed = begun({ last: undefined, hint: (show) => show() });
  typed.view.event({ seq: 5, type: "request_input", id: 5, prompt: "Allow?", takes: "approval", details });
  expect(typed.shown()).toContain("+ x"); // No call stands above it.
  expect(typed.shown()).not.toContain("--for");
});

test("a text whose entry was shown while its task runs is not shown again by its tokens", async () => {
  const { view, shown } = begun();
  view.event({ seq: 4, type: "schedule_task", id: 2, task: 2, taskId: TASK, kind: "model" });
  view.event({ seq: 5, type: "append_entry", role: "assistant", content: { text: "I look." } });
  view.trace(token("I "));
  view.trace(token("look."));
  view.trace(token("I have"));
  view.trace(token(" looked."));
  await written();
  expect(shown()).toBe("agent  ses_a\nI look.\nI have looked.");
});

test("a text that begins like the entry before it is shown whole", async () => {
  const { view, shown } = begun();
  view.event({ seq: 4, type: "append_entry", role: "assistant", content: { text: "I look." } });
  view.trace(token("I "));
  view.trace(token("write."));
  await written();
  expect(shown()).toBe("agent  ses_a\nI look.\nI write.");
});

test("a text that had begun when its end was shown is shown to its end", async () => {
  const { view, shown } = begun();
  view.event({ seq: 4, type: "schedule_task", id: 2, task: 2, taskId: TASK, kind: "model" });
  view.trace(token("I "));
  view.event({ seq: 5, type: "task_completed", task: 2, taskId: TASK, kind: "model" });
  view.trace(token("look."));
  await written();
  expect(shown()).toBe("agent  ses_a\nI look.");
});

test("a text that was streamed is not shown again by its entry", async () => {
  const { view, shown } = begun();
  view.event({ seq: 4, type: "schedule_task", id: 2, task: 2, taskId: TASK, kind: "model" });
  view.trace(token("I "));
  view.trace(token("look."));
  view.event({ seq: 5, type: "task_completed", task: 2, taskId: TASK, kind: "model" });
  view.event({ seq: 6, type: "append_entry", role: "assistant", content: { text: "I look." } });
  await written();
  expect(shown()).toBe("agent  ses_a\nI look.");
});

test("the entry of a draft brings the part that the draft lacks, and all of it where a part between is missing", async () => {
  const { view, shown } = begun();
  view.event({ seq: 4, type: "schedule_task", id: 2, task: 2, taskId: TASK, kind: "model" });
  view.draft({ taskId: TASK, text: "I ", isAnother: false });
  view.draft({ taskId: TASK, text: "look", isAnother: false });
  view.event({ seq: 5, type: "task_completed", task: 2, taskId: TASK, kind: "model" });
  view.event({ seq: 6, type: "append_entry", role: "assistant", content: { text: "I look." } });
  await written();
  expect(shown()).toBe("agent  ses_a\nI look.");
  expect(view.hasShown?.("I look.")).toBe(true);
  view.draft({ taskId: `${SESSION}-7`, text: "It ", isAnother: false });
  view.draft({ taskId: `${SESSION}-7`, text: "the end", isAnother: false });
  view.event({ seq: 9, type: "append_entry", role: "assistant", content: { text: "It is the end." } });
  await written();
  expect(shown()).toContain("It the end\nIt is the end.");
});

test("a draft that takes the place of another one says so, and no name of a task moves the cursor", async () => {
  const { view, shown } = begun();
  view.draft({ taskId: TASK, kind: "model\u001b[2J", text: "One", isAnother: false });
  view.draft({ taskId: TASK, kind: "model\u001b[2J", text: "Two\u001b[2J", isAnother: true });
  await written();
  expect(shown()).toMatch(/One[^]*model.*, from the start:\nTwo/);
  expect(shown()).not.toContain("\u001b");
});

test("the tokens of one turn of the event loop are one write, before the next line", async () => {
  const { view, writes } = begun();
  for (const text of ["I ", "look", "."]) view.trace(token(text));
  expect(writes).toEqual([]);
  await written();
  expect(writes).toEqual(["I look."]);
  view.trace(token(" Now."));
  view.event({ seq: 5, type: "append_entry", role: "user", content: "go on" });
  expect(writes).toEqual(["I look.", " Now."]);
  await written();
  expect(writes).toHaveLength(2);
});

test("the records of a script's call are no lines of the work", () => {
  const { view, shown } = begun();
  const content = { type: "script_started", call: "toolu_1", script: "count", version: "0f91" };
  view.event({ seq: 4, type: "append_entry", role: "event", content });
  view.event({ seq: 5, type: "append_entry", role: "assistant", content: { text: "It counts." } });
  expect(shown()).toBe("agent  ses_a\nIt counts.\n");
});

/** The writes of this turn of the event loop are done. */
function written(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function token(text: string): TraceEvent {
  const delta = { type: "token", text };
  return {
    type: "task_delta",
    sessionId: SESSION,
    taskId: TASK,
    kind: "model",
    attempt: 1,
    offset: 0,
    delta,
  } as TraceEvent;
}

/**
 * The view of a conversation that has begun, and what it has written.
 *
 * @param questions those that are answered by typing; by default nobody types.
 */
function begun(questions?: LiveViewOptions["questions"]): {
  readonly view: LiveView;
  readonly shown: () => string;
  /** Pieces of lines. */
  readonly writes: readonly string[];
} {
  let text = "";
  const writes: string[] = [];
  const same = (one: string): string => one;
  const notes = { paint: { bold: same, dim: same, cyan: same, green: same }, symbols: {}, columns: 80 };
  const io = {
    isJson: false,
    notes,
    status() {},
    call: (line: string) => `holdfast ${line}`,
    note: (line: string) => (text += `${line}\n`),
    write: (piece: string) => {
      writes.push(piece);
      text += piece;
    },
  } as unknown as Io;
  const view = liveView({
    io,
    sessionId: SESSION,
    agent: {},
    questions,
    isDurable: true,
    isVerbose: false,
  });
  const session = {
    sessionId: SESSION,
    agent: { name: "agent", version: "1", file: "/agent.md" },
    waits: [],
  };
  view.began(session as unknown as Session, false, new Set(), new Map());
  return { view, shown: () => text, writes };
}
