// `runAgentFile`: a program runs an agent file with all that belongs to it.

import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
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

test("an agent file runs with its skill, its sub-agent and its schema of the output", async () => {
  project.write(
    ".holdfast/agents/lead.md",
    "---\nname: lead\ndescription: Leads.\nskills: [tone]\nholdfast:\n  agents: [helper]\n" +
      "  output: { type: object, properties: { done: { type: string } }, required: [done] }\n---\nYou lead.\n",
  );
  project.write(".holdfast/agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nYou help.\n");
  project.write(
    ".agents/skills/tone/SKILL.md",
    "---\nname: tone\ndescription: How to write.\n---\nBe kind.\n",
  );
  expect((await project.run("agents", "trust")).code).toBe(0);
  let lastRead = "";
  project.script = (conversation) => {
    const isBelow = conversation.system.includes("You help");
    if (!isBelow) lastRead = JSON.stringify(conversation.messages);
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
  expect(lastRead).toContain("Be kind.");
  expect(lastRead).toContain("helped");
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

test("the budget of the file limits the session, and a budget of the call takes its place", async () => {
  project.write(
    "reader.md",
    "---\nname: reader\ndescription: Reads.\ntools: [list_files]\nholdfast:\n  budget: { steps: 1 }\n---\nYou read.\n",
  );
  project.script = (conversation) =>
    repliesOf(conversation) === 0 ? { toolCalls: [{ name: "list_files", input: {} }] } : { text: "read" };
  const { stdout } = await start([
    "const tell = (error) => console.log(error.code);",
    'await runAgentFile("reader.md", "go").catch(tell);',
    'console.log(await runAgentFile("reader.md", "go", { budget: { maxSteps: 9 } }).catch(tell));',
  ]).finished;
  expect(stdout).toBe("budget_exceeded\nread\n");
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

test("two calls of one process and folder have their own variables and keys", async () => {
  const other = await startScriptedModelServer({ script: () => ({ text: "theirs" }) });
  onTestFinished(() => other.close());
  project.script = () => ({ text: "ours" });
  project.write("plain.md", "---\nname: plain\ndescription: P.\n---\nYou help.\n");
  const { code, stdout, stderr } = await start([
    `const env = { ...process.env, HOLDFAST_SCRIPTED_MODEL_URL: ${JSON.stringify(other.url)} };`,
    'console.log(await runAgentFile("plain.md", "go"));',
    'console.log(await runAgentFile("plain.md", "go", { env }));',
    'const calls = [runAgentFile("plain.md", "go"), runAgentFile("plain.md", "go", { env })];',
    "console.log((await Promise.all(calls)).join());",
  ]).finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("ours\ntheirs\nours,theirs\n");
});

test("an answer that throws ends the call, and the next call answers that question of an agent below", async () => {
  project.write(
    "lead.md",
    "---\nname: lead\ndescription: Leads.\nholdfast:\n  agents: [asker]\n---\nYou lead.\n",
  );
  project.write(".holdfast/agents/asker.md", "---\nname: asker\ndescription: A.\n---\nYou ask.\n");
  expect((await project.run("agents", "trust")).code).toBe(0);
  project.script = (conversation) => {
    const isFirst = repliesOf(conversation) === 0;
    if (!isFirst) return { text: "made it" };
    return conversation.system.includes("You ask")
      ? { toolCalls: [{ name: "shell", input: { command: "echo hi > made.txt" } }] }
      : { toolCalls: [{ name: "delegate", input: { agent: "asker", input: "go" } }] };
  };
  const options = 'database: "agents.db", sessionId: "one"';
  const failing = await start([
    `const answer = () => { throw new Error("not now"); };`,
    `await runAgentFile("lead.md", "go", { ${options}, answer }).catch(({ message }) => console.log(message));`,
  ]).finished;
  expect(failing).toMatchObject({ code: 0, stdout: "not now\n" });
  const { code, stdout, stderr } = await start([
    `console.log(await runAgentFile("lead.md", "go", { ${options}, answer: () => ({ approved: true }) }));`,
  ]).finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("made it\n");
  expect(readFileSync(project.path("made.txt"), "utf8")).toBe("hi\n");
});

test("an option that is not there, and a value of another kind, are refused by name before anything starts", async () => {
  const { code, stdout } = await start([
    "const said = (error) => console.log(error.code, error.message);",
    'await runAgentFile("a.md", "go", { databse: "x" }).catch(said);',
    'await runAgentFile("a.md", "go", { answer: "yes" }).catch(said);',
    'await runAgentFile(7, "go").catch(said);',
  ]).finished;
  expect(code).toBe(0);
  expect(stdout).toContain('usage runAgentFile has no option "databse"; did you mean database?');
  expect(stdout).toContain('usage runAgentFile cannot take "yes" as answer');
  expect(stdout).toContain("usage runAgentFile cannot take 7 as nameOrPath");
  expect(project.server.requests).toEqual([]);
});

test("a file that is not there, or that cannot be used, is refused as by the command", async () => {
  const { code, stderr } = await start([
    'await runAgentFile("nobody.md", "go").catch((error) => { console.error(error.code); process.exitCode = 4; });',
  ]).finished;
  expect(code).toBe(4);
  expect(stderr).toBe("file_not_found\n");
});
