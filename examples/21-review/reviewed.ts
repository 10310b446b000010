import { ClaudeCode, externalAgent, includedFacts, LineAgent } from "holdfast/programs";
import { defineAgent, local } from "holdfast";

const folder = process.cwd();
const author = externalAgent(new ClaudeCode({ folder }), { folder, permissionModes: ["acceptEdits"] });
const reviewer = externalAgent(new LineAgent({ facts: includedFacts("codex"), folder }), {
  folder,
  permissionModes: ["plan"],
});
const ROUNDS = 3;

/** Claude Code makes a change. Codex reviews it, without a right to write, until it approves. */
export default defineAgent({
  name: "reviewed",
  agents: [author, reviewer],
  async run(ctx, task: string): Promise<string> {
    let request = task;
    for (let round = 0; round < ROUNDS; round++) {
      await ctx.waitForChild(ctx.spawnAgent(local(author), request));
      const wanted = `The task was:\n${task}\nReview the change of this folder.\nAnswer APPROVED, or say what is wrong.`;
      const review = await ctx.waitForChild(ctx.spawnAgent(local(reviewer), wanted));
      if (review.includes("APPROVED")) return review;
      request = `A reviewer says:\n${review}\nCorrect your change. The task was:\n${task}`;
    }
    throw new Error(`the reviewer did not approve in ${ROUNDS} rounds`);
  },
});
