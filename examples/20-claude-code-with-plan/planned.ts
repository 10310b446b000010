import { ClaudeCode, externalAgent } from "holdfast/programs";
import { defineAgent, local } from "holdfast";

const folder = process.cwd();
const claude = externalAgent(new ClaudeCode({ folder }), {
  folder,
  permissionModes: ["plan", "acceptEdits"],
});

/** Claude Code plans, a person approves the plan or says what is wrong with it, and Claude Code carries it out. */
export default defineAgent({
  name: "planned",
  agents: [claude],
  async run(ctx, task: string): Promise<string> {
    let wish = "";
    for (;;) {
      const text = `${task}\n${wish}\nPlan this, and change nothing.`;
      const plan = await ctx.waitForChild(ctx.spawnAgent(local(claude), { text, permissionMode: "plan" }));
      const { approved, reason } = await ctx.requestInput({
        prompt: "Carry out this plan?",
        details: { plan },
      });
      if (!approved) {
        wish = `Your last plan was refused: ${reason ?? "no reason was given"}`;
        continue;
      }
      const work = {
        text: `Carry out this plan:\n${plan}\nThe task:\n${task}`,
        permissionMode: "acceptEdits",
      };
      return ctx.waitForChild(ctx.spawnAgent(local(claude), work));
    }
  },
});
