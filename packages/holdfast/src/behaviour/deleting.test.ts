// Deleting sessions, as a user meets it in a terminal.

import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const AGENTS: Readonly<Record<string, string>> = {
  "wait.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "wait", run: (ctx) => ctx.waitForSignal("go") });
`,
  "left.ts": `import { defineAgent, local } from "holdfast";
const heir = defineAgent({ name: "heir", run: async (ctx) => ctx.waitForSignal("go") });
export default defineAgent({ name: "parent", agents: [heir], run: async (ctx) => {
  ctx.spawnAgent(local(heir), undefined, { onParentEnd: "leave" });
  ctx.spawnAgent(local(heir));
  return "over";
} });
`,
};

describe("in a terminal", () => {
  let project: Project;
  beforeEach(() => {
    project = new Project();
    for (const [name, text] of Object.entries(AGENTS)) writeFileSync(project.path(name), text);
  });
  afterEach(() => project.dispose());

  const listed = async () =>
    (await project.json<{ sessionId: string }[]>("list")).map(({ sessionId }) => sessionId).toSorted();

  test("a session that has ended is deleted permanently, an unfinished one is not", ofCampaign, async () => {
    await project.run("run", "wait.ts", "--session", "w", "--park");
    const refused = await project.run("delete", "w");
    expect(refused).toMatchObject({ code: 6, stdout: "" });
    expect(refused.stderr).toContain("error[E_SESSION_NOT_ENDED]: session w is waiting");
    expect(refused.stderr).toContain("holdfast cancel w --hard");
    await project.run("cancel", "w", "--hard");
    expect(await project.run("delete", "w")).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "session w is deleted\n",
    });
    expect(await listed()).toEqual([]);
    expect(await project.run("show", "w")).toMatchObject({ code: 4 });
    expect(await project.run("delete", "w")).toMatchObject({ code: 4 });
    expect(await project.run("run", "wait.ts", "--session", "w", "--park")).toMatchObject({ code: 0 });
  });

  test("a tree is deleted as one, when all of it has ended", async () => {
    await project.run("run", "left.ts", "--session", "p");
    expect(await listed()).toEqual(["p", "p-0", "p-1"]);
    const refused = await project.run("delete", "p");
    expect(refused.code).toBe(6);
    expect(refused.stderr).toContain("error[E_SESSION_HAS_CHILDREN]: session p has children");
    expect(refused.stderr).toContain("holdfast delete p --subtree");
    const unfinished = await project.run("delete", "p", "--subtree");
    expect(unfinished.code).toBe(6);
    expect(unfinished.stderr).toMatch(/session p-\d below p is /);
    for (const id of ["p-0", "p-1"]) await project.run("cancel", id, "--hard");
    expect(await project.json("delete", "p", "--subtree")).toEqual({ sessionId: "p", sessions: 3 });
    expect(await listed()).toEqual([]);
  });

  test("the process that owns the database deletes the session", ofCampaign, async () => {
    await project.run("run", "wait.ts", "--session", "old", "--park");
    await project.run("cancel", "old", "--hard");
    const running = project.start(["run", "wait.ts", "--session", "w"]);
    await running.says("waits for");
    expect(await project.json("delete", "old")).toEqual({ sessionId: "old", sessions: 1 });
    expect(await project.run("delete", "w")).toMatchObject({ code: 6 });
    await project.run("signal", "w", "go", "7");
    expect(await running.finished).toMatchObject({ code: 0, stdout: "7\n" });
    expect(await listed()).toEqual(["w"]);
  });

  test("sessions that ended before a time are deleted, and a dry run shows them", async () => {
    await project.run("run", "left.ts", "--session", "p");
    await project.run("run", "wait.ts", "--session", "w", "--park");
    for (const id of ["p-0", "p-1"]) await project.run("cancel", id, "--hard");
    expect(await project.json("delete", "--ended-before", "1h")).toEqual({ sessions: 0, sessionIds: [] });
    const old = ["delete", "--ended-before", "1ms"];
    const shown = await project.run(...old, "--dry-run");
    expect(shown).toMatchObject({ code: 0, stderr: "3 sessions would be deleted\n" });
    expect(shown.stdout.trimEnd().split("\n").toSorted()).toEqual(["p", "p-0", "p-1"]);
    expect(await listed()).toEqual(["p", "p-0", "p-1", "w"]);
    expect(await project.run(...old)).toMatchObject({ code: 0, stderr: "3 sessions are deleted\n" });
    expect(await listed()).toEqual(["w"]);
  });

  test.each([
    [["delete", "a", "--ended-before", "1d"], "an id and --ended-before exclude each other"],
    [["delete", "--ended-before", "soon"], '"soon" is no time span'],
    [["delete", "a", "--dry-run"], "--dry-run is for --ended-before"],
    [["delete"], "the session's id"],
    [["delete", "a", "b"], '"b"'],
    [["delete", "a", "--all"], "--all"],
  ])("%j is refused", async (words, named) => {
    const { code, stderr } = await project.run(...words);
    expect({ code, isNamed: stderr.includes(named) }).toEqual({ code: 2, isNamed: true });
  });
});
