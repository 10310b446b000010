// Agents that several agents may start, and agents whose files are loaded several times.

import { createRuntime, MemoryStorage, type Agent } from "@holdfast/runtime";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadAgents } from "../run/load-agent.ts";
import { expectError } from "../testing/expect-error.ts";
import { ModelProject } from "../testing/model-project.ts";

let project: ModelProject;
beforeEach(async () => {
  project = await ModelProject.open();
  project.script = () => ({ text: "end" });
});
afterEach(() => project.dispose());

const agent = (name: string, fields: string): void =>
  project.write(
    `.claude/agents/${name}.md`,
    `---\nname: ${name}\ndescription: d\n${fields}\n---\nYou work.\n`,
  );
const run = (name: string) => project.run("run", name, "go");

function diamond(): void {
  agent("lead", "tools: Read, Task\nholdfast: { agents: [left, right] }");
  agent("left", "tools: Read, Task\nholdfast: { agents: [shared] }");
  agent("right", "tools: Read, Task\nholdfast: { agents: [shared] }");
  agent("shared", "tools: Read");
}

describe("an agent has one definition", () => {
  test("two agents that may start a third one run below another agent", async () => {
    diamond();
    await project.run("agents", "trust");
    expect(await run("lead")).toMatchObject({ code: 0, stdout: "end\n" });
  });

  test("agents that may start all others run, each of them", ofCampaign, async () => {
    for (const name of ["one", "two", "three"]) agent(name, "tools: Task, Read");
    agent("shared", "tools: Read");
    await project.run("agents", "trust");
    for (const name of ["one", "two", "three", "shared"]) expect(await run(name)).toMatchObject({ code: 0 });
  });

  test("a hundred agents of which each may start the next two start at once", ofCampaign, async () => {
    const names = Array.from({ length: 100 }, (_, n) => `a${n}`);
    for (const [n, name] of names.entries())
      agent(name, n < 98 ? `tools: Read, Task\nholdfast: { agents: [a${n + 1}, a${n + 2}] }` : "tools: Read");
    await project.run("agents", "trust");
    expect(await run("a0")).toMatchObject({ code: 0 });
  });

  test("one runtime takes the agents of files that were loaded one after another", async () => {
    diamond();
    await project.run("agents", "trust");
    const options = { cwd: project.path("."), env: project.variables, onSlow: () => {} };
    const files = ["shared", "left", "lead"].map((name) => `.claude/agents/${name}.md`);
    const agents: Agent[] = [];
    for (const file of files) agents.push(...(await loadAgents(file, options)).map((one) => one.agent));
    const runtime = createRuntime({ storage: new MemoryStorage(), agents });
    await runtime.close();
    expect(agents.map(({ name }) => name)).toEqual(["shared", "left", "lead"]);
  });

  test(
    "an agent without a sandbox is refused below agents with different sandboxes",
    ofCampaign,
    async () => {
      agent("lead", "tools: Read, Task\nholdfast: { agents: [left, right] }");
      agent("left", "tools: Read, Task\nholdfast: { agents: [shared], sandbox: virtual }");
      agent("right", "tools: Read, Task\nholdfast: { agents: [shared], sandbox: filesystem }");
      agent("shared", "tools: Read");
      await project.run("agents", "trust");
      expectError(await run("lead"), 3, "E_AGENT_INVALID", ["different sandboxes", "virtual", "filesystem"]);
      agent("shared", "tools: Read\nholdfast: { sandbox: virtual }");
      await project.run("agents", "trust");
      expect(await run("lead")).toMatchObject({ code: 0 });
    },
  );
});
