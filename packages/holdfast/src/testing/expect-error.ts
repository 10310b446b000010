// The parts that every error of the command has in common, however it comes about.

import { expect } from "vitest";
import type { PublicCode } from "@holdfast/terminal/frame/command-error";
import type { Finished } from "./holdfast-process.ts";

/** One paragraph on standard error with the error's code as people see it and these texts, no stack, and nothing on standard output. */
export function expectError(
  { code, stdout, stderr }: Finished,
  exit: number,
  shownCode: PublicCode,
  says: readonly string[],
): void {
  expect({ code, stdout, stderr }).toMatchObject({ code: exit, stdout: "" });
  expect(stderr).toContain(`error[${shownCode}]`);
  for (const text of says) expect(stderr).toContain(text);
  // Frames of a stack; the place of an error stands after "at: ".
  expect(stderr).not.toMatch(/^\s+at (?!:)\S+/m);
  expect(stderr).not.toContain("node:internal");
}
