import { describe, expect, test } from "vitest";
import { CUT_OFF, CUT_OFF_RESULT, SESSION_CANCELLED } from "@holdfast/proto/view";
import type { Look } from "../../frame/command.ts";
import { ASCII } from "../../frame/terminal.ts";
import { callText, entryLines, requestLine } from "./entry-lines.ts";
import { OpenCalls } from "./shown-path.ts";

const same = (text: string): string => text;
const LOOK: Look = {
  paint: { bold: same, dim: same, red: same, green: same, yellow: same, cyan: same },
  symbols: ASCII,
  columns: 80,
};

/** The lines of a call and of its result. */
function shown(name: string, input: unknown, text: string, isError = false): readonly string[] {
  const open = new OpenCalls();
  const call = { text: "", toolCalls: [{ id: "c", name, input }] };
  const lines = entryLines("assistant", call, open, LOOK);
  expect(open.size).toBe(1);
  const result = entryLines("tool", { toolCallId: "c", name, text, isError }, open, LOOK);
  expect(open.size).toBe(0);
  return [...lines, ...result];
}

describe("the call of a command", () => {
  test("a long output shows its beginning", () => {
    expect(shown("shell", { command: "seq 9" }, "exit code 0\nstdout:\n1\n2\n3\n4\n5\n6\n7\n8\n9\n")).toEqual(
      ["> Run seq 9", "  + 1  (9 lines)", "    2", "    3"],
    );
  });

  test("an output that is one line longer is shown whole", () => {
    expect(shown("Bash", { command: "seq 4" }, "1\n2\n3\n4")).toEqual([
      "> Run seq 4",
      "  + 1",
      "    2",
      "    3",
      "    4",
    ]);
  });

  test("a failed command shows the end of its output", () => {
    const output = Array.from({ length: 20 }, (_, at) => `line ${at}`).join("\n");
    const lines = shown("Bash", { command: "make" }, output, true);
    expect(lines[1]).toBe("  x line 12  (20 lines)");
    expect(lines.at(-1)).toBe("    line 19");
  });

  test.each(["exit code 1", "ended by SIGKILL", "ended after its time of 2000 ms", "not started: no bash"])(
    "a command has failed by its end: %s",
    (end) => {
      expect(shown("shell", { command: "make" }, `${end}\nsome output`)[1]).toBe(`  x ${end}`);
    },
  );

  test("an output that speaks of an end is no failure", () => {
    expect(shown("Bash", { command: "log" }, "ended by a person")[1]).toBe("  + ended by a person");
  });

  test("a command cannot steer the terminal, and stays on one line", () => {
    const [line] = shown("shell", { command: `echo \u001b[2K\n${"x".repeat(5_000)}` }, "");
    expect(line).toContain("\\n");
    // oxlint-disable-next-line no-control-regex -- it is what is looked for.
    expect(line).not.toMatch(/\u001b/);
    expect(line!.length).toBeLessThanOrEqual(1_010);
  });
});

describe("the call of an edit", () => {
  test("an edit shows the lines that differ, and counts them", () => {
    const input = { path: "a.ts", oldText: "a\n\tb\nc\n", newText: "a\n\tB\n\tB2\nc\n" };
    expect(shown("edit_file", input, "a.ts: changed at line 2")).toEqual([
      "> Edit a.ts  +2 -1",
      "    -   b",
      "    +   B",
      "    +   B2",
      "  + a.ts: changed at line 2",
    ]);
  });

  test("an edit whose lines come with its result shows them there", () => {
    expect(shown("edit_file", { path: "a.ts" }, "a.ts\n@@ -1 +1 @@\n-b\n+B")).toEqual([
      "> Edit a.ts",
      "  + +1 -1",
      "    - b",
      "    + B",
    ]);
  });

  test("an edit of many lines is folded", () => {
    const content = Array.from({ length: 400 }, (_, at) => String(at)).join("\n");
    const lines = shown("Write", { file_path: "a", content }, "written");
    expect(lines[0]).toBe("> Write a  +400");
    expect(lines).toHaveLength(15);
    expect(lines[13]).toBe("    ... 388 more lines");
  });
});

test("texts and calls of a sub-agent of a program are marked as its own", () => {
  const content = { text: "Looking.", toolCalls: [], parentCallId: "p" };
  expect(entryLines("assistant", content, new OpenCalls(), LOOK)).toEqual(["sub-agent: Looking."]);
});

test("each result of several calls at once says which is its own", () => {
  const open = new OpenCalls();
  const toolCalls = ["one", "two"].map((name) => ({ id: name, name: "Bash", input: { command: name } }));
  expect(entryLines("assistant", { text: "", toolCalls }, open, LOOK)).toEqual(["> Run one", "> Run two"]);
  const result = (toolCallId: string) => entryLines("tool", { toolCallId, text: "done" }, open, LOOK);
  expect(result("two")).toEqual(["  + Run two: done"]);
  expect(result("one")).toEqual(["  + done"]);
});

test("the end of a long command is shown", () => {
  const command = `cd folder && ${"npm run build && ".repeat(10)}rm -rf /srv/app`;
  const [line] = entryLines(
    "assistant",
    { text: "", toolCalls: [{ id: "c", name: "shell", input: { command } }] },
    new OpenCalls(),
    LOOK,
  );
  expect(line).toMatch(/rm -rf \/srv\/app$/);
});

test("a plan is its steps", () => {
  const content = {
    steps: [
      { text: "Read", status: "completed" },
      { text: "Edit", status: "pending" },
    ],
  };
  expect(entryLines("plan", content, new OpenCalls(), LOOK)).toEqual(["  [x] Read", "  [ ] Edit"]);
});

test.each([null, "text", 7, {}, { text: 7, toolCalls: "x" }, { toolCalls: [null] }])(
  "an entry of an unknown form is no error: %j",
  (content) => {
    for (const role of ["assistant", "tool", "user", "plan", "thinking", "x"])
      expect(Array.isArray(entryLines(role, content, new OpenCalls(), LOOK))).toBe(true);
  },
);

test("a character that would not be seen is named in the lines of an edit, and colours of an output are left out", () => {
  const input = { path: "a.ts", oldText: "", newText: "  if (isAdmin\u200b) \u202ego();\n" };
  expect(shown("edit_file", input, "a.ts: changed at line 2")[1]).toBe(
    "    +   if (isAdmin\\u{200b}) \\u{202e}go();",
  );
  expect(shown("Bash", { command: "x" }, "\u001b[32mok\u001b[39m\n\u001b[31mno\u001b[39m")).toEqual([
    "> Run x",
    "  + ok",
    "    no",
  ]);
});

test("a plan is shown once: the steps of ours with its call, and a proposal with its question", () => {
  const todos = [
    { text: "read", status: "done" },
    { text: "write", status: "in_progress" },
  ];
  expect(shown("todo", { todos }, "The list has 2 steps, 1 of them open.")).toEqual([
    "> Plan",
    "  [x] read",
    "  [>] write",
    "  + The list has 2 steps, 1 of them open.",
  ]);
  expect(shown("propose_plan", { plan: "# Read\nThen write." }, "The plan was approved.")[0]).toBe(
    "> Propose a plan",
  );
  // The plan of a coding agent is an entry of its own.
  const ofProgram = { todos: [{ content: "read", status: "pending", activeForm: "reading" }] };
  expect(shown("TodoWrite", ofProgram, "Todos have been modified")[0]).toBe("> Plan");
});

test("a call that was cut off is no failure of the person's, and says what is unknown", () => {
  expect(shown("Bash", { command: "make deploy" }, CUT_OFF_RESULT, true)).toEqual([
    "> Run make deploy",
    "  ~ cut off before it ended; it may have taken effect",
  ]);
});

test("a text of the adapter for the agent is not shown as a request of the user", () => {
  expect(requestLine("Mend the login", LOOK)).toBe("> Mend the login");
  expect(requestLine(`${CUT_OFF} The request was: go`, LOOK)).toBe(
    `  told the agent: ${CUT_OFF} The request was: go`,
  );
  expect(requestLine(`${SESSION_CANCELLED})`, LOOK)).toBe("  (The session was cancelled.)");
});

test("a path begins at the folder of its session, and a long one keeps its file", () => {
  const open = new OpenCalls();
  open.event({ seq: 1, type: "schedule_task", input: { intent: { folder: "/home/me/shop" } } });
  const lines = (name: string, input: object): readonly string[] =>
    entryLines("assistant", { text: "", toolCalls: [{ id: "c", name, input }] }, open, LOOK);
  expect(lines("Read", { file_path: "/home/me/shop/src/app.ts" })).toEqual(["> Read src/app.ts"]);
  expect(lines("Read", { file_path: "/home/me/shopping.ts" })).toEqual(["> Read /home/me/shopping.ts"]);
  // A command is what runs.
  expect(lines("Bash", { command: "/home/me/shop/run" })).toEqual(["> Run /home/me/shop/run"]);
  const long = `/usr/lib/${"very-long-name/".repeat(6)}end/file.ts`;
  expect(lines("Read", { file_path: long })).toEqual([
    "> Read .../very-long-name/very-long-name/very-long-name/end/file.ts",
  ]);
  expect(callText({ verb: "Read", subject: long, isPath: true }, 200, "...")).toBe(
    "Read .../very-long-name/end/file.ts",
  );
});
