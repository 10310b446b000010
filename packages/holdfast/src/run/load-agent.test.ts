// Files of agents that take their time.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadAgent } from "./load-agent.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-load-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a file whose top-level await never settles is given up, with what to do", async () => {
  writeFileSync(join(folder, "endless.mjs"), "await new Promise(() => {});\nexport default async () => 1;\n");
  await expect(loadAgent("endless.mjs", { cwd: folder, giveUpMs: 20 })).rejects.toMatchObject({
    code: "agent_invalid",
    message: expect.stringContaining("endless.mjs was not loaded within 0.02 s"),
    at: join(folder, "endless.mjs"),
    fix: expect.stringContaining("ctx.run"),
  });
});

test("a file that waits for a moment is loaded", async () => {
  writeFileSync(
    join(folder, "slow.mjs"),
    "await new Promise((loaded) => setTimeout(loaded, 20));\nexport default async () => 1;\n",
  );
  expect((await loadAgent("slow.mjs", { cwd: folder })).agent.name).toBe("slow");
});

test("own-packages-1: a missing package is searched once, however many agents the process has loaded", () => {
  writeFileSync(join(folder, "good.mjs"), "export default async () => 1;\n");
  writeFileSync(join(folder, "missing.mjs"), 'import "holdfast/no-such-part";\n');
  // In a process of its own, because the loader of tests asks no hook of Node.
  const program = `import { loadAgent } from ${JSON.stringify(new URL("load-agent.ts", import.meta.url).href)};
const place = { cwd: ${JSON.stringify(folder)} };
for (let count = 0; count < 30; count++) await loadAgent("good.mjs", place);
await loadAgent("missing.mjs", place).catch((error) => console.log(error.code));`;
  const args = ["--conditions=development", "--input-type=module", "-e", program];
  const { stdout } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 60_000 });
  expect(stdout).toBe("agent_invalid\n");
});
