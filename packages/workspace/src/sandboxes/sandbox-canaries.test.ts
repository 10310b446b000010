import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { openWorkspace } from "../workspace/workspace.ts";
import { runCanaries } from "./sandbox-canaries.ts";
import { virtualSandbox } from "./virtual-sandbox.ts";

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

test(
  "the sandbox virtual is tested once on a machine, and again after a change of its parts",
  ofCampaign,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-tested-"));
    const testedFile = join(folder, "data/tested-sandboxes.json");
    const check = () => virtualSandbox(testedFile).check();
    expect(await check()).toMatchObject({ status: "ready" });
    const tested = readFileSync(testedFile, "utf8");
    expect(tested).toMatch(/just-bash \d+\.\d+\.\d+, node v/);
    vi.stubEnv("TMPDIR", join(folder, "none")); // Canaries make their folders there.
    expect(await check()).toMatchObject({ status: "ready" });
    writeFileSync(testedFile, tested.replace(/just-bash [\d.]+/, "just-bash 0.0.1"));
    expect(await check()).toMatchObject({ status: "unavailable", reason: expect.stringContaining("ENOENT") });
    vi.unstubAllEnvs();
    writeFileSync(testedFile, "{");
    expect(await check()).toMatchObject({ status: "ready" });
    expect(readFileSync(testedFile, "utf8")).toBe(tested);
    rmSync(folder, { recursive: true });
  },
);
