// `holdfast inbox`, over a database of this machine and over a coordinator.

import { writeFileSync } from "node:fs";
import type { InboxItem } from "@holdfast/proto/view";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { startCoordinator, tokenIn } from "../testing/coordinator-process.ts";
import { Project } from "../testing/holdfast-process.ts";

const AGENTS = `
import { defineAgent, defineTask } from "holdfast";
import { existsSync, writeFileSync } from "node:fs";
const pay = defineTask({ name: "pay", effect: "once", run: async () => {
  if (existsSync("paid")) return "again";
  writeFileSync("paid", "");
  process.kill(process.pid, "SIGKILL");
  await new Promise(() => setInterval(() => {}, 1e6));
} });
const asks = (name) => defineAgent({ name, tasks: [pay], run: async (ctx) => {
  if (name === "payer") return ctx.scheduleTask(pay, null, { onUncertain: "ask" });
  const { approved } = await ctx.requestInput({ prompt: "Allow shell?", details: {
    tool: "shell", input: { command: "rm -rf build \\u001b[2K\\u202e\\u200b\\n  && echo " + "x".repeat(600) }, folder: "/srv/app" } });
  return approved;
} });
export const child = asks("child");
export const payer = asks("payer");
`;
const CHILD = `export { child as default } from "./agents.ts";\n`;
const PAYER = `export { payer as default } from "./agents.ts";\n`;
const LEAD = `
import { defineAgent } from "holdfast";
import { child } from "./agents.ts";
export default defineAgent({ name: "lead", agents: [child], run: async (ctx) => {
  const handle = await ctx.spawnAgent(child);
  return ctx.waitForChild(handle);
} });
`;

let project: Project;

beforeEach(() => {
  project = new Project();
  writeFileSync(project.path("agents.ts"), AGENTS);
  writeFileSync(project.path("child.ts"), CHILD);
  writeFileSync(project.path("payer.ts"), PAYER);
  writeFileSync(project.path("lead.ts"), LEAD);
});
afterEach(() => project.dispose());

interface Inbox {
  readonly items: readonly InboxItem[];
  readonly next?: string;
}

describe.each(["a database", "a coordinator"])("over %s", (place) => {
  let where: readonly string[];
  let env: Record<string, string> = {};

  beforeEach(async () => {
    where = [];
    if (place === "a database") return;
    const coordinator = await startCoordinator(project);
    where = ["--url", coordinator.url, "--token-file", coordinator.adminTokenFile];
    env = { HOLDFAST_TOKEN: tokenIn(coordinator) };
  });
  const run = (...args: string[]) => project.run(...args, ...where);

  test(
    "the inbox lists what waits in every tree, and its command answers it",
    { ...ofCampaign, timeout: 60_000 },
    async () => {
      const parked = await run("run", "lead.ts", "--session", "top", "--park");
      expect(parked.code, parked.stderr).toBe(0);
      expect((await run("run", "child.ts", "--session", "one", "--park")).code).toBe(0);
      expect((await run("run", "child.ts", "--session", "two", "--park")).code).toBe(0);
      expect((await run("pause", "two")).code).toBe(0);
      // At a coordinator the claim of a dead process lasts as long as its lease.
      const hasUncertain = place === "a database";
      if (hasUncertain) {
        expect((await run("run", "payer.ts", "--session", "pay")).code).not.toBe(0);
        const lost = await run("resume", "pay", "--park");
        expect(lost.code, lost.stderr).toBe(0);
      }

      const { items } = await project.json<Inbox>("inbox", ...where);
      expect(items.map(({ kind, path }) => [kind, path.join(" > ")])).toEqual([
        ...(hasUncertain ? [["uncertain_effect", "payer"]] : []),
        ["pause", "child"],
        ["approval", "child"],
        ["approval", "lead > child"],
      ]);
      const below = items.at(-1)!;
      expect(below).toMatchObject({ tool: "shell", folder: "/srv/app" });
      expect(below.id).toMatch(new RegExp(`^${below.sessionId}-\\d+$`));
      expect(below.action).toContain("x".repeat(600));
      expect(Math.abs(Date.now() - below.since)).toBeLessThan(60_000);

      const { stdout } = await run("inbox");
      expect(stdout).toContain("lead > child");
      expect(stdout.replaceAll(/\s+/g, " ")).toContain(
        `rm -rf build \\u{1b}[2K\\u{202e}\\u{200b} && echo ${"x".repeat(600)}`,
      );
      for (const command of ["show", "logs"])
        expect((await run(command, "one")).stdout).toContain("\\u{200b}");
      expect(stdout).not.toContain("\u001b");
      expect(stdout).toContain("in /srv/app");
      expect(stdout.includes("for an admin")).toBe(place === "a coordinator");
      expect(stdout).toContain("holdfast unpause two");

      // The command as it is shown answers the question.
      const [approve = ""] = below.commands;
      expect((await project.shell(approve, { env })).code).toBe(0);
      const after = await project.json<Inbox>("inbox", ...where);
      const answered = after.items.find(({ id }) => id === below.id);
      expect(answered?.kind).toBe("answered");
    },
  );

  test("the pages of the inbox hold each session once", { ...ofCampaign, timeout: 60_000 }, async () => {
    for (const id of ["a", "b", "c"])
      expect((await run("run", "child.ts", "--session", id, "--park")).code).toBe(0);
    expect((await run("pause", "b")).code).toBe(0);
    const seen: string[] = [];
    let after: string[] = [];
    for (let page = 0; page < 3; page++) {
      const { items, next } = await project.json<Inbox>("inbox", "--limit", "1", ...after, ...where);
      seen.push(...items.map(({ sessionId }) => sessionId));
      if (page < 2) expect(next).toBeDefined();
      else expect(next).toBeUndefined();
      after = ["--after", next ?? ""];
    }
    expect(seen).toEqual(["c", "b", "a"]);
  });
});

test("an empty inbox says where it looked", async () => {
  const { code, stdout, stderr } = await project.run("inbox");
  expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  expect(stderr).toContain("nothing waits for a person in");
  expect(await project.json("inbox")).toEqual({ items: [] });
});

test.each(
  sampled(
    [
      ["an argument", ["ses_1"], 2, "is one argument too many"],
      ["a limit of none", ["--limit", "0"], 2, "--limit is not a number of sessions"],
      ["a limit below none", ["--limit=-5"], 2, "--limit is not a number of sessions"],
      ["a limit that is no number", ["--limit", "all"], 2, "--limit is not a number of sessions"],
      ["a limit beyond all", ["--limit", "1e9"], 2, "--limit is not a number of sessions"],
      ["an option that is misspelt", ["--jsn"], 2, "--json"],
      ["a page after nothing", ["--after", ""], 2, "--after needs a value"],
      ["a page after one id", ["--after", "ses_1"], 2, "does not say where a page of the inbox ends"],
      ["a page after a path", ["--after", "../../x,-,-"], 2, "does not say where a page of the inbox ends"],
      ["a page after a deleted session", ["--after", "gone,-,-"], 2, "was deleted since the page before"],
      ["a database that is missing", ["--db", "nowhere.db"], 2, "nowhere.db"],
      ["a database that is none", ["--db", "agents.ts"], 10, "agents.ts"],
      ["a coordinator that is away", ["--url", "http://127.0.0.1:9", "--token-file", "t"], 2, "--token-file"],
    ],
    2,
  ),
)("%s is an error with its exit code", { timeout: 30_000 }, async (_name, args, exit, message) => {
  await project.run("run", "child.ts", "--session", "a", "--park");
  const { code, stderr } = await project.run("inbox", ...args);
  expect(stderr).toContain(message);
  expect(code, stderr).toBe(exit);
  expect(stderr).not.toMatch(/^\s+at /m);
});
