// A program with `holdfast` in one file, as bundlers make it. It loads and runs without the packages, and says
// what a bundle cannot have.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { rolldown } from "rolldown";
import { expect, onTestFinished, test } from "vitest";
import { installCommand } from "./installed-command.ts";

const PROGRAM = `
import { createRuntime, defineAgent, defineTask, openSqliteStorage, runAgentFile, Watchdog } from "holdfast";

const why = (work) => Promise.resolve().then(work).then(() => "works", ({ code, fix }) => [code, fix.includes("out of the bundle")]);
const blocks = defineTask({ name: "blocks", inThread: "file:///none.mjs", run: () => 1, retry: { maxAttempts: 1 } });
const agent = defineAgent({
  name: "bundled",
  tasks: [blocks],
  run: async (ctx) => [await ctx.run("a", () => 1), await ctx.scheduleTask(blocks).catch(({ cause }) => cause.fix !== undefined)],
});
const stray = defineAgent({ name: "stray", run: async (ctx) => { await new Promise(setImmediate); await ctx.sleep(1); } });
async function main() {
  const storage = await openSqliteStorage({ path: process.argv[2] });
  const runtime = createRuntime({ storage });
  const output = await (await runtime.start(agent)).result();
  const { fault } = await (await runtime.start(stray)).settled();
  const seen = { output, fault: fault.code, at: fault.at ?? null, watchdog: await why(() => new Watchdog()), file: await why(() => runAgentFile("a.md", "x")) };
  await runtime.close();
  await storage.close();
  console.log(JSON.stringify(seen));
}
void main();
`;

// Rolldown keeps `import.meta.url` alive in CommonJS. Other bundlers leave it empty.
test.each([
  { format: "esm", file: "program.mjs", define: {} },
  { format: "cjs", file: "program.cjs", define: { "import.meta.url": "undefined" } },
] as const)(
  "a program in one file of the format $format runs",
  { timeout: 120_000 },
  async ({ format, file, define }) => {
    const installed = dirname(dirname(await installCommand()));
    const folder = mkdtempSync(join(tmpdir(), "bundled-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const input = join(installed, `${format}-program.mjs`);
    writeFileSync(input, PROGRAM);
    onTestFinished(() => rmSync(input, { force: true }));
    const bundle = await rolldown({ input, platform: "node", transform: { define }, logLevel: "silent" });
    await bundle.write({ format, file: join(folder, file), codeSplitting: false });
    await bundle.close();
    const args = ["--no-warnings", file, "sessions.db"];
    const seen = JSON.parse(
      execFileSync(process.execPath, args, { cwd: folder, encoding: "utf8" }),
    ) as object;
    const refused = ["usage", true];
    expect(seen).toEqual({
      output: [1, true],
      fault: "non_durable_await",
      at: null, // No line of the bundle is named, because it would be one of ours.
      watchdog: refused,
      file: refused,
    });
  },
);
