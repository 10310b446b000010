// A secret in a fleet of real processes: its runner uses it, and it is nowhere else.

import { CanaryScan, startScriptedModelServer, turns } from "@holdfast/testkit";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { registrationToken, startSession } from "../testing/coordinator-client.ts";
import { startCoordinator, tokenIn } from "../testing/coordinator-process.ts";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
beforeEach(() => void (project = new Project({ eachAsProcess: true })));
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
  { ...ofCampaign, timeout: 60_000 },
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

/** Asks its model, and then shows what it can read of its own process and of the runner's. */
const CURIOUS = `#!${process.execPath}
const { readFileSync } = require("node:fs");
if (process.argv.includes("--schema")) process.exit(1);
const { ANTHROPIC_BASE_URL: base, ANTHROPIC_API_KEY: token, AGENT_ORCHESTRATOR_API_URL: report } = process.env;
const post = (url, body) => fetch(url, {
  method: "POST", body: JSON.stringify(body),
  headers: { "content-type": "application/json", "x-api-key": token, "anthropic-version": "2023-06-01" },
});
const read = (path) => { try { return readFileSync(path, "latin1"); } catch { return ""; } };
(async () => {
  const answer = await post(base + "/v1/messages", { model: "m", max_tokens: 9, messages: [{ role: "user", content: "hi" }] });
  const seen = ["self", process.ppid].flatMap((pid) => ["environ", "cmdline"].map((file) => read("/proc/" + pid + "/" + file)));
  require("node:fs").writeFileSync("seen", JSON.stringify([process.env, seen]));
  await post(report + "/events", { event_type: "result", result_text: answer.status + await answer.text(), result_data: seen });
})();
`;

test(
  "an executor calls its model with a key of its runner, which no process, file or output has",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    const scan = new CanaryScan();
    const model = await startScriptedModelServer({
      script: turns([{ text: "hello from the model" }]),
      apiKeys: [scan.secret],
    });
    mkdirSync(project.path("profiles"));
    writeFileSync(project.path("curious"), CURIOUS, { mode: 0o755 });
    const profile = {
      command: "./curious",
      providers: { anthropic: "TEAM_KEY" },
      conversation_ttl_seconds: 0,
    };
    writeFileSync(project.path("profiles/curious.json"), JSON.stringify(profile));
    const coordinator = await startCoordinator(project);
    const asAdmin = { url: coordinator.url, adminToken: tokenIn(coordinator) };
    const args = ["runner", "-c", coordinator.url, "-x", "curious", "--secret-stdin", "TEAM_KEY", "-v"];
    const env = { HOLDFAST_TOKEN: await registrationToken(asAdmin, "box"), ANTHROPIC_BASE_URL: model.url };
    const runner = project.start(args, { env, stdin: scan.secret });
    await runner.says("Runner started");
    const endWatch = scan.watch();
    const sessionId = await startSession(asAdmin, { agent: "curious", input: "work" });
    const headers = { authorization: `Bearer ${asAdmin.adminToken}` };
    const texts: string[] = [];
    for (const path of ["/watch", "/result", "", "/events", "/export"]) {
      const text = await (
        await fetch(`${coordinator.url}/v1/sessions/${sessionId}${path}`, { headers })
      ).text();
      scan.search(path, text);
      texts.push(text);
    }
    endWatch();
    runner.kill("SIGINT");
    coordinator.process.kill("SIGINT");
    for (const { stdout, stderr } of [await runner.finished, await coordinator.process.finished])
      scan.search("an output", stdout + stderr);
    scan.searchFolder(project.folder);
    await model.close();
    expect(texts[1]).toContain("hello from the model");
    expect(model.requests[0]?.headers["x-api-key"]).toBe(scan.secret);
    expect([scan.found, scan.looked > 20]).toEqual([[], true]);
  },
);
