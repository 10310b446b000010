import { expect, test } from "vitest";
import { answerText, answerLines, viewQuestion } from "./question.ts";

test.each([
  ["a command", { command: "rm -rf x" }, "rm -rf x"],
  ["a command with other arguments", { command: "ls", cwd: "/" }, "command: ls\ncwd: /"],
  ["arguments", { path: "a", all: true, "a b": [1] }, 'path: a\nall: true\n"a b": [1]'],
  [
    "texts that look like something else",
    { a: "1", b: " x", c: "", d: '"' },
    'a: "1"\nb: " x"\nc: ""\nd: "\\""',
  ],
  ["a text with an end of its last line", { text: "a\n\nb\n" }, "text: |\n  a\n  \n  b"],
  ["a text without one", { text: "a\nb" }, "text: |-\n  a\n  b"],
  ["a text with several", { text: "a\n\n\n" }, "text: |+\n  a\n  \n  "],
  ["a list", [1], "[\n  1\n]"],
  ["no arguments", undefined, ""],
])("an approval shows %s of its call as it is", (_name, input, action) => {
  const view = viewQuestion({ prompt: "Allow?", details: { tool: "t", input, folder: "/w" } }, "approval");
  expect(view).toMatchObject({ kind: "approval", prompt: "Allow?", tool: "t", action, folder: "/w" });
});

test("an approval says whether the call may be edited, and which lines an edit changes", () => {
  const input = { path: "a.ts", old_string: "1", new_string: "2" };
  const view = viewQuestion(
    { prompt: "Allow?", details: { tool: "Edit", input, takesInput: true } },
    "approval",
  );
  expect(view.editable).toEqual(input);
  expect(view.work).toEqual({ verb: "Edit", subject: "a.ts", isPath: true });
  expect(view.change).toEqual([
    { type: "deleted", text: "1" },
    { type: "added", text: "2" },
  ]);
  const { editable } = viewQuestion({ prompt: "Allow?", details: { tool: "Edit", input } }, "approval");
  expect(editable).toBeUndefined();
});

test("an approval leaves out of an edit only the argument that its question names whole", () => {
  const besideOf = (prompt: string, more: object = {}): string | undefined => {
    const input = { path: "/w/a.ts", old_string: "1", new_string: "2", ...more };
    return viewQuestion({ prompt, details: { tool: "Edit", input, folder: "/w" } }, "approval").beside;
  };
  expect(besideOf("Allow Edit: /w/a.ts?")).toBe("");
  expect(besideOf("Allow Edit: a.ts?")).toBe("");
  expect(besideOf("Allow Edit: src/a.ts?")).toBe("path: /w/a.ts");
  expect(besideOf("Allow Edit: a.ts?", { mode: "a" })).toBe("mode: a");
});

test.each([
  [
    { decision: "deny", tool: "read_file", pattern: ".env" },
    "deny read_file(.env), which the call may break",
  ],
  [{ decision: "ask", tool: "shell", pattern: "git push:*" }, "ask shell(git push:*)"],
  [{ decision: "ask", tool: "shell", pattern: null }, "ask shell"],
  [null, undefined],
])("a call that is asked by the rule %j says so", (rule, askedBy) => {
  const details = { tool: "shell", input: { command: "cat x" }, rule };
  expect(viewQuestion({ prompt: "Allow?", details }, "approval").askedBy).toBe(askedBy);
});

test("a question of any shape keeps its details, and one about an uncertain effect is told apart", () => {
  expect(viewQuestion({ prompt: "Which?", details: [1] }, "any")).toEqual({
    kind: "question",
    prompt: "Which?",
    details: [1],
  });
  const prompt =
    'Task "pay" was running when its process ended, and its effect may have happened. Run it again?';
  expect(viewQuestion({ prompt, details: { taskId: "s-1" } }, "approval")).toMatchObject({
    kind: "uncertain_effect",
    taskId: "s-1",
  });
});

test("only the oldest question of a session is answered without its number", () => {
  expect(answerLines("s", { id: 3, answer: "approval" })).toEqual(["approve s 3", "approve s 3 --no"]);
  expect(answerLines("s", { id: 3, life: 2, answer: "approval" })[0]).toBe("approve s 3.2");
  expect(answerLines("s", { id: 3, answer: "any" })).toEqual(["answer s 3 JSON"]);
  expect(answerLines("s", { id: 3 })).toEqual(["approve s 3", "answer s 3 JSON"]);
});

test.each([
  [{ approved: true }, "yes"],
  [{ approved: false, reason: "too wide" }, "no: too wide"],
  [{ approved: true, remember: { scope: "project" } }, "yes (for this project)"],
  [{ approved: true, input: { a: 1 } }, '{"approved":true,"input":{"a":1}}'],
  [{ colour: "blue" }, '{"colour":"blue"}'],
])("the answer %j is shown as %s", (answer, text) => {
  expect(answerText(answer)).toBe(text);
});
