import { defined } from "@holdfast/core";
import { expect, test } from "vitest";
import type { Look } from "@holdfast/terminal/frame/command";
import { askedLines, questionLine } from "@holdfast/terminal/view/describe-session";
import { inboxLines } from "./inbox-text.ts";

const COMMAND = 'touch "a  b" \u001B[2K\u009B31m\u202E\u200B\u2028\u{E0041}\u00A0x';
const SHOWN = 'touch "a  b" \\u{1b}[2K\\u{9b}31m\\u{202e}\\u{200b}\\u{2028}\\u{e0041}\\u{a0}x';

test("a person sees each character of the command that runs, in all forms of a question", () => {
  expect(askedLines({ prompt: "Allow?", tool: "shell", action: COMMAND })).toEqual(["Allow?", `  ${SHOWN}`]);
  const details = { input: { command: COMMAND } };
  const [prompt = "", ...others] = askedLines({ prompt: `Allow shell: ${COMMAND}?`, details });
  expect(prompt).toBe(`Allow shell: ${SHOWN}?`);
  expect(others.join("\n")).toMatch(
    /"touch \\"a {2}b\\" \\u001b\[2K\\u009b31m\\u202e\\u200b\\u2028\\udb40\\udc41\\u\{a0\}x"/,
  );
  expect(questionLine(` ${COMMAND}\nrm x `, 200)).toBe(`${SHOWN}\\nrm x`);
});

test("the head of an item has the title in the rest of its line, and a short id on a terminal", () => {
  const sessionId = "ses_019ac842-77aa-7001-9c4e-3f9a1c20abcd";
  const paint = new Proxy({}, { get: () => (text: string) => text }) as Look["paint"];
  const item = {
    id: sessionId,
    kind: "question",
    sessionId,
    path: ["lead", "coder"],
    what: "Go on?",
  } as const;
  const head = (title: string | undefined, columns: number): string => {
    const look = { paint, symbols: { ask: "?", cut: "…" }, columns } as unknown as Look;
    const asked = { ...item, ...defined({ title }), since: 0, principal: "anybody", commands: [] };
    return inboxLines([asked], look, 5_000)[0]!;
  };
  expect(head("Find the fault", 80)).toBe("? question  lead > coder  Find the fault  3f9a1c20  5.0 s");
  expect(head("Find the fault in the login of the shop", 80)).toBe(
    "? question  lead > coder  Find the fault in the login of the s…  3f9a1c20  5.0 s",
  );
  expect(head(undefined, 80)).toBe("? question  lead > coder  3f9a1c20  5.0 s");
  expect(head("Find the fault", Infinity)).toBe(
    `? question  lead > coder  Find the fault  ${sessionId}  5.0 s`,
  );
});
