// The runtime of docs/frameworks.md in a process that loads its files again after an edit, as a development
// server does.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = readFileSync(join(root, "docs/frameworks.md"), "utf8");
const [, runtime = ""] = /```ts\n(\/\/ runtime\.ts\n.*?)```/s.exec(page) ?? [];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "frameworks-doc-"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  put("package.json", '{"type":"module"}');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Each load is a folder of its own, since a process keeps the modules that it has loaded. */
const MAIN = `
const load = async (name) => ({ ...(await import(\`./\${name}/runtime.ts\`)), ...(await import(\`./\${name}/order.ts\`)) });
const first = await load("first");
const old = await first.runtime.start(first.order);
await waits(old);
const second = await load("second");
const young = await second.runtime.start(second.order);
for (const session of [old, young]) await second.runtime.signal(session.sessionId, "paid", 5);
console.log(first.runtime === second.runtime, await old.result(), await young.result());
await second.runtime.close();
process.exit();
async function waits(session) {
  while ((await session.session()).status !== "waiting") await new Promise(setImmediate);
}
`;

test(
  "an edited agent is served by the runtime that was made before, and a session that waits continues with it",
  ofCampaign,
  () => {
    for (const [name, word] of [
      ["first", "paid"],
      ["second", "received"],
    ] as const) {
      put(`${name}/runtime.ts`, runtime);
      put(
        `${name}/order.ts`,
        `import { defineAgent } from "holdfast";
       export const order = defineAgent({
         name: "order",
         run: async (ctx) => \`${word} \${await ctx.waitForSignal<number>("paid")}\`,
       });`,
      );
    }
    put("main.ts", MAIN);
    mkdirSync(join(folder, ".holdfast"), { mode: 0o700 });
    const run = (mode: string) =>
      spawnSync(process.execPath, ["main.ts"], {
        cwd: folder,
        encoding: "utf8",
        env: { PATH: process.env["PATH"], HOME: folder, NODE_ENV: mode },
      });
    const { stdout, stderr } = run("development");
    expect({ stdout, stderr }).toEqual({ stdout: "true received 5 received 5\n", stderr: "" });
    expect(run("production").stderr).toContain("createRuntime({ replaceAgents: true })");
  },
);

function put(file: string, text: string): void {
  mkdirSync(join(folder, file, ".."), { recursive: true });
  writeFileSync(join(folder, file), text);
}
