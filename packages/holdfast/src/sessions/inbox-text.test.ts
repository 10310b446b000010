import { expect, test } from "vitest";
import { askedLines, questionLine } from "@holdfast/terminal/view/describe-session";

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
