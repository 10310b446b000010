// `holdfast export --tree` and `holdfast import` as a user calls them, between two databases.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const FAMILY = `import { defineAgent, local } from "holdfast";
const leaf = defineAgent({ name: "leaf", run: async (ctx) =>
  [await ctx.waitForSignal("first"), await ctx.waitForSignal("later")] });
const child = defineAgent({ name: "child", agents: [leaf], run: (ctx) => ctx.waitForChild(ctx.spawnAgent(local(leaf))) });
export default defineAgent({ name: "parent", agents: [child], run: (ctx) => ctx.waitForChild(ctx.spawnAgent(local(child))) });
`;
const ELSEWHERE = ["--db", "other.db"];

let project: Project;
beforeEach(async () => {
  project = new Project();
  writeFileSync(project.path("family.ts"), FAMILY);
  await project.run("run", "family.ts", "--session", "p", "--park");
  await project.run("signal", "p-0-0", "later", "2");
});
afterEach(() => project.dispose());

test("a tree is imported into another database and runs to its end there", ofCampaign, async () => {
  const written = await project.run("export", "p", "--tree");
  expect(written).toMatchObject({ code: 0, stdout: `${project.path("p.ndjson")}\n` });
  expect(written.stderr).not.toContain("are not in the file");
  const read = await project.run("import", "p.ndjson", ...ELSEWHERE);
  expect(read).toMatchObject({ code: 0, stdout: "p\n" });
  expect(read.stderr).not.toContain("did not come along");
  await project.run("signal", "p-0-0", "first", "1", ...ELSEWHERE);
  const resumed = await project.run("resume", "p", ...ELSEWHERE);
  expect(JSON.parse(resumed.stdout)).toEqual([1, 2]);
  for (const id of ["p", "p-0", "p-0-0"]) {
    expect(await project.json("show", id, ...ELSEWHERE)).toMatchObject({ status: "completed" });
    expect(await project.json("show", id)).toMatchObject({ status: "waiting" });
  }
  expect(await project.run("doctor", ...ELSEWHERE)).toMatchObject({ code: 0 });
  const again = await project.run("import", "p.ndjson", ...ELSEWHERE);
  expect(again).toMatchObject({ code: 0, stdout: "p\n" });
  expect(again.stderr).toContain("it is here already");
});

test(
  "another session under an id of the tree refuses the import, and nothing is written",
  ofCampaign,
  async () => {
    await project.run("export", "p", "--tree");
    await project.run("run", "family.ts", "--session", "p-0", "--park", ...ELSEWHERE);
    const before = await project.json("list", ...ELSEWHERE);
    const refused = await project.run("import", "p.ndjson", ...ELSEWHERE);
    expect(refused).toMatchObject({ code: 6, stdout: "" });
    expect(refused.stderr).toContain("there is another session p-0 already");
    expect(await project.json("list", ...ELSEWHERE)).toEqual(before);
    const renamed = await project.run("import", "p.ndjson", "--session", "q", "--db", "third.db");
    expect(renamed).toMatchObject({ code: 2, stdout: "" });
    expect(renamed.stderr).toContain("cannot be stored under another id");
  },
);

test("a damaged tree is refused whole, and its sessions are written to standard output, too", async () => {
  await project.run("export", "p", "--tree");
  const text = readFileSync(project.path("p.ndjson"), "utf8");
  expect((await project.run("export", "p", "--tree", "-o", "-")).stdout).toBe(text);
  writeFileSync(project.path("cut.bad"), text.slice(0, text.lastIndexOf('{"holdfast"')));
  expect(await project.run("import", "cut.bad", ...ELSEWHERE)).toMatchObject({ code: 10, stdout: "" });
  const listed = existsSync(project.path("other.db")) ? await project.json("list", ...ELSEWHERE) : [];
  expect(listed).toEqual([]);
});
