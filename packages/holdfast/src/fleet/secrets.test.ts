// A secret in a fleet of real processes: its runner uses it, and it is nowhere else.

import { CanaryScan } from "@holdfast/testkit";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { registrationToken, startSession } from "../testing/coordinator-client.ts";
import { startCoordinator, tokenIn } from "../testing/coordinator-process.ts";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
beforeEach(() => void (project = new Project()));
afterEach(() => project.dispose());

const AGENT = `import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { defineAgent, defineTask } from "holdfast";
const use = defineTask({ name: "use", secrets: ["API_KEY"], retry: { maxAttempts: 1 }, run: (isFailing, task) => {
  const key = task.secret("API_KEY");
  task.streamToken("token " + key);
  task.progress({ key });
  execFileSync("sleep", ["0.2"]);
  if (isFailing) throw new Error("refused " + key, { cause: new Error(encodeURIComponent(key)) });
  return { key, hex: Buffer.from(key).toString("hex"), sha256: createHash("sha256").update(key).digest("hex") };
} });
export default defineAgent({ name: "keys", tasks: [use], run: async (ctx) => {
  await ctx.scheduleTask(use, true).catch(() => {});
  return ctx.scheduleTask(use, false);
} });
`;

test(
  "a fleet uses a secret of its runner, and no file, stream, output or process has it",
  { timeout: 60_000 },
  async () => {
    const scan = new CanaryScan();
    writeFileSync(project.path("keys.ts"), AGENT);
    const coordinator = await startCoordinator(project);
    const adminToken = tokenIn(coordinator);
    const asAdmin = { url: coordinator.url, adminToken };
    const args = ["runner", "-c", coordinator.url, "--agents", "keys.ts", "--secret-stdin", "API_KEY", "-v"];
    const env = { HOLDFAST_TOKEN: await registrationToken(asAdmin, "box") };
    const runner = project.start(args, { env, stdin: scan.secret });
    await runner.says("Runner started");
    const endWatch = scan.watch();
    const sessionId = await startSession(asAdmin, { agent: "keys", input: null });
    const headers = { authorization: `Bearer ${adminToken}` };
    const ask = async (path: string): Promise<string> => {
      const answer = await fetch(`${coordinator.url}/v1/${path}`, { headers });
      const text = await answer.text();
      expect([path, answer.status, text.length > 0]).toEqual([path, 200, true]);
      scan.search(path, text);
      return text;
    };
    await ask(`sessions/${sessionId}/watch`); // It ends with the session.
    endWatch();
    const result = await ask(`sessions/${sessionId}/result`);
    for (const path of ["", "/events", "/export"]) await ask(`sessions/${sessionId}${path}`);
    await ask("audit");
    runner.kill("SIGINT");
    coordinator.process.kill("SIGINT");
    for (const { stdout, stderr } of [await runner.finished, await coordinator.process.finished]) {
      scan.search("an output", stdout);
      scan.search("an error output", stderr);
    }
    scan.searchFolder(project.folder);
    const hash = createHash("sha256").update(scan.secret).digest("hex");
    expect(result).toContain(hash);
    expect([scan.found, scan.looked > 20]).toEqual([[], true]);
  },
);
