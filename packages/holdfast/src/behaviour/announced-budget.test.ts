// The budget of an agent file holds however its session was started: by the name of the agent, over the API, by
// a schedule.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ModelProject } from "../testing/model-project.ts";

let project: ModelProject;
beforeEach(async () => {
  project = await ModelProject.open();
});
afterEach(async () => {
  await project.run("local", "stop");
  await project.dispose();
});

test("a start at a coordinator has the budget of the agent's file, unless it gives one", async () => {
  const budget = "{ turns: 3, tokens: 300000, windows: [{ per: day, steps: 50 }], onExhausted: cancel }";
  project.write(
    ".holdfast/agents/thrifty.md",
    `---\nname: thrifty\ndescription: T.\nholdfast:\n  budget: ${budget}\n---\nHelp.\n`,
  );
  project.script = () => ({ text: "done" });
  await project.run("agents", "trust");
  const started = await project.run("local", "start", "--port", "0");
  expect(started.code, started.stderr).toBe(0);
  const { url } = await project.json<{ url: string }>("local", "status");
  const token = readFileSync(join(project.home, ".local/share/holdfast/admin-token"), "utf8").trim();
  const send = async (method: "POST" | "PUT", path: string, body: object) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) });
    return (await answer.json()) as Record<string, unknown>;
  };
  const limits = {
    maxTurns: 3,
    maxTokens: 300_000,
    windows: [{ per: "day", maxSteps: 50 }],
    onExhausted: "cancel",
  };
  const own = await send("POST", "/v1/sessions", { agent: "thrifty", input: "go" });
  expect(own["account"]).toMatchObject({ limits });
  const given = await send("POST", "/v1/sessions", {
    agent: "thrifty",
    input: "go",
    budget: { maxTurns: 9 },
  });
  expect((given["account"] as { limits: object }).limits).toEqual({ maxTurns: 9, windows: [] });
  const nightly = await send("PUT", "/v1/schedules/nightly", {
    cron: "0 3 * * *",
    start: { agent: "thrifty", input: "go" },
  });
  expect(nightly).toMatchObject({ start: { budget: limits } });

  const named = await project.run("run", "--agent", "thrifty", "--input", '"go"', "--session", "named");
  expect(named.code, named.stderr).toBe(0);
  const { accounts } = await project.json<{ accounts: { limits: { limit: string; max: number }[] }[] }>(
    "budget",
    "named",
  );
  expect(accounts[0]?.limits.map(({ limit, max }) => [limit, max])).toEqual([
    ["maxTokens", 300_000],
    ["maxTurns", 3],
    ["maxSteps", 50],
  ]);
});
