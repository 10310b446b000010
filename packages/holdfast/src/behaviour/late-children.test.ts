// A session that goes on in another process starts agents there. Their sessions begin then, with the hooks and
// the servers of that moment, as if one process had run them all.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

const SERVER = new URL("../../../mcp/src/testing/mcp-server-program.mjs", import.meta.url).pathname;

let project: ModelProject;
beforeEach(async () => void (project = await ModelProject.open()));
afterEach(() => project.dispose());

const LEAD = `---
name: lead
description: Leads.
tools: Write, Bash, Task, mcp__notes__greet
mcpServers: [notes]
holdfast:
  agents: [helper, counter]
  subAgents:
    checker: { description: Checks., prompt: You check. }
  approvals: { allow: [Bash, "mcp__notes__*"] }
---
You lead.
`;
const GUARDED = `---
name: helper
description: Helps.
tools: Bash
holdfast: { approvals: { allow: [Bash] } }
---
You help.
`;

const COUNTER = `---
name: counter
description: Counts.
holdfast: { script: count }
---
`;

/** The results of the last tools that the agents have called, by what their prompts say. */
let seen: Record<string, readonly string[]>;

/** Writes the project. The lead asks a person before it starts the other two. */
async function park(): Promise<void> {
  seen = {};
  project.script = ({ system, messages, ...conversation }) => {
    const at = repliesOf({ system, messages, ...conversation });
    const who = /You (lead|help|check)/.exec(system)?.[1] ?? "";
    if (at > 0) seen[who] = messages.at(-1)!.toolResults.map(({ text }) => text);
    if (who === "lead")
      return [
        { toolCalls: [{ name: "write_file", input: { path: "plan.txt", content: "x" } }] },
        {
          toolCalls: ["helper", "lead.checker", "counter"].map((agent) => ({
            name: "delegate",
            input: { agent, input: agent === "counter" ? {} : "Go." },
          })),
        },
        { text: "Done." },
      ][at]!;
    if (at > 0) return { text: "Done." };
    const call =
      who === "help"
        ? { name: "shell", input: { command: "touch ran" } }
        : { name: "mcp__notes__greet", input: { text: "hello" } };
    return { toolCalls: [call] };
  };
  project.write(".holdfast/agents/lead.md", LEAD);
  project.write(".holdfast/agents/helper.md", GUARDED);
  project.write(".holdfast/agents/counter.md", COUNTER);
  const script = { name: "count", description: "Counts.", script_file: "count.sh", effect: "read" };
  project.write(".holdfast/scripts/count/script.json", JSON.stringify(script));
  project.write(".holdfast/scripts/count/count.sh", "echo three\n");
  project.write(".mcp.json", JSON.stringify({ mcpServers: { notes: { command: "node", args: [SERVER] } } }));
  const guard = { type: "command", command: "echo not here >&2; exit 2" };
  project.write(
    ".claude/settings.json",
    JSON.stringify({ hooks: { PreToolUse: [{ matcher: "Bash", hooks: [guard] }] } }),
  );
  await project.run("agents", "trust");
  const started = await project.run("run", "lead", "Go.", "--session", "late", "--park");
  expect(started.code, started.stderr).toBe(0);
  await project.run("approve", "late");
}

test("agents that a resumed session starts have the hooks of the project and the servers that their file names", async () => {
  await park();
  const resumed = await project.run("resume", "late");
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(existsSync(join(project.folder, "ran"))).toBe(false);
  expect(seen["help"]).toEqual([expect.stringContaining("not here")]);
  expect(seen["check"]).toEqual([expect.stringContaining("hello")]);
  expect(seen["lead"]).toEqual(["Done.", "Done.", expect.stringContaining("three")]);
});

test(
  "an agent whose server is gone does not begin in a resumed session, which goes on itself and reads why",
  ofCampaign,
  async () => {
    await park();
    rmSync(join(project.folder, ".mcp.json"));
    const resumed = await project.run("resume", "late");
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(seen["check"]).toBeUndefined();
    expect(seen["lead"]).toEqual([
      "Done.",
      expect.stringContaining('agent "lead.checker" asks for the MCP server "notes", which is not there'),
      expect.stringContaining("three"),
    ]);
  },
);
