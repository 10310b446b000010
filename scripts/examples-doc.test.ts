// The programs in docs/api.md and docs/deploy.md run as they are written, over a coordinator and a runner.

import { spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startScriptedModelServer, type ScriptedModelServer } from "@holdfast/testkit";
import { sampled } from "@holdfast/testkit/campaign";
import deploy from "../examples/04-approval/deploy.ts";
import { createClient, type HoldfastClient } from "@holdfast/client";
import { openFleet, type Fleet } from "../packages/holdfast/src/testing/fleet.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "holdfast-examples-doc-"));
let fleet: Fleet;
let client: HoldfastClient;
let token: string;
let model: ScriptedModelServer;
beforeAll(async () => {
  fleet = await openFleet();
  await fleet.runner({ agents: [deploy] });
  token = await fleet.token("user", "ada");
  client = createClient({ url: fleet.url, token });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  copyFileSync(join(root, "examples/04-approval/deploy.ts"), join(folder, "deploy.ts"));
  copyFileSync(join(root, "examples/25-reviewer/reviewer.md"), join(folder, "reviewer.md"));
  model = await startScriptedModelServer({ script: () => ({ text: "No problem found." }) });
});
afterAll(async () => {
  client.close();
  await model.close();
  await fleet.close();
  rmSync(folder, { recursive: true, force: true });
});

const programs = ["docs/api.md", "docs/deploy.md"].flatMap((page) =>
  [...readFileSync(join(root, page), "utf8").matchAll(/```ts\n(.*?)```/gs)].map(
    ([, text], i) => [`${page} #${i + 1}`, text!] as const,
  ),
);

test("there are programs", () => expect(programs.length).toBeGreaterThan(3));

test.each(sampled(programs, 2))("%s", async (name, text) => {
  const file = `${name.replaceAll(/\W+/g, "-")}.ts`;
  writeFileSync(join(folder, file), text.replace("http://127.0.0.1:8765", fleet.url));
  const isAgent = text.includes("export default defineAgent");
  const launcher = join(root, "node_modules/.bin/holdfast");
  const args = isAgent ? [launcher, "run", file, "--input", '"moon"'] : [file];
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: {
      PATH: process.env["PATH"],
      HOME: folder,
      HOLDFAST_TOKEN: token,
      HOLDFAST_SCRIPTED_MODEL_URL: model.url,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (chunk: string) => (said += chunk));
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  // Two answers to one question are in each other's way: the second one is refused, as nothing is asked any
  // more.
  const isAnswering = text.includes(".answer(");
  const approving = isAnswering ? undefined : setInterval(() => void approveAll(), 50);
  const code = await ended;
  clearInterval(approving);
  expect([code, said]).toEqual([0, expect.not.stringContaining("Warning")]);
});

/** The answers that people give meanwhile. */
async function approveAll(): Promise<void> {
  const asking = await fleet.storage.reader.sessions({ status: "input_required", limit: 9 });
  for (const { sessionId } of asking)
    await client.sessions
      .get(sessionId)
      .answer({ approved: true })
      .catch(() => {});
}
