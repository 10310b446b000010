import { expect, test } from "vitest";
import { countText } from "./session-counts.ts";

test("a count is that of its status or of all, and one that was cut says so", () => {
  const answer = {
    counts: [
      { status: "working", sessions: 12 },
      { status: "completed", sessions: 10_000, isCut: true },
    ],
  };
  expect(countText(answer, "working")).toBe("12");
  expect(countText(answer, "completed")).toBe("10,000+");
  expect(countText(answer, "failed")).toBe("0");
  expect(countText(answer)).toBe("10,012+");
});
