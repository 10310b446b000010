// Attempts that die with their process, as a budget shows and releases them in a terminal.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const AGENT = `import { defineAgent, defineTask } from "holdfast";
import { appendFileSync, existsSync } from "node:fs";
const work = defineTask({
  name: "work",
  cost: () => ({ maxTokens: 100, maxCostMicroUsd: 1_000 }),
  run: async (n: number, task) => {
    appendFileSync("work.txt", "x");
    while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 10));
    task.reportUsage({ model: "m", inputTokens: 20, outputTokens: 10, costMicroUsd: 300 });
    return n;
  },
});
export default defineAgent({ name: "worker", tasks: [work], run: async (ctx) => ctx.scheduleTask(work, 7) });
`;

interface Reported {
  readonly status: string;
  readonly accounts: readonly [{ readonly limits: readonly { readonly [name: string]: unknown }[] }];
}

describe("a budget whose attempts were lost in crashes", () => {
  let project: Project;
  beforeEach(() => {
    project = new Project();
    writeFileSync(project.path("worker.ts"), AGENT);
  });
  afterEach(() => project.dispose());

  const attempts = (): number =>
    existsSync(project.path("work.txt")) ? readFileSync(project.path("work.txt"), "utf8").length : 0;

  /** Run the session until its task runs, and kill the process. */
  async function crash(...args: string[]): Promise<void> {
    const before = attempts();
    const running = project.start(args);
    while (attempts() === before) await new Promise((resolve) => setTimeout(resolve, 10));
    running.kill("SIGKILL");
    await running.finished;
  }

  test(
    "a budget shows its lost part, releases that part once, and pays for the session again",
    ofCampaign,
    async () => {
      await crash("run", "worker.ts", "--session", "s", "--budget", "0.0025usd,250tokens");
      await crash("resume", "s");
      expect(await project.run("resume", "s")).toMatchObject({ code: 9 });
      expect(attempts(), "a third attempt is not paid for").toBe(2);

      const shown = await project.run("budget", "s");
      expect(shown.stdout).toMatch(/LIMIT +SPENT +LOST +RESERVED +LEFT/);
      expect(shown.stdout).toMatch(/cost +\$0\.0025 +\$0\.002 +\$0\.002 +\$0\.00 +\$0\.0005/);
      expect(shown.stderr).toContain("holdfast budget s --release-lost");
      expect((await project.run("show", "s")).stdout).toContain("tokens 200 of 250 (200 for lost attempts)");
      const reported = await project.json<Reported>("budget", "s");
      expect(reported.accounts[0].limits).toMatchObject([
        { limit: "maxCostMicroUsd", spent: 2_000, lost: 2_000 },
        { limit: "maxTokens", spent: 200, lost: 200 },
      ]);

      const released = await project.json<Reported>("budget", "s", "--release-lost");
      expect(released).toMatchObject({ status: "working", resume: "holdfast resume s" });
      expect(released.accounts[0].limits).toMatchObject([
        { spent: 0, lost: 0, left: 2_500 },
        { spent: 0, lost: 0, left: 250 },
      ]);
      const again = await project.run("budget", "s", "--release-lost");
      expect(again.stderr).toContain("the budget of session s has no charges for lost attempts");

      writeFileSync(project.path("go"), "");
      expect(await project.run("resume", "s")).toMatchObject({ code: 0, stdout: "7\n" });
      const { accounts } = await project.json<Reported>("budget", "s");
      expect(accounts[0].limits).toMatchObject([
        { spent: 300, lost: 0 },
        { spent: 30, lost: 0 },
      ]);
    },
  );

  test("one call raises the budget and releases its lost part", async () => {
    await crash("run", "worker.ts", "--session", "s", "--budget", "250tokens");
    await crash("resume", "s");
    const before = await project.json<Reported>("budget", "s");
    expect(before.accounts[0].limits).toMatchObject([{ spent: 100, lost: 100, reserved: 100 }]);
    const { accounts } = await project.json<Reported>(
      "budget",
      "s",
      "--release-lost",
      "--raise",
      "300tokens",
    );
    expect(accounts[0].limits).toMatchObject([{ max: 300, spent: 0, lost: 0, reserved: 100, left: 200 }]);
  });
});
