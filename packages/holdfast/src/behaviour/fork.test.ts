// `holdfast fork` as a user calls it.

import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const AGENTS: Readonly<Record<string, string>> = {
  "fragile.ts": `import { existsSync } from "node:fs";
import { defineAgent } from "holdfast";
export default defineAgent({ name: "fragile", run: async (ctx) => {
  const first = await ctx.run("first", () => process.pid);
  const second = await ctx.run("second", () => {
    if (!existsSync("mended")) throw new Error("out of order");
    return "second";
  }, { retry: { maxAttempts: 1 } });
  return { first, second };
} });
`,
  "turns.ts": `import { defineAgent } from "holdfast";
const isText = { "~standard": { version: 1, vendor: "test", validate: (value) =>
  typeof value === "string" ? { value } : { issues: [{ message: "must be a text" }] } } };
export default defineAgent({ name: "turns", input: isText, initial: () => [], turn: async (ctx, seen: string[]) => {
  const next = [...seen, await ctx.run("look", () => ctx.input)];
  return next.length === 3 ? { done: next } : { state: next };
} });
`,
};

describe("fork", () => {
  let project: Project;
  beforeEach(() => {
    project = new Project();
    for (const [name, text] of Object.entries(AGENTS)) writeFileSync(project.path(name), text);
  });
  afterEach(() => project.dispose());

  test("a fork continues after a failure and keeps the finished work", ofCampaign, async () => {
    const failed = await project.run("run", "fragile.ts", "--session", "s");
    expect(failed).toMatchObject({ code: 1 });
    writeFileSync(project.path("mended"), "");
    const forked = await project.run("fork", "s", "--run", "--session", "f");
    expect(forked).toMatchObject({ code: 0, stderr: expect.stringContaining("f forked from s at 4") });
    const { first, second } = JSON.parse(forked.stdout) as { first: number; second: string };
    expect(second).toBe("second");
    const replayed = await project.run("replay", "s");
    expect(replayed.stdout).toContain(String(first));
    expect((await project.run("replay", "f")).code).toBe(0);
  });

  test("without --run the fork is stored, and the command that resumes it is shown", ofCampaign, async () => {
    await project.run("run", "turns.ts", "--input", '"old"', "--session", "s");
    const at = (await project.run("logs", "s", "--json")).stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as { type: string; seq: number })
      .find(({ type }) => type === "checkpoint")!.seq;
    const forked = await project.run("fork", "s", "--at", String(at), "--input", '"new"');
    expect(forked).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ses_[\w-]+\n$/) });
    const id = forked.stdout.trim();
    expect(forked.stderr).toContain(`continue with: holdfast resume ${id}`);
    const resumed = await project.run("resume", id);
    expect(JSON.parse(resumed.stdout)).toEqual(["old", "new", "new"]);
    expect(await project.json("fork", "s", "--session", "mine")).toMatchObject({
      sessionId: "mine",
      origin: "s",
      created: true,
      resume: "holdfast resume mine",
    });
    expect(await project.json("fork", "s", "--session", "mine")).toMatchObject({ created: false });
  });

  test("an impossible fork is refused in one paragraph, and nothing is stored", async () => {
    await project.run("run", "turns.ts", "--input", '"old"', "--session", "s");
    const refusals: readonly (readonly [string[], number, string])[] = [
      [["fork"], 2, "the session's id"],
      [["fork", "s", "--at", "x"], 2, "--at is not a position"],
      [["fork", "s", "--at", "1"], 2, "the nearest: 0, 2"],
      [["fork", "s", "--at", "900"], 2, "the journal has"],
      [["fork", "s", "--at", "2", "--input", '"new"'], 2, "expected: position 0"],
      [["fork", "s", "--at", "0", "--input", "5"], 2, "must be a text"],
      [["fork", "s", "--at", "0", "--input", "{"], 2, "not JSON"],
      [["fork", "s", "--tasks", "all"], 2, "neither rerun nor cancel"],
      [["fork", "s", "--session", "../x"], 2, "cannot be the id"],
      [["fork", "s", "--session", "s"], 6, "E_SESSION_EXISTS"],
      [["fork", "nobody"], 4, "E_SESSION_NOT_FOUND"],
    ];
    for (const [args, code, says] of refusals) {
      const refused = await project.run(...args);
      expect({ args, code: refused.code, stdout: refused.stdout }).toEqual({ args, code, stdout: "" });
      expect(refused.stderr).toContain(says);
      expect(refused.stderr).not.toMatch(/\n\s+at .*:\d+:\d+/);
    }
    expect(await project.json<object[]>("list")).toHaveLength(1);
    for (const at of ["1", "900"]) {
      const { stderr } = await project.run("fork", "s", "--at", at);
      const [, advised = ""] = /fix: .*`holdfast (fork s --at \d+)`/.exec(stderr) ?? [];
      expect(await project.run(...advised.split(" ")), stderr).toMatchObject({ code: 0 });
    }
  });
});
