import { describe, expect, test } from "vitest";
import { parseDuration } from "./duration.ts";

describe("a time span", () => {
  test.each([
    ["90s", 90_000],
    ["10m", 600_000],
    ["1h30m", 5_400_000],
    ["2d", 172_800_000],
    ["1500ms", 1_500],
  ])("%s", (text, ms) => {
    expect(parseDuration(text, "--ttl")).toBe(ms);
  });

  test.each(["10", "0s", "-1s", "1.5h", "m", "10 m", "99999d", ""])("%j is refused", (text) => {
    expect(() => parseDuration(text, "--ttl")).toThrow(/is no time span/);
  });
});
