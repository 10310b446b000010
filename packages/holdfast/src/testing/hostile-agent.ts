// An agent whose texts attack the page that shows them, and that asks for approval of a long command.

import { defineAgent } from "holdfast";

const HOSTILE = [
  "<script>window.attacked = 1</script><img src=x onerror='window.attacked = 2'>",
  "[click](javascript:window.attacked=3) [data](data:text/html,<script>window.attacked=4</script>)",
  "![pixel](https://attacker.example/pixel.png) <svg onload='window.attacked=5'></svg>",
  "\u001b]0;title\u0007\u001b[31mred\u001b[0m \u202egnp.exe\u202c zero\u200bwidth",
].join("\n\n");

/** Longer than a line, so that a shortened text would hide its end. */
const COMMAND = `git push origin main && echo ${"x".repeat(3_000)} && rm -rf ./build # \u202eexe.txt`;

/** As long as the folder of a worktree. */
const FOLDER = `/srv/<u>app</u>/${"worktrees/of_a_project/".repeat(4)}`;

export default defineAgent({
  name: "hostile",
  async run(ctx) {
    ctx.appendEntry({ role: "user", content: "Release **1.2.0**, please.\n\n- run the tests\n- push" });
    ctx.appendEntry({
      role: "assistant",
      content: {
        text: `# Plan\n\nI run the tests first.\n\n\`\`\`ts\nconst a = 1;\n\`\`\`\n\n${HOSTILE}`,
        toolCalls: [{ id: "1", name: "run_command", input: { command: "npm test" } }],
      },
    });
    ctx.appendEntry({
      role: "tool",
      content: { toolCallId: "1", name: "run_command", text: `128 passed\n${HOSTILE}`, isError: false },
    });
    await ctx.run(
      "run-tests",
      (task) => {
        if (task.attempt < 2) throw new Error("the network is away <b>bold</b>");
        return { passed: 128 };
      },
      { retry: { maxAttempts: 3, initialDelayMs: 10 } },
    );
    const answer = await ctx.requestInput({
      prompt: `May I push? ${HOSTILE}`,
      details: { tool: "run_command<i>", input: { command: COMMAND }, folder: FOLDER },
    });
    ctx.appendEntry({
      role: "assistant",
      content: { text: `Pushed: ${String(answer.approved)}`, toolCalls: [] },
    });
    return { pushed: answer.approved };
  },
});
