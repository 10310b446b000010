import { ClaudeCode, externalAgent } from "holdfast/programs";
import { defineAgent, defineTask, local } from "holdfast";

const folder = process.cwd();
const claude = externalAgent(new ClaudeCode({ folder }), { folder, permissionModes: ["default"] });
const KNOWN: Readonly<Record<string, string>> = { "Which region?": "north" };

/** The parent's own knowledge, for `ask_parent` of the coding agent. A question that it cannot answer goes to a person. */
const ask_parent = defineTask({
  name: "look-up",
  retry: { maxAttempts: 1 },
  run({ question }: { readonly question: string }) {
    const answer = KNOWN[question];
    if (answer === undefined) throw new Error("nobody here knows");
    return answer;
  },
});

/** Claude Code works, and asks upwards whatever it does not know. */
export default defineAgent({
  name: "office",
  agents: [claude],
  handlers: { ask_parent },
  run: (ctx, task: string) => ctx.waitForChild(ctx.spawnAgent(local(claude), task)),
});
