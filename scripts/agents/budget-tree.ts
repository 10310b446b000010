// A tree of three real coding agents, which the tests of `real-budget.test.ts` copy into a project. In its
// input `NAME` stands for the name of each.

import { ClaudeCode, CODEX, externalAgent, LineAgent, PI } from "@holdfast/programs";
import { defineAgent, local } from "holdfast";

const folder = process.cwd();
const allowed = ["./step.sh:*", "./gate.sh:*"].map((pattern) => {
  return { decision: "allow", tool: "shell", pattern } as const;
});
const options = {
  folder,
  permissionModes: ["default"],
  projectRules: { read: () => allowed, add: () => {} },
} as const;
const children = [
  { agent: externalAgent(new ClaudeCode({ folder }), options), model: "claude-sonnet-4-5" },
  { agent: externalAgent(new LineAgent({ facts: CODEX, folder }), options) },
  {
    agent: externalAgent(new LineAgent({ facts: PI, folder }), options),
    model: "anthropic/claude-sonnet-4-5",
  },
];

export default defineAgent({
  name: "lead",
  agents: children.map(({ agent }) => agent),
  run: async (ctx, work: string) => {
    const started = children.map(({ agent, model }) => {
      const text = work.replaceAll("NAME", agent.name);
      return ctx.spawnAgent(local(agent), { text, ...(model === undefined ? {} : { model }) });
    });
    const results = [];
    for (const child of started) results.push(await ctx.waitForChild(child));
    return results;
  },
});
