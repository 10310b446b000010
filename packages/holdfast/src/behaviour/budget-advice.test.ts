// A session that is paused because its next call needs more than is left: what it says is true, and what it
// advises cures.

import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ModelProject } from "../testing/model-project.ts";

let project: ModelProject;
beforeEach(async () => void (project = await ModelProject.open()));
afterEach(() => project.dispose());

interface Shown {
  readonly error: { readonly message: string; readonly fix: string };
}

async function paused(budget: string): Promise<Shown["error"]> {
  project.write(
    "saver.md",
    `---\nname: saver\ndescription: Saves.\nholdfast: { budget: ${budget} }\n---\nYou save.\n`,
  );
  await project.run("run", "saver.md", "go", "--session", "s", "--park");
  return (await project.json<Shown>("show", "s")).error;
}

const answered = async (): Promise<unknown> => (await project.run("resume", "s")).code;

test(
  "a window that is smaller than one call says so, and refuses a grant that could not help",
  ofCampaign,
  async () => {
    const { message, fix } = await paused("{ windows: [{ per: hour, tokens: 2000 }] }");
    const [, needed = ""] = /may need (\d+), and 2000 are left/.exec(message) ?? [];
    expect(Number(needed), message).toBeGreaterThan(2_000);
    expect(fix).toContain(`per hour to at least ${needed}`);
    const granted = await project.run("budget", "s", "--grant", "hour");
    expect(granted.code).not.toBe(0);
    const [, advised = ""] = /--raise (\d+tokens\/hour)/.exec(granted.stderr) ?? [];
    expect(await project.run("budget", "s", "--raise", advised)).toMatchObject({ code: 0 });
    expect(await answered()).toBe(0);
  },
);

test("the least limit that a pause names is enough, and one less is not", ofCampaign, async () => {
  const { fix } = await paused("{ tokens: 2000 }");
  const least = Number(/to at least (\d+)/.exec(fix)?.[1]);
  await project.run("budget", "s", "--raise", `${least - 1}tokens`);
  await project.run("resume", "s", "--park");
  expect((await project.json<Shown>("show", "s")).error.fix).toContain(`at least ${least}`);
  expect(await project.run("budget", "s", "--raise", `${least}tokens`)).toMatchObject({ code: 0 });
  expect(await answered()).toBe(0);
});

test("a grant says what it has made available, also where nothing was spent", ofCampaign, async () => {
  await paused("{ windows: [{ per: hour, tokens: 1000000, steps: 1 }] }");
  const { code, stderr } = await project.run("budget", "s", "--grant", "hour");
  expect({ code, stderr }).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/one more hour, with .*1 \(steps per hour\) left/),
  });
  const { accounts } = await project.json<{
    accounts: readonly { limits: readonly { left: number; limit: string }[] }[];
  }>("budget", "s");
  expect(accounts[0]!.limits.find(({ limit }) => limit === "maxSteps")?.left).toBe(1);
});
