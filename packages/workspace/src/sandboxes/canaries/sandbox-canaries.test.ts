import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { ISOLATED_CAPABILITIES, type WorkspaceCapabilities } from "../../workspace/capabilities.ts";
import { hostCommands } from "../../workspace/command-runner.ts";
import { openWorkspace } from "../../workspace/workspace.ts";
import { checkByCanaries, NAMESPACES_REFUSED, runCanaries } from "./sandbox-canaries.ts";
import { virtualSandbox } from "../virtual-sandbox.ts";

// A canary that cannot escape from where nothing is held in would prove nothing about a sandbox.
test("each canary escapes from a workspace without isolation", ofCampaign, async () => {
  const canaries = await runCanaries({
    capabilities: ISOLATED_CAPABILITIES,
    open: (root, options) => openWorkspace({ ...options, root }),
  });
  const expected = process.platform === "linux" ? canaries.length : canaries.length - 2; // Without /proc.
  expect(canaries.length).toBe(9);
  expect(canaries.filter(({ escaped }) => escaped).length, JSON.stringify(canaries)).toBeGreaterThanOrEqual(
    expected,
  );
});

test.each<[promise: Partial<WorkspaceCapabilities>, names: readonly string[]]>([
  [{}, []],
  [{ network: "none" }, ["reach an address of this machine", "reach a Unix socket of this machine"]],
  [{ limits: ["memory"] }, ["use more memory than its limit"]],
  [{ credentials: "hidden" }, ["read a file of the home folder", "read a file through a link named .git"]],
])("a sandbox that promises %j is tried in that alone", async (promise, names) => {
  const { capabilities } = hostCommands();
  const canaries = await runCanaries({
    capabilities: { ...capabilities, ...promise },
    open: (root, options) => openWorkspace({ ...options, root }),
  });
  expect(canaries.map(({ name }) => name)).toEqual(names);
});

const refused =
  "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.";
test.each([
  [refused, "forbidden"],
  ["bwrap: setting up uid map: Permission denied", "forbidden"],
  ["bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "forbidden"],
  ["bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "forbidden"],
  ["bwrap: Creating new namespace failed: No space left on device", "forbidden"],
  ["bwrap: Unknown option --unshare-al", undefined],
  ["bwrap: execvp prlimi: No such file or directory", undefined],
])("a sandbox that says %j is unavailable by the cause %s", async (said, cause) => {
  const open = async (root: string) => {
    const workspace = await openWorkspace({ root });
    const execute = workspace.execute.bind(workspace);
    return Object.assign(workspace, { execute: () => execute(["sh", "-c", 'echo "$0" >&2; exit 1', said]) });
  };
  const check = await checkByCanaries({
    capabilities: ISOLATED_CAPABILITIES,
    found: "it",
    fix: "mend it",
    refusal: NAMESPACES_REFUSED,
    open,
  });
  expect(check).toMatchObject({ status: "unavailable", reason: expect.stringContaining(said) });
  expect(check).toEqual(expect.objectContaining(cause === undefined ? {} : { cause }));
  expect("cause" in check).toBe(cause !== undefined);
});

test("canaries refuse a sandbox that cannot run a command", async () => {
  const open = async (root: string) => {
    const workspace = await openWorkspace({ root });
    const execute = workspace.execute.bind(workspace);
    return Object.assign(workspace, { execute: () => execute(["no-such-program"]) });
  };
  await expect(runCanaries({ capabilities: ISOLATED_CAPABILITIES, open })).rejects.toThrow(
    "it cannot run a command",
  );
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
