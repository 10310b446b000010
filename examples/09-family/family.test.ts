import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FILE = new URL("./family.ts", import.meta.url).pathname;
const REMARKS = ["a", "b", "c", "d", "e"].map((name) => `${name}.ts: fine`);

interface Standing {
  readonly accounts: readonly {
    readonly limits: readonly { readonly spent: number; readonly max: number }[];
  }[];
}

interface Listed {
  readonly status: string;
  readonly parent?: object;
}

describe("a family with one budget", () => {
  let project: Project;
  beforeEach(() => void (project = new Project()));
  afterEach(() => project.dispose());

  const isParked = async () => {
    const children = (await project.json<Listed[]>("list")).filter(({ parent }) => parent !== undefined);
    const statuses = children.map(({ status }) => status);
    return (
      statuses.includes("paused") && statuses.every((status) => status === "paused" || status === "completed")
    );
  };

  test("is never above it, is raised from another terminal, and goes on over a kill", async () => {
    const running = project.start(["run", FILE, "--session", "f", "--budget", "0.02usd"]);
    while (!(await isParked()));
    const { accounts } = await project.json<Standing>("budget", "f");
    expect(accounts[0]?.limits[0]?.spent).toBeLessThanOrEqual(20_000);
    running.kill("SIGKILL");
    await running.finished;

    expect(await project.run("budget", "f", "--raise", "1.00usd")).toMatchObject({ code: 0 });
    const { code, stdout } = await project.run("resume", "f");

    expect({ code, output: JSON.parse(stdout) as unknown }).toEqual({ code: 0, output: REMARKS });
    const after = await project.json<Standing>("budget", "f");
    expect(after.accounts[0]?.limits[0]).toMatchObject({ max: 1_000_000, spent: 30_000 });
    expect((await project.run("list")).stdout).toMatch(
      /\nf {2,}completed.*\n {2}f-0 .*\n {2}f-\d+ .*\n {2}f-\d+ /,
    );
  });

  test("without one nothing limits it", async () => {
    const { code, stdout } = await project.run("run", FILE);
    expect({ code, output: JSON.parse(stdout) as unknown }).toEqual({ code: 0, output: REMARKS });
  });
});
