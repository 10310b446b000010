import { cpSync, readFileSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startScriptedModelServer, type Reply, type ScriptedModelServer } from "holdfast/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const PROGRAM = fileURLToPath(new URL("write.ts", import.meta.url));
const PROJECT = fileURLToPath(new URL("../19-script-and-skill", import.meta.url));
const PACKAGES = fileURLToPath(new URL("../../node_modules", import.meta.url));
const SHORT = "Light your desk for ten hours.";
const STEPS: readonly Reply[] = [
  { toolCalls: [{ name: "read_skill", input: { name: "house-style" } }] },
  { toolCalls: [{ name: "write_file", input: { path: "texts/lamp.md", content: SHORT } }] },
  { toolCalls: [{ name: "script__word-count", input: { file: "texts/lamp.md", most: 8 } }] },
  { text: SHORT },
];

let project: Project;
let server: ScriptedModelServer;
beforeEach(async () => {
  server = await startScriptedModelServer({
    script: ({ messages }) =>
      STEPS[messages.filter(({ role }) => role === "assistant").length] ?? { text: "?" },
  });
  project = new Project({
    env: { HOME: undefined, XDG_DATA_HOME: undefined, HOLDFAST_SCRIPTED_MODEL_URL: server.url },
  });
  for (const folder of [".holdfast/agents", ".holdfast/scripts", ".agents"])
    cpSync(`${PROJECT}/${folder}`, project.path(folder), { recursive: true });
  cpSync(PROGRAM, project.path("write.ts"));
  symlinkSync(PACKAGES, project.path("node_modules"));
});
afterEach(async () => {
  await project.dispose();
  await server.close();
});

test("a program of ten lines runs an agent file with its skill and its script", async () => {
  expect(readFileSync(PROGRAM, "utf8").trimEnd().split("\n").length).toBeLessThanOrEqual(10);
  const env = { HOME: project.path("home"), PROJECT: project.path(".") };
  expect((await project.finish(["agents", "trust"], { env })).code).toBe(0);
  const { code, stdout, stderr } = await project.shell('node --no-warnings write.ts "About our lamp."', {
    env,
  });
  expect(code, stderr).toBe(0);
  expect(stdout).toBe(`${SHORT}\n`);
  expect(readFileSync(project.path("texts/lamp.md"), "utf8")).toBe(SHORT);
  const logs = await project.finish(["logs", "--last", "--db", "texts.db"], { env });
  expect(logs.stdout).toContain("script_finished");
});
