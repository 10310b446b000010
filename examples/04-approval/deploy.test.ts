import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { exampleProject } from "../../packages/holdfast/src/testing/example-project.ts";
import type { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FILE = "deploy.ts";

describe("approval from another terminal", () => {
  let project: Project;
  beforeEach(() => void (project = exampleProject(import.meta.url)));
  afterEach(() => project.dispose());

  /** The first terminal, as far as its question. */
  async function asking() {
    const running = project.start(["run", FILE, "--input", '{"version": "1.2.0"}']);
    await running.says("Deploy 1.2.0?");
    return { running, id: await running.sessionId() };
  }

  test.each(
    sampled([
      ["approve", [], { deployed: true, version: "1.2.0" }],
      ["approve", ["--no", "--reason", "not on a Friday"], { deployed: false, reason: "not on a Friday" }],
      ["signal", ["withdraw", '{"by": "Ada"}'], { deployed: false, reason: "withdrawn by Ada" }],
    ]),
  )("%s %j reaches the process that waits", async (command, others, output) => {
    const { running, id } = await asking();

    const sent = await project.run(command, id, ...others);

    expect(sent).toMatchObject({ code: 0, stdout: "" });
    const { code, stdout } = await running.finished;
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual(output);
  });

  test(
    "the question in full, with the command that answers it, is shown from elsewhere",
    ofCampaign,
    async () => {
      const { id } = await asking();
      const { stdout } = await project.run("show", id);
      expect(stdout).toContain("Deploy 1.2.0?");
      expect(stdout).toContain('"failed": 0');
      expect(stdout).toContain(`holdfast approve ${id}`);
    },
  );

  test(
    "a parked session that is approved while no process runs it deploys after a resume",
    ofCampaign,
    async () => {
      const parked = await project.run("run", FILE, "--park");
      expect(parked).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ses_[\w-]+\n$/) });
      const id = parked.stdout.trimEnd();
      const approved = await project.run("approve", id);
      expect(approved.stderr).toContain(`holdfast resume ${id}`);

      const { code, stdout } = await project.run("resume", id);

      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toEqual({ deployed: true, version: "1.0.0" });
      const { tasks } = await project.json<{ tasks: object[] }>("show", id);
      expect(tasks).toMatchObject([
        { kind: "run-checks", attempts: 1 },
        { kind: "deploy", attempts: 1 },
      ]);
    },
  );
});
