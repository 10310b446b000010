// Agent files without a model and without a key: `--scripted` and `--replies`.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { expectError } from "../testing/expect-error.ts";
import { Project } from "../testing/holdfast-process.ts";

const AGENT =
  "---\nname: clerk\ndescription: Notes things.\ntools: Write\nholdfast:\n  approvals: { allow: [Write] }\n---\n\nNote it.\n";
const WRITES = { toolCalls: [{ name: "write_file", input: { path: "note.txt", content: "noted" } }] };

let project: Project;
beforeEach(() => {
  project = new Project();
  writeFileSync(project.path("clerk.md"), AGENT);
});
afterEach(() => project.dispose());

const env = () => ({ HOME: project.path("home"), OLLAMA_HOST: "127.0.0.1:9" });
const run = (...args: string[]) => project.finish(args, { stdin: "", env: env() });

function replies(value: unknown): void {
  writeFileSync(project.path("replies.json"), typeof value === "string" ? value : JSON.stringify(value));
}

test("without a key a run says how to try the agent, and the session goes on without a model", async () => {
  const refused = await run("run", "clerk.md", "buy a lamp", "--session", "lamp");
  expect(refused.code).toBe(5);
  expect(refused.stderr).toContain("`holdfast run AGENT TEXT --scripted` tries an agent file without a key");
  const { code, stdout, stderr } = await run("resume", "lamp", "--scripted");
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("No model was asked (--scripted). The request was: buy a lamp");
  expect(stderr).toContain("no model is asked: each reply repeats the request");
});

test("the replies of a file call tools, and a killed session goes on with them", async () => {
  const asks = { toolCalls: [{ name: "ask_user", input: { question: "Sure?" } }] };
  replies([WRITES, asks, "Done."]);
  writeFileSync(project.path("clerk.md"), AGENT.replace("tools: Write", "tools: Write, AskUserQuestion"));
  const args = ["run", "clerk.md", "note it", "--replies", "replies.json", "--session", "note"];
  const running = project.start(args, { env: env() });
  await running.says("Sure?");
  running.kill("SIGKILL");
  await running.finished;
  expect(readFileSync(project.path("note.txt"), "utf8")).toBe("noted");
  // Another process without the replies says what is missing.
  await run("answer", "note", '"yes"');
  const inProcess = (...words: string[]) => project.start(words, { stdin: "", env: env() }).finished;
  const without = await inProcess("resume", "note");
  expect(without.code).toBe(5);
  expect(without.stderr).toContain("holdfast resume ID --scripted");
  const { code, stdout, stderr } = await inProcess("resume", "note", "--replies", "replies.json");
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("Done.\n");
});

test("a chat works without a model, too", async () => {
  const { code, stdout, stderr } = await project.finish(["chat", "clerk.md", "--scripted"], {
    stdin: "hello\n",
    env: env(),
  });
  expect(code, stderr).toBe(0);
  expect(stdout + stderr).toContain("The request was: hello");
});

test.each([
  ["{", "the replies cannot be read"],
  [{ text: "no list" }, "the file has no list of replies"],
  [[], "the file has no list of replies"],
  [["fine", 7], "reply 2 is none"],
  [[{ text: 7 }], "reply 1 is none"],
  [[{ tool: "write_file" }], "reply 1 is none"],
  [[{ toolCalls: [{ name: "write_file" }] }], "reply 1 is none"],
])("a file of replies is refused by the place of the first that is none: %j", async (value, what) => {
  replies(value);
  const ended = await run("run", "clerk.md", "note it", "--replies", "replies.json");
  expectError(ended, 3, "E_CONFIG_INVALID", [what, "replies.json", "expected: a JSON array of replies"]);
});

test("an agent of code and an external agent are refused", async () => {
  mkdirSync(project.path("agents"));
  const code =
    'import { defineAgent } from "holdfast";\nexport default defineAgent({ name: "coded", run: async () => 1 });\n';
  writeFileSync(project.path("agents/coded.ts"), code);
  const coded = await run("run", "agents/coded.ts", "--scripted");
  expectError(coded, 2, "E_USAGE", ['--scripted and --replies are for agent files, and "coded" is code']);
  const both = await run("run", "clerk.md", "x", "--scripted", "--replies", "replies.json");
  expect(both.code).toBe(2);
});
