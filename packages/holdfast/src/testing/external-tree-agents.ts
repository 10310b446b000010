// A tree of agents for tests (`externalTree`). Its lead starts Claude Code at the runner with the label
// `place=a`. Codex and another agent of ours run at the one with `place=b`. Tests copy this file into
// projects.

import { defined } from "@holdfast/core";
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { ClaudeCode, CODEX, externalAgent, LineAgent } from "@holdfast/programs";
import { defineAgent, remote } from "holdfast";

export const TREE_PLACES = { "claude-code": "a", codex: "b", own: "b" } as const;

/** The work of each child, in the words of the fake agents. */
export type TreeWork = Readonly<Record<keyof typeof TREE_PLACES, string>>;

/** @param environment where the programs are found; that of this process by default. */
export function externalTree(folder: string, environment?: Readonly<Record<string, string>>) {
  const place = { folder, ...defined({ environment }) };
  const options = { folder, permissionModes: ["default"] } as const;
  const claude = externalAgent(new ClaudeCode(place), options);
  const codex = externalAgent(new LineAgent({ facts: CODEX, ...place }), options);
  const own = defineAgent({
    name: "own",
    run: async (ctx, work: unknown) => {
      for (const word of String(work).split(" ")) {
        const [act, value = ""] = word.split(":");
        await ctx.run(word, async (task) => {
          if (act === "gate") return atGate(folder, value);
          await new Promise((resolve) => setTimeout(resolve, 100));
          appendFileSync(join(folder, "steps"), `${value}\n`);
          task.reportUsage({ model: "scripted/own", inputTokens: 10, outputTokens: 5 });
        });
        if (act === "step") ctx.appendEntry({ role: "tool", content: `step ${value} is done` });
      }
      return `Done: ${String(work)}`;
    },
  });
  const children = { "claude-code": claude, codex, own };
  const lead = defineAgent({
    name: "lead",
    agents: [claude, codex, own],
    run: async (ctx, work: TreeWork) => {
      const names = ["claude-code", "codex", "own"] as const;
      const started = names.map((name) =>
        ctx.spawnAgent(remote(children[name]), work[name], {
          budget: { maxTokens: 500_000 },
          labels: { place: TREE_PLACES[name] },
        }),
      );
      const [told] = await Promise.all([
        work.codex.includes("signal_parent") ? ctx.waitForChildEvent(started[1]!) : undefined,
        ...started.map(async (child, index) => {
          const result = await ctx.waitForChild(child);
          ctx.appendEntry({ role: "user", content: `${names[index]}: ${result}` });
        }),
      ]);
      return told?.type === "signal" ? told.payload : null;
    },
  });
  return { lead, claude, codex, own };
}

/** The act `gate` of `fake-acts.mjs`. */
async function atGate(folder: string, gate: string): Promise<void> {
  appendFileSync(join(folder, "gates"), `${gate}\n`);
  while (!existsSync(join(folder, `open-${gate.split("-").at(-1)}`)))
    await new Promise((resolve) => setTimeout(resolve, 20));
}
