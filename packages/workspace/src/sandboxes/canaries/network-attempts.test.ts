// Each way over the network is tried, and found where it is the only one that is open. A way that is not
// tried would make every sandbox look closed.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { programOnPath } from "../../workspace/program-on-path.ts";
import { openWorkspace } from "../../workspace/workspace.ts";
import { tryEach } from "./attempts.ts";
import { nameOfWay, tryNetwork, WAYS } from "./network-attempts.ts";

let base: string;
let root: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "holdfast-ways-"));
  root = join(base, "root");
  mkdirSync(join(base, "bin"));
  mkdirSync(root);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

async function workspaceWith(path: string) {
  const workspace = await openWorkspace({ root, inherit: { PATH: path } });
  return { workspace, run: (line: string) => workspace.execute(line, { timeoutMs: 60_000 }) };
}

/** Programs in the place of the real ones, which reach nothing but by the way that is open. */
function plant(open: string): void {
  for (const program of new Set(WAYS.map((way) => way.program)))
    writeFileSync(
      join(base, "bin", program),
      `#!/bin/sh\n[ "$0" != "${join(base, "bin", open.split(" by ")[1]!)}" ] && exit 7\n` +
        `case "$*" in ${SIGNS[open.split(" by ")[0]!]}) echo holdfast-answered; exit 0 ;; esac; exit 7\n`,
      { mode: 0o755 },
    );
  for (const program of ["sh", "grep"])
    symlinkSync(programOnPath(program, process.env["PATH"] ?? "")!, join(base, "bin", program));
}

/** A part of the arguments of each call for a target, and of no call for another one. */
const SIGNS: Readonly<Record<string, string>> = {
  server: "*127.0.0.1*|*INADDR_LOOPBACK*",
  metadata: "*169.254.169.254*",
  unix: '*/socket\\ *|*/socket\\"*',
  abstract: "*abstract*|*0holdfast-*",
};

test.each(WAYS.map(nameOfWay))("a sandbox that is open for %s alone is found", async (open) => {
  plant(open);
  const { workspace, run } = await workspaceWith(join(base, "bin"));
  expect(await tryNetwork(run, base)).toEqual({ tried: WAYS.map(nameOfWay), reached: [open] });
  await workspace.dispose();
});

test("each way whose program is here reaches a server from a workspace without isolation", async () => {
  const { workspace, run } = await workspaceWith(process.env["PATH"] ?? "");
  const ways = WAYS.filter(
    ({ target }) => target !== "metadata" && (target !== "abstract" || process.platform === "linux"),
  );
  const { tried, reached } = await tryNetwork(run, base, ways);
  expect(reached).toEqual(tried);
  expect(tried).toContain("unix by node");
  await workspace.dispose();
});

test("an attempt that ends its shell keeps no other from happening", async () => {
  const { workspace, run } = await workspaceWith(process.env["PATH"] ?? "");
  const { stdout } = await tryEach(run, ["exec 3<>/dev/tcp/127.0.0.1/1", "exit 3", "echo escaped"]);
  expect(stdout).toContain("escaped\n");
  await workspace.dispose();
});

test("attempts that a time limit cuts off prove nothing", ofCampaign, async () => {
  const { workspace } = await workspaceWith(process.env["PATH"] ?? "");
  const run = (line: string) => workspace.execute(line, { timeoutMs: 500 });
  await expect(tryEach(run, ["sleep 5", "echo escaped"])).rejects.toThrow("ended early");
  await workspace.dispose();
});
