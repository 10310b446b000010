// The retention of a real coordinator: its configuration, its database and its API.

import { writeFileSync } from "node:fs";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { afterEach, beforeEach, expect, test } from "vitest";
import { call, startCoordinator, tokenIn } from "../testing/coordinator-process.ts";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
beforeEach(() => {
  project = new Project();
});
afterEach(() => project.dispose());

test(
  "a coordinator whose configuration says so removes ended sessions, and the check of its database stays sound",
  ofCampaign,
  async () => {
    const first = await startCoordinator(project);
    const admin = tokenIn(first);
    for (const sessionId of ["old", "waiting"])
      await call(first.url, admin, "sessions", { agent: "greeter", sessionId });
    await call(first.url, admin, "sessions/old/cancel", { mode: "hard" });
    first.process.kill("SIGINT");
    await first.process.finished;

    const file = project.path("c.json");
    writeFileSync(file, JSON.stringify({ retention: { sessions: "1ms", audit: "1ms" } }));
    const second = await startCoordinator(project, "--config", file);
    const isRemoved = async (): Promise<boolean> =>
      (await call(second.url, admin, "sessions/old")).code === "session_not_found";
    await expect.poll(isRemoved, { timeout: 60_000 }).toBe(true);
    expect(await call(second.url, admin, "sessions/waiting")).toMatchObject({ status: "submitted" });
    const isTrimmed = async (): Promise<boolean> =>
      (await call(second.url, admin, "audit?limit=1")).rows[0].seq > 1;
    await expect.poll(isTrimmed, { timeout: 60_000 }).toBe(true);
    second.process.kill("SIGINT");
    await second.process.finished;
    expect(await project.run("doctor", "--db", project.path("fleet.db"))).toMatchObject({ code: 0 });
  },
);
