// `runAgentFile`: a program runs an agent file with all that belongs to it.

import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { HoldfastProcess } from "../testing/holdfast-process.ts";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

/** With `holdfast`, as in a project that has installed it. */
const PACKAGES = fileURLToPath(new URL("../../../../node_modules", import.meta.url));

let project: ModelProject;
beforeEach(async () => {
  project = await ModelProject.open();
});
afterEach(() => project.dispose());

/** Runs a program of ten lines, as a user would write it. */
function start(lines: readonly string[]): HoldfastProcess {
  project.write("program.ts", ['import { runAgentFile } from "holdfast";', ...lines, ""].join("\n"));
  if (!existsSync(project.path("node_modules"))) symlinkSync(PACKAGES, project.path("node_modules"));
  return project.startNode("program.ts");
}

test("an agent file runs with its skill, its script, its sub-agent and its sandbox, and answers its output", async () => {
  project.write(
    ".holdfast/agents/lead.md",
    "---\nname: lead\ndescription: Leads.\nskills: [tone]\nagents: [helper]\nholdfast:\n  sandbox: virtual\n" +
      "  output: { type: object, properties: { done: { type: string } }, required: [done] }\n---\nYou lead.\n",
  );
  project.write(".holdfast/agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nYou help.\n");
  project.write(
    ".agents/skills/tone/SKILL.md",
    "---\nname: tone\ndescription: How to write.\n---\nBe kind.\n",
  );
  expect((await project.run("agents", "trust")).code).toBe(0);
  project.script = (conversation) => {
    const isBelow = conversation.system.includes("You help");
    if (isBelow) return { text: "helped" };
    const step = repliesOf(conversation);
    if (step === 0) return { toolCalls: [{ name: "read_skill", input: { name: "tone" } }] };
    if (step === 1) return { toolCalls: [{ name: "delegate", input: { agent: "helper", input: "help" } }] };
    return { toolCalls: [{ name: "submit_output", input: { done: "yes" } }] };
  };
  const { code, stdout, stderr } = await start([
    'const output = await runAgentFile("lead", "go");',
    "console.log(JSON.stringify(output));",
  ]).finished;
  expect(stderr).toBe("");
  expect(code).toBe(0);
  expect(stdout).toBe('{"done":"yes"}\n');
});

test("with a database the same session goes on after a kill, and a question is answered by the program", async () => {
  project.write("asker.md", "---\nname: asker\ndescription: Asks.\ntools: [shell]\n---\nYou ask.\n");
  project.script = (conversation) =>
    repliesOf(conversation) === 0
      ? { toolCalls: [{ name: "shell", input: { command: "echo hi > made.txt" } }] }
      : { text: "made it" };
  const killed = start([
    'const options = { database: "agents.db", sessionId: "one", answer: () => (console.log("asked"), new Promise(() => {})) };',
    'await runAgentFile("asker.md", "go", options);',
  ]);
  await killed.says("asked");
  killed.kill("SIGKILL");
  await killed.finished;
  const { code, stdout, stderr } = await start([
    'const options = { database: "agents.db", sessionId: "one", answer: () => ({ approved: true }) };',
    'console.log(await runAgentFile("asker.md", "go", options));',
    'console.log(await runAgentFile("asker.md", "go", options));',
  ]).finished;
  expect(stderr).toBe("");
  expect(code).toBe(0);
  expect(stdout).toBe("made it\nmade it\n");
  expect(readFileSync(project.path("made.txt"), "utf8")).toBe("hi\n");
  expect(existsSync(project.path("agents.db"))).toBe(true);
});

test("a question that nobody can answer ends the call with an error that says how to answer it", async () => {
  project.write("asker.md", "---\nname: asker\ndescription: Asks.\ntools: [shell]\n---\nYou ask.\n");
  project.script = () => ({ toolCalls: [{ name: "shell", input: { command: "echo hi > made.txt" } }] });
  const { code, stderr } = await start([
    'await runAgentFile("asker.md", "go").catch((error) => { console.error(error.code, error.fix); process.exitCode = 3; });',
  ]).finished;
  expect(code).toBe(3);
  expect(stderr).toContain("usage");
  expect(stderr).toContain("answer");
  expect(stderr).toContain("database");
});

test("a question waits in the database, where another terminal finds and answers it", async () => {
  project.write("asker.md", "---\nname: asker\ndescription: Asks.\ntools: [shell]\n---\nYou ask.\n");
  project.script = (conversation) =>
    repliesOf(conversation) === 0
      ? { toolCalls: [{ name: "shell", input: { command: "echo hi > made.txt" } }] }
      : { text: "made it" };
  const program = start([
    'const options = { database: "agents.db", sessionId: "one" };',
    'console.log(await runAgentFile("asker.md", "go", options));',
  ]);
  const asked = await vi.waitFor(async () => {
    const { stdout } = await project.run("inbox", "--db", "agents.db");
    expect(stdout).toContain("echo hi > made.txt");
    return stdout;
  }, 30_000);
  expect(asked).toContain("one");
  expect((await project.run("approve", "one", "--db", "agents.db")).code).toBe(0);
  expect(await program.finished).toMatchObject({ code: 0, stdout: "made it\n" });
});

test("a file that is not there, or that cannot be used, is refused as by the command", async () => {
  const { code, stderr } = await start([
    'await runAgentFile("nobody.md", "go").catch((error) => { console.error(error.code); process.exitCode = 4; });',
  ]).finished;
  expect(code).toBe(4);
  expect(stderr).toBe("file_not_found\n");
});
