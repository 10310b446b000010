// `holdfast export` and `holdfast import` as a user calls them.

import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const WAIT = `import { defineAgent } from "holdfast";
export default defineAgent({ name: "wait", run: async (ctx) => {
  const large = await ctx.run("large", () => "ä".repeat(100_000));
  return [large.length, await ctx.waitForSignal("go"), await ctx.waitForSignal("go")];
} });
`;

describe("export and import", () => {
  let project: Project;
  beforeEach(async () => {
    project = new Project();
    writeFileSync(project.path("wait.ts"), WAIT);
    await project.run("run", "wait.ts", "--session", "s", "--park");
    await project.run("signal", "s", "go", "1");
  });
  afterEach(() => project.dispose());

  const files = () => readdirSync(project.folder).filter((name) => name.includes("ndjson"));

  test(
    "a session goes to another database and goes on there, its unread signal with it",
    ofCampaign,
    async () => {
      const written = await project.run("export", "s");
      expect(written).toMatchObject({ code: 0, stdout: `${project.path("s.ndjson")}\n` });
      expect(statSync(project.path("s.ndjson")).mode & 0o777).toBe(0o600);
      expect(files()).toEqual(["s.ndjson"]);
      const elsewhere = ["--db", "other.db"];
      const read = await project.run("import", "s.ndjson", ...elsewhere);
      expect(read).toMatchObject({ code: 0, stdout: "s\n" });
      expect(read.stderr).toContain("holdfast resume s --db other.db");
      await project.run("signal", "s", "go", "2", ...elsewhere);
      const resumed = await project.run("resume", "s", ...elsewhere);
      expect(JSON.parse(resumed.stdout)).toEqual([100_000, 1, 2]);
      // The one here is as it was.
      expect(await project.json("show", "s")).toMatchObject({ status: "waiting" });
    },
  );

  test("beside the one that is there, under another id", ofCampaign, async () => {
    await project.run("export", "s", "-o", "copy.ndjson");
    expect(await project.json("import", "copy.ndjson", "--session", "t")).toEqual({
      sessionId: "t",
      status: "waiting",
      resume: "holdfast resume t",
    });
    await project.run("signal", "t", "go", "3");
    expect(JSON.parse((await project.run("resume", "t")).stdout)).toEqual([100_000, 1, 3]);
  });

  test(
    "a session that is imported without its child resumes, and sees the child as failed",
    ofCampaign,
    async () => {
      writeFileSync(
        project.path("family.ts"),
        `import { defineAgent, local } from "holdfast";
       const child = defineAgent({ name: "child", run: (ctx) => ctx.waitForSignal("go") });
       export default defineAgent({ name: "parent", agents: [child],
         run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(child))).catch((error) => error.cause.code) });`,
      );
      await project.run("run", "family.ts", "--session", "p", "--park");
      for (const id of ["p", "p-0"]) await project.run("export", id);
      const elsewhere = ["--db", "other.db"];
      const alone = await project.run("import", "p.ndjson", ...elsewhere);
      expect(alone).toMatchObject({ code: 0, stdout: "p\n" });
      expect(alone.stderr).toContain("its children did not come along");
      const child = await project.run("import", "p-0.ndjson", "--session", "c", ...elsewhere);
      expect(child.stderr).toContain("it is no longer a child of p");
      expect(await project.run("resume", "p", ...elsewhere)).toMatchObject({
        code: 0,
        stdout: "session_not_found\n",
      });
      await project.run("signal", "c", "go", "7", ...elsewhere);
      expect(await project.run("resume", "c", "--agent", "family.ts", ...elsewhere)).toMatchObject({
        code: 0,
        stdout: "7\n",
      });
    },
  );

  test("a session that is imported again is there already, and is no error", async () => {
    await project.run("export", "s");
    const elsewhere = ["--db", "other.db"];
    await project.run("import", "s.ndjson", ...elsewhere);
    await project.run("signal", "s", "go", "2", ...elsewhere);
    await project.run("resume", "s", ...elsewhere);
    const again = await project.run("import", "s.ndjson", ...elsewhere);
    expect(again).toMatchObject({ code: 0, stdout: "s\n" });
    expect(again.stderr).toContain("it is here already, and nothing was changed");
    expect(await project.json("import", "s.ndjson", ...elsewhere)).toEqual({
      sessionId: "s",
      status: "completed",
      alreadyImported: true,
    });
  });

  test("a running session is written too", ofCampaign, async () => {
    const running = project.start(["resume", "s"]);
    await running.says('"go"');
    expect((await project.run("export", "s")).code).toBe(0);
    running.kill("SIGKILL");
    await running.finished;
  });

  test(
    "an impossible export or import is refused in one paragraph, and nothing is written",
    ofCampaign,
    async () => {
      await project.run("run", "wait.ts", "--session", "other", "--park");
      await project.run("export", "s");
      const text = readFileSync(project.path("s.ndjson"), "utf8");
      writeFileSync(project.path("cut.bad"), text.slice(0, 900));
      writeFileSync(project.path("changed.bad"), text.replace('"status":"waiting"', '"status":"working"'));
      writeFileSync(project.path("new.bad"), text.replace('"format":1', '"format":7'));
      mkdirSync(project.path("folder"));
      mkdirSync(project.path("closed"));
      chmodSync(project.path("closed"), 0o500);
      const refusals: readonly (readonly [string[], number, string])[] = [
        [["export"], 2, "the session's id"],
        [["export", "nobody"], 4, "E_SESSION_NOT_FOUND"],
        [["export", "s"], 2, "already"],
        [["export", "s", "-o", "nowhere/s.ndjson"], 10, "cannot be written"],
        [["import"], 2, "the file"],
        [["import", "none.bad"], 2, "there is no such file"],
        [["import", "folder"], 2, "cannot be read"],
        [["import", "s.ndjson", "--session", "other"], 6, "E_SESSION_EXISTS"],
        [["import", "s.ndjson", "--session", "other"], 6, "--session OTHER"],
        [["import", "s.ndjson", "--session", "../x"], 2, "cannot be the id"],
        [["import", "cut.bad", "--session", "t"], 10, "E_CORRUPT_RECORD"],
        [["import", "changed.bad", "--session", "t"], 10, "cut off or damaged"],
        [["import", "new.bad", "--session", "t"], 11, "E_VERSION_UNSUPPORTED"],
        [["import", "wait.ts", "--session", "t"], 10, "not a file of a session"],
      ];
      for (const [args, code, says] of refusals) {
        const refused = await project.run(...args);
        expect({ args, code: refused.code, stdout: refused.stdout }).toEqual({ args, code, stdout: "" });
        expect(refused.stderr).toContain(says);
        expect(refused.stderr).not.toMatch(/\n\s+at .*:\d+:\d+/);
      }
      expect(await project.json<object[]>("list")).toHaveLength(2);
      expect(readFileSync(project.path("s.ndjson"), "utf8")).toBe(text);
      expect(files()).toEqual(["s.ndjson"]);
    },
  );
});
