// A database that is removed while commands use it: waiting commands end with exit code 10, and nothing is
// lost silently.

import { readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const WAIT = `import { defineAgent } from "holdfast";
export default defineAgent({ name: "wait", run: (ctx) => ctx.waitForSignal("go") });
`;
/** Owns the database without running anything, and outlives the loss of it. */
const OWNER = `import { openSqliteStorage } from ${JSON.stringify(import.meta.resolve("@holdfast/storage/sqlite"))};
const storage = await openSqliteStorage({ path: ".holdfast/holdfast.db" });
console.log("owns");
process.stdin.resume().once("end", () => storage.close());
`;

let project: Project;
beforeEach(() => {
  project = new Project();
  writeFileSync(project.path("wait.ts"), WAIT);
  writeFileSync(project.path("owner.ts"), OWNER);
});
afterEach(() => project.dispose());

const database = (): string => project.path(".holdfast/holdfast.db");

test("a session that waits ends with exit code 10 when its database is removed, and goes on from the saved copy", async () => {
  const waiting = project.start(["run", "wait.ts", "--session", "desk"]);
  await waiting.says("waits for signal");
  rmSync(database());
  const { code, stderr } = await waiting.finished;
  expect(stderr).toContain("E_STORAGE_LOST");
  expect(code).toBe(10);

  const [copy] = readdirSync(project.path(".holdfast")).filter((name) => name.includes("-saved-"));
  expect(stderr).toContain(copy);
  renameSync(project.path(`.holdfast/${copy}`), database());
  const resumed = project.start(["resume", "desk"]);
  await resumed.says("waits for signal");
  expect(await project.run("signal", "desk", "go", '"now"')).toMatchObject({ code: 0 });
  expect(await resumed.finished).toMatchObject({ code: 0, stdout: expect.stringContaining("now") });
});

test("a signal to a session whose database was removed is not said to be stored", ofCampaign, async () => {
  const waiting = project.start(["run", "wait.ts", "--session", "desk"]);
  await waiting.says("waits for signal");
  rmSync(database());
  const { code, stdout, stderr } = await project.run("signal", "desk", "go");
  expect(stdout + stderr).not.toContain("is stored");
  // Its owner also detects that, and may have ended by now.
  expect([4, 10], stderr).toContain(code);
  expect(await waiting.finished).toMatchObject({ code: 10 });
});

test(
  "commands that work through the owner of a removed database end with exit code 10 and make no other one",
  ofCampaign,
  async () => {
    const owner = project.startNode("owner.ts");
    await owner.says("owns");
    const waiting = project.start(["run", "wait.ts", "--session", "desk"]);
    await waiting.says("waits for signal");
    rmSync(database());
    expect(await project.run("signal", "desk", "go")).toMatchObject({
      code: 10,
      stderr: expect.stringContaining("E_STORAGE_LOST"),
    });
    expect(await waiting.finished).toMatchObject({ code: 10 });
    expect(readdirSync(project.path(".holdfast"))).not.toContain("holdfast.db");
    expect(await project.run("export", "desk", "-o", "desk.json")).toMatchObject({ code: 0 });
    owner.child.stdin.end();
    await owner.finished;
  },
);
