import { expect, test } from "vitest";
import { announcedRefusals } from "./announced-agent.ts";

test("refusals are announced within the limits of a registration, however many and long they are", () => {
  const announced = (problem: string) => announcedRefusals([{ name: "a", problem }])[0]?.problem;
  expect(announced("tools:\n\u001b[31mshell\u2028 ")).toBe("tools: [31mshell");
  expect(announced("\n")).toBe("it gave no reason");
  expect(announced("x".repeat(2_000))).toHaveLength(1_000);
  const many = Array.from({ length: 2_000 }, (_, at) => ({ name: `a${at}`, problem: "no" }));
  expect(announcedRefusals(many)).toEqual(many.slice(0, 1_000));
  const long = many.map(({ name }) => ({ name, problem: "ü".repeat(1_000) }));
  expect(announcedRefusals(long)).toHaveLength(131);
});
