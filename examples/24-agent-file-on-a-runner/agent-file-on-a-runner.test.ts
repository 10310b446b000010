import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import {
  startScriptedModelServer,
  type Conversation,
  type Reply,
  type ScriptedModelServer,
} from "holdfast/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { registrationToken } from "../../packages/holdfast/src/testing/coordinator-client.ts";
import { startCoordinator } from "../../packages/holdfast/src/testing/fleet-processes.ts";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const AGENT = ".holdfast/agents/release-notes.md";
const NOTES = "Added prices in francs.";
const STEPS: readonly Reply[] = [
  { toolCalls: [{ name: "read_skill", input: { name: "release-line" } }] },
  { toolCalls: [{ name: "read_file", input: { path: "CHANGES.md" } }] },
  { text: NOTES },
];

let project: Project;
let server: ScriptedModelServer;
let last: Conversation | undefined;
beforeEach(async () => {
  project = new Project();
  for (const path of [".holdfast/agents", ".agents", "policy.json"])
    cpSync(fileURLToPath(new URL(path, import.meta.url)), project.path(path), { recursive: true });
  mkdirSync(project.path("box"));
  writeFileSync(project.path("box/CHANGES.md"), "prices.ts: francs\n");
  server = await startScriptedModelServer({
    script: (conversation) => {
      last = conversation;
      return STEPS[conversation.messages.filter(({ role }) => role === "assistant").length] ?? { text: "?" };
    },
  });
});
afterEach(async () => {
  await project.dispose();
  await server.close();
});

test(
  "a runner runs an agent file and its skill from the coordinator, and refuses a version with more rights",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    const coordinator = await startCoordinator(project);
    const { url, adminToken } = coordinator;
    const admin = { HOLDFAST_URL: url, HOLDFAST_TOKEN: adminToken, HOME: project.path("admin") };
    const done = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await project.finish(args, { env: admin, stdin: "" });
      expect(code, stderr).toBe(0);
      return stdout;
    };
    await done("agents", "trust");
    await done("agents", "push", "release-notes", "--tag", "stable");
    await done("skill", "push", "release-line");
    const token = await registrationToken(coordinator, "box");
    const runner = project.start(
      ["runner", "-c", url, "--name", "box", "--policy", "policy.json", "-p", "box"],
      {
        env: {
          HOLDFAST_TOKEN: token,
          HOLDFAST_SCRIPTED_MODEL_URL: server.url,
          HOME: project.path("home-of-box"),
        },
      },
    );
    await runner.says("waiting for runs");
    const start = ["run", "--agent", "release-notes", "--input", '"Write the notes."', "--url", url];
    expect(await done(...start)).toContain(NOTES);
    const said = JSON.stringify(last?.messages);
    expect(said).toContain("Begin with a verb");
    expect(said).toContain("prices.ts: francs");

    const file = project.path(AGENT);
    writeFileSync(file, readFileSync(file, "utf8").replace("tools: Read", "tools: Write, Read"));
    await done("agents", "push", "release-notes");
    await runner.says(/release-notes \(\w+\) is not offered: .* does not give the tool write_file/);
  },
);
