// Typing in `holdfast chat` on a real terminal.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { startScriptedModelServer, type Conversation, type ScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Project, type HoldfastProcess } from "../testing/holdfast-process.ts";

const KEY = "sk-ant-api03-0123456789abcdef";
const SLOW = { timeout: 180_000 };

let project: Project;
let server: ScriptedModelServer;
/** The messages of the conversation that the model was asked last. */
const seen: string[] = [];

beforeEach(async () => {
  seen.length = 0;
  project = new Project();
  server = await startScriptedModelServer({
    script: ({ messages }: Conversation) => {
      const turn = messages.filter(({ role }) => role === "user").length;
      const last = messages.at(-1);
      seen[turn - 1] = last?.text ?? "";
      if (last?.role === "user" && last.text.includes("append"))
        return { toolCalls: [{ name: "shell", input: { command: "echo line >> lines.txt" } }] };
      return { text: `answer ${turn}.` };
    },
  });
  project.write(".holdfast/agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nYou help.\n");
});
afterEach(async () => {
  await project.dispose();
  await server.close();
});

function chat(id: string): HoldfastProcess {
  const env = `ANTHROPIC_API_KEY=${KEY} HOLDFAST_SCRIPTED_MODEL_URL=${server.url}`;
  return project.shellOnTerminal(`${env} holdfast chat .holdfast/agents/helper.md --session ${id}; stty -a`);
}

/** A key is pressed: on a terminal the key of the end of a line is a carriage return. */
function enter(process: HoldfastProcess, text: string): void {
  process.child.stdin.write(`${text}\r`);
}

test("a file of the project that a message names is sent with it, and no other one", SLOW, async () => {
  project.write("notes.txt", "the colour is blue\n");
  project.write("empty.bin", "a\0b");
  project.write("big.txt", "x".repeat(100_001));
  project.write("key.env", `KEY=${KEY}\n`);
  symlinkSync("/etc/hostname", project.path("outside.txt"));
  mkdirSync(project.path("folder"));
  execFileSync("mkfifo", [project.path("pipe")]);
  const process = chat("files");
  await process.says("> ");
  for (const [name, why] of [
    ["outside.txt", "it is outside of the project"],
    ["/etc/hostname", "it is outside of the project"],
    ["empty.bin", "it is binary"],
    ["big.txt", "it has 100001 bytes; the limit is 100000"],
    ["key.env", "it holds a secret"],
    ["folder", "it is a folder"],
    ["pipe", "it is not a file"],
  ] as const) {
    enter(process, `read @${name}`);
    await process.says(`@${name}: `);
    await process.says(why);
  }
  expect(seen).toEqual([]);
  enter(process, `ask @ada about @notes.txt, not "@big.txt".`);
  await process.says("answer 1.");
  expect(process.stdout).toContain("with notes.txt (19 characters)");
  expect(seen).toEqual([
    'ask @ada about @notes.txt, not "@big.txt".\n\n<file path="notes.txt">\nthe colour is blue\n</file>',
  ]);
  enter(process, "/exit");
  await process.finished;
  const piped = ["chat", ".holdfast/agents/helper.md", "--session", "piped"];
  const env = { HOLDFAST_SCRIPTED_MODEL_URL: server.url };
  expect((await project.finish(piped, { env, stdin: "read @notes.txt\n" })).code).toBe(0);
  expect(seen[0]).toBe("read @notes.txt");
});

test("a message may have several lines, and Ctrl-C drops one that was begun", SLOW, async () => {
  const process = chat("lines");
  await process.says("> ");
  enter(process, "begin \\");
  await process.says("... ");
  enter(process, "and go on");
  await process.says("answer 1.");
  process.child.stdin.write("\u001b[200~pasted one\rpasted two\u001b[201~");
  await process.says(/\.\.\. \S*pasted two/); // The lines wait for Enter.
  enter(process, " and typed");
  await process.says("answer 2.");
  enter(process, "dropped \\");
  process.child.stdin.write("\u0003");
  await process.says("Ctrl-C again leaves");
  enter(process, "the last");
  await process.says("answer 3.");
  expect(seen).toEqual(["begin \nand go on", "pasted one\npasted two and typed", "the last"]);
  process.child.stdin.write("\u0004"); // Ctrl-D is the end of the input.
  const { stdout } = await process.finished;
  expect(stdout).toContain("continue with: holdfast chat --session lines");
  expect(stdout).toContain("\u001b[?2004l");
  expect(stdout).not.toContain("-icanon");
});

test("the arrow keys have the lines of an earlier conversation, and none with a key", SLOW, async () => {
  const first = chat("first");
  await first.says("> ");
  enter(first, "words of before");
  await first.says("answer 1.");
  enter(first, `the key is ${KEY}`);
  await first.says("answer 2.");
  enter(first, "/exit");
  await first.finished;
  const file = project.path(".local/share/holdfast/chat-history.json");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(["/exit", "words of before"]);

  const second = chat("second");
  await second.says("> ");
  enter(second, "\u001b[A\u001b[A");
  await second.says("answer 1.");
  expect(seen[0]).toBe("words of before");
  enter(second, "/exit");
  await second.finished;
});

test(
  "a line that was typed before a question stood there does not answer it, and one after it does",
  SLOW,
  async () => {
    const env = { ANTHROPIC_API_KEY: KEY, HOLDFAST_SCRIPTED_MODEL_URL: server.url };
    const args = ["chat", ".holdfast/agents/helper.md", "append", "--session", "ahead"];
    const first = await project.finish(args, { env, stdin: "" });
    expect(first.stderr).toContain("type y or n");
    const again = project.shellOnTerminal(
      `ANTHROPIC_API_KEY=${KEY} HOLDFAST_SCRIPTED_MODEL_URL=${server.url} holdfast chat --session ahead`,
    );
    again.child.stdin.write("y\ny\n");
    await again.says(/typed before the question stood there[^]*typed before the question stood there/);
    expect(existsSync(project.path("lines.txt"))).toBe(false);
    await again.says("answer> ");
    enter(again, "y");
    await again.says("answer 1.");
    expect(readFileSync(project.path("lines.txt"), "utf8")).toBe("line\n");
    enter(again, "/exit");
    await again.finished;
  },
);
