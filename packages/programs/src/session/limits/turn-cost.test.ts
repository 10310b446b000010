// The budgets of external agents: agents that cannot be counted, and the limit that a program has itself.

import { utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createRuntime, MemoryStorage } from "@holdfast/runtime";
import { expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { ExternalSession } from "../../testing/external-session.ts";
import { AcpAgent } from "../../adapters/acp/acp-agent.ts";
import { ACP_AGENTS } from "../../adapters/acp/acp-quirks.ts";
import { externalAgent } from "../external-agent.ts";

test.each([{ maxTokens: 1_000 }, { maxCostMicroUsd: 1_000 }])(
  "a turn of an agent that reports no usage is refused under the budget %j, and starts no program",
  async (budget) => {
    const protocol = new AcpAgent({ facts: { ...ACP_AGENTS[0]!, name: "uncounted" }, folder: "/" });
    Object.assign(protocol, { find: () => Promise.resolve({ program: "/nowhere/uncounted", version: "1" }) });
    const agent = externalAgent(protocol, { folder: "/", permissionModes: ["default"] });
    const runtime = createRuntime({ storage: new MemoryStorage() });
    try {
      const handle = await runtime.start(agent, "hello", { budget });
      await expect(handle.result()).rejects.toMatchObject({
        cause: { cause: { code: "unknown_price", message: expect.stringContaining("reports no usage") } },
      });
    } finally {
      await runtime.close();
    }
  },
);

test("the rest of a budget in money is the own limit of Claude Code, in each turn", ofCampaign, async () => {
  const session = new ExternalSession("claude-code");
  try {
    const input = { model: "claude-sonnet-4-5" };
    const { status } = await session.converse("write:a.txt own-limit", input, {
      budget: { maxCostMicroUsd: 2_000_000 },
    });
    expect(status).toBe("waiting"); // The limit of the program has cut off one turn, and the next one has answered.
    const [first, second] = limits(session);
    expect(first).toBe(2);
    expect(second).toBeLessThan(2);
    writeFileSync(join(session.home, "no-budget-option"), "");
    const program = join(session.home, "bin", "claude");
    utimesSync(program, 0, 0); // Another version takes its place.
    await session.say("hello");
    expect(limits(session)).toEqual([first, second, undefined]);
  } finally {
    await session.dispose();
  }
});

/** The limits that the program got, one for each of its starts. */
function limits(session: ExternalSession): readonly (number | undefined)[] {
  return session.lines("claude.log").map((line) => {
    const { args } = JSON.parse(line) as { readonly args: readonly string[] };
    const at = args.indexOf("--max-budget-usd");
    return at === -1 ? undefined : Number(args[at + 1]);
  });
}
