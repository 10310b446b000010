import { expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { openWorkspace } from "../workspace/workspace.ts";
import { runCanaries } from "./sandbox-canaries.ts";

// A canary that cannot escape from where nothing is held in would prove nothing about a sandbox.
test("each canary escapes from a workspace without isolation", ofCampaign, async () => {
  const canaries = await runCanaries({
    open: (root, home) => openWorkspace({ root, inherit: { ...process.env, HOME: home } }),
    limitsMemory: true,
  });
  const expected = process.platform === "linux" ? canaries.length : canaries.length - 2; // Without /proc.
  expect(canaries.length).toBe(8);
  expect(canaries.filter(({ escaped }) => escaped).length, JSON.stringify(canaries)).toBeGreaterThanOrEqual(
    expected,
  );
});

test("canaries refuse a sandbox that cannot run a command", async () => {
  const open = async (root: string) => {
    const workspace = await openWorkspace({ root });
    const execute = workspace.execute.bind(workspace);
    return Object.assign(workspace, { execute: () => execute(["no-such-program"]) });
  };
  await expect(runCanaries({ open })).rejects.toThrow("it cannot run a command");
});
