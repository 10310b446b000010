// Ids as people type them: a part of an id is enough, in each command that takes one.

import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Project } from "../testing/holdfast-process.ts";

const ASKS = `
import { defineAgent } from "holdfast";
export default defineAgent({ name: "asks", run: async (ctx, { prompt }) => {
  const answer = await ctx.requestInput({ prompt });
  return { answer };
} });
`;

let project: Project;
const ids: string[] = [];

beforeAll(async () => {
  project = new Project();
  writeFileSync(project.path("asks.ts"), ASKS);
  for (const prompt of ["Fix the login", "Write the news"]) {
    const started = await project.run("run", "asks.ts", "--input", JSON.stringify({ prompt }), "--park");
    expect(started.code, started.stderr).toBe(0);
    ids.push(started.stdout.trim());
  }
});
afterAll(() => project.dispose());

/** The beginning of the random end of an id, which is what lists show. */
const short = (id: string): string => id.slice(-12).slice(0, 8);

test("the beginning of the random end of an id means its session in each command", async () => {
  const [id = ""] = ids;
  const works = async (...args: string[]) => {
    const { code, stdout, stderr } = await project.run(...args);
    expect(code, `${args.join(" ")}: ${stderr}`).toBe(0);
    return stdout;
  };
  expect(await works("show", short(id))).toContain("Fix the login");
  expect(await works("show", `ses_${id.slice(4, 40)}`)).toContain("Fix the login");
  for (const command of ["title", "logs", "trace", "budget", "export", "pause", "unpause"])
    await works(command, short(id));
  expect(await works("fork", short(id), "--at", "0", "--json")).toContain(id);
  await works("schedule", "add", "0 3 * * *", "--signal", short(id), "tick", "--id", "nightly-tick");
  expect(await works("schedule", "list", "--json")).toContain(id);
  await works("schedule", "remove", "night");
  await works("approve", short(id));
  await works("answer", short(ids[1]!), '{"approved": false, "reason": "no"}');
  await works("cancel", short(id));
});

test("an id that means several sessions names each with its title, agent and age", async () => {
  const { code, stderr } = await project.run("show", "ses_0");
  expect(code).not.toBe(0);
  for (const [at, title] of ["Fix the login", "Write the news"].entries())
    expect(stderr).toMatch(
      new RegExp(`${short(ids[at]!)}: ${title} \\(asks, \\w+, started [\\d.]+ \\w+.* ago\\)`),
    );
  expect(stderr).toContain("expected: an id, a short id, or the beginning of exactly one of these");
  expect(stderr).toContain("give more characters of the id");
});
