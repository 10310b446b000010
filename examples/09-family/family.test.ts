import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { exampleProject } from "../../packages/holdfast/src/testing/example-project.ts";
import type { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FILE = "family.ts";
const REMARKS = ["a", "b", "c", "d", "e"].map((name) => `${name}.ts: fine`);

interface AccountView {
  readonly accounts: readonly {
    readonly limits: readonly { readonly spent: number; readonly max: number }[];
  }[];
}

describe("a family with one budget", () => {
  let project: Project;
  beforeEach(() => void (project = exampleProject(import.meta.url)));
  afterEach(() => project.dispose());

  test(
    "the tree never exceeds its budget, ends with exit code 9, and continues after a raise",
    ofCampaign,
    async () => {
      const parked = await project.run("run", FILE, "--session", "f", "--budget", "0.02usd");
      expect(parked).toMatchObject({ code: 9, stderr: expect.stringContaining("holdfast resume f") });
      const { accounts } = await project.json<AccountView>("budget", "f");
      expect(accounts[0]?.limits[0]?.spent).toBeLessThanOrEqual(20_000);

      expect(await project.run("budget", "f", "--raise", "1.00usd")).toMatchObject({ code: 0 });
      const { code, stdout } = await project.run("resume", "f");

      expect({ code, output: JSON.parse(stdout) as unknown }).toEqual({ code: 0, output: REMARKS });
      const after = await project.json<AccountView>("budget", "f");
      expect(after.accounts[0]?.limits[0]).toMatchObject({ max: 1_000_000, spent: 30_000 });
      expect((await project.run("list")).stdout).toMatch(
        /\nf {2,}completed.*\n {2}f-0 .*\n {2}f-\d+ .*\n {2}f-\d+ /,
      );
    },
  );

  test("without one nothing limits it", async () => {
    const { code, stdout } = await project.run("run", FILE);
    expect({ code, output: JSON.parse(stdout) as unknown }).toEqual({ code: 0, output: REMARKS });
  });
});
