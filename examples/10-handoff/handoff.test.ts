import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { exampleProject } from "../../packages/holdfast/src/testing/example-project.ts";
import type { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FILE = "handoff.ts";

interface Listed {
  readonly sessionId: string;
  readonly status: string;
  readonly agent: { readonly name: string };
  readonly parent?: { readonly sessionId: string };
  readonly handedOffTo?: string;
}

describe("handing over", () => {
  let project: Project;
  beforeEach(() => void (project = exampleProject(import.meta.url)));
  afterEach(() => project.dispose());

  const named = async (name: string) =>
    (await project.json<Listed[]>("list")).find(({ agent }) => agent.name === name);

  test(
    "the successor takes the place, asks a person, and answers the parent of the first session",
    ofCampaign,
    async () => {
      const input = '{"text": "refund my invoice"}';
      const running = project.start(["run", FILE, "--session", "t", "--input", input]);
      while ((await named("billing"))?.status !== "input_required");
      await running.says(/child t-\S+ \(billing\) asks: Pay it back\?/);
      const [desk, billing] = [await named("desk"), await named("billing")];
      expect(desk).toMatchObject({ status: "completed", handedOffTo: billing?.sessionId });
      expect(billing).toMatchObject({ parent: { sessionId: "t" } });
      expect((await project.run("show", desk!.sessionId)).stdout).toMatch(/handed over to +t-/);

      await project.run("approve", billing!.sessionId);

      const { code, stdout } = await running.finished;
      expect({ code, output: JSON.parse(stdout) as unknown }).toEqual({
        code: 0,
        output: { by: "billing", refunded: true },
      });
    },
  );

  test("another ticket goes to another successor", async () => {
    const { stdout } = await project.run("run", FILE, "--input", '{"text": "it is slow"}');
    expect(JSON.parse(stdout)).toEqual({ by: "technical", advice: "restart it (it is slow)" });
  });
});
