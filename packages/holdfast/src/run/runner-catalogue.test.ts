import { Redactor } from "@holdfast/system";
import { expect, test } from "vitest";
import { announcedReason } from "./runner-catalogue.ts";

test("a reason that leaves the machine has no secret, no place of the home folder, and no more text than the runner's note", () => {
  const redactor = new Redactor(["hunter2-hunter2"]);
  const announced = (reason: string) => announcedReason(reason, redactor, "/home/ada");
  expect(announced("cannot read /home/ada/.local/x.md:\n/home/ada is full")).toBe(
    "cannot read ~/.local/x.md: ~ is full",
  );
  expect(announced("refused: hunter2-hunter2")).not.toContain("hunter2");
  expect(announced("x".repeat(2_000))).toHaveLength(300);
  expect(announcedReason("in /tmp", redactor, "")).toBe("in /tmp");
});
