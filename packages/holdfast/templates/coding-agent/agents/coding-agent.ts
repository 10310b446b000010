import { defineAgent, local } from "holdfast";
import { ClaudeCode, externalAgent } from "holdfast/programs";

const folder = process.cwd();
/** The Claude Code of this machine. `Codex`, `OpenCode` and others are imported in the same way. */
const coder = externalAgent(new ClaudeCode({ folder }), {
  folder,
  permissionModes: ["plan", "acceptEdits"],
});

/** A coding agent plans, a person approves the plan, and the work is done on a git branch of its own. */
export default defineAgent({
  name: "coding-agent",
  agents: [coder],
  async run(ctx, task: string): Promise<string> {
    const plan = await ctx.waitForChild(
      ctx.spawnAgent(local(coder), {
        text: `${task}\nPlan this, and change nothing.`,
        permissionMode: "plan",
      }),
    );
    const { approved, reason } = await ctx.requestInput({
      prompt: "Carry out this plan?",
      details: { plan },
    });
    if (!approved) return `not carried out: ${reason ?? "no reason was given"}`;
    return ctx.waitForChild(
      ctx.spawnAgent(local(coder), {
        text: `Carry out this plan:\n${plan}\nThe task:\n${task}`,
        permissionMode: "acceptEdits",
        worktree: true,
      }),
    );
  },
});
