import { cpSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import {
  startScriptedModelServer,
  type Conversation,
  type Reply,
  type ScriptedModelServer,
} from "holdfast/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const LONG = "This lamp lights your desk for ten hours, and it folds into a bag.";
const SHORT = "Light your desk for ten hours.";
const write = (content: string) => ({ name: "write_file", input: { path: "texts/lamp.md", content } });
const count = { name: "script__word-count", input: { file: "texts/lamp.md", most: 8 } };
/** A model that reads the skill, writes a text that is too long, and shortens it. */
const STEPS: readonly Reply[] = [
  { toolCalls: [{ name: "read_skill", input: { name: "house-style" } }] },
  { toolCalls: [write(LONG), count] },
  { toolCalls: [write(SHORT), count] },
  { text: SHORT },
];

describe("an agent file with a script and a skill", () => {
  let project: Project;
  let server: ScriptedModelServer;
  let last: Conversation | undefined;
  beforeEach(async () => {
    project = new Project();
    for (const folder of [".holdfast/agents", ".holdfast/scripts", ".agents"])
      cpSync(fileURLToPath(new URL(folder, import.meta.url)), project.path(folder), { recursive: true });
    server = await startScriptedModelServer({
      script: (conversation) => {
        last = conversation;
        const replies = conversation.messages.filter(({ role }) => role === "assistant").length;
        return STEPS[replies] ?? { text: "?" };
      },
    });
  });
  afterEach(async () => {
    await project.dispose();
    await server.close();
  });

  test("the agent reads the skill, and shortens its text until the script is content", async () => {
    const env = { HOME: project.path("home"), HOLDFAST_SCRIPTED_MODEL_URL: server.url };
    const run = (...args: string[]) => project.finish(args, { stdin: "", env });
    expect((await run("agents", "trust")).stdout).toContain("its 1 skill and 1 script");
    const request = "At most 8 words about our lamp.";
    const { code, stdout, stderr } = await run("run", "writer", request, "--session", "lamp");
    expect(code, stderr).toBe(0);
    expect(stdout).toContain(SHORT);
    expect(readFileSync(project.path("texts/lamp.md"), "utf8")).toBe(SHORT);
    const said = JSON.stringify(last?.messages);
    expect(said).toContain("Write short sentences.");
    expect(said).toContain("6 too many");
    expect(said).toContain("6 words");
    const logs = await run("logs", "lamp");
    expect(logs.stdout.match(/script_started/g)).toHaveLength(2);
    expect(logs.stdout.match(/script_finished/g)).toHaveLength(2);
  });
});
