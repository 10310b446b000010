// An agent or a task that returns what cannot be stored ends in one paragraph, and its session says why.

import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectError } from "../testing/expect-error.ts";
import { Project } from "../testing/holdfast-process.ts";

describe("outputs that are not JSON", () => {
  let project: Project;
  beforeAll(() => {
    project = new Project();
    writeFileSync(
      project.path("output.ts"),
      `import { defineAgent } from "holdfast";
const cycle: Record<string, unknown> = {};
cycle.self = cycle;
let deep: unknown = 1;
for (let i = 0; i < 10_000; i++) deep = [deep];
const OUTPUTS: Record<string, unknown> = { function: () => 1, cycle, bigint: 10n, nan: NaN, map: new Map(), deep };
export default defineAgent({ name: "output", run: async (ctx, what: string) => {
  if (what.startsWith("task ")) return await ctx.run("make", () => OUTPUTS[what.slice(5)]);
  return what === "nul" ? "a\\u0000b" : what === "surrogate" ? "a\\ud800b" : OUTPUTS[what];
} });
`,
    );
  });
  afterAll(() => project.dispose());

  test.each(["function", "cycle", "bigint", "nan", "map", "deep"])(
    "%s: the session is paused for its code to be corrected, and says what cannot be recorded",
    async (what) => {
      const finished = await project.run("run", "output.ts", "--input", JSON.stringify(what));
      expectError(finished, 1, "E_NOT_JSON", ["cannot be recorded"]);
      const [session] = await project.json<{ status: string }[]>("list", "--limit", "1");
      expect(session).toMatchObject({ status: "paused", pauseReason: "agent_fault" });
    },
  );

  test.each(["task function", "task deep"])("%s: its task fails, and so the session", async (what) => {
    const finished = await project.run("run", "output.ts", "--input", JSON.stringify(what));
    expectError(finished, 1, "E_SESSION_FAILED", ["cannot be recorded"]);
    const [session] = await project.json<{ status: string }[]>("list", "--limit", "1");
    expect(session).toMatchObject({ status: "failed" });
  });

  test.each([
    ["nul", "a\u0000b"],
    ["surrogate", "a\ud800b"],
  ])("%s is kept as it is", async (what, output) => {
    await project.run("run", "output.ts", "--session", what, "--input", JSON.stringify(what));
    expect(await project.json("result", what)).toMatchObject({ output });
  });
});
