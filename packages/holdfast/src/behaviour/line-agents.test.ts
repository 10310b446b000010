// Codex and Pi as durable sessions, by the real command. The programs are fakes that speak their protocols.

import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";

const DOCUMENT = new URL("../../../../docs/external-agents.md", import.meta.url);

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

const run = (...args: string[]) => project.finishHere(args);

test(
  "after kill -9 Codex resumes its thread, which gets the same mode, and is told which call was cut off",
  ofCampaign,
  async () => {
    const input = JSON.stringify({ text: "write:a.txt hang", permissionMode: "plan" });
    const first = project.startHere(["run", "codex", "--session", "s", "--input", input]);
    await project.hangs("s");
    first.kill("SIGKILL");
    await first.finished;
    const { code, stdout, stderr } = await run("resume", "s");
    expect(code, stderr).toBe(0);
    expect(stdout).toBe("Done: write:a.txt hang\n"); // And not the answer of before, which the program repeats.
    expect(project.hanging()).toEqual([]);
    const opened = project.lines("codex.log").map((line) => JSON.parse(line) as { sandbox: string });
    expect(opened.map(({ sandbox }) => sandbox)).toEqual(["read-only", "read-only"]);
    const { entries } = await project.shown("s");
    const prompt = entries.find(({ role, content }) => role === "user" && String(content).includes("Verify"));
    expect(prompt?.content).toContain('shell {"command":"sleep 1000"}');
    // Each call of the model once. Neither the repeated report nor the sum of the thread counts; the killed
    // call is in the record of the program.
    const { stdout: shown } = await run("show", "s");
    expect(shown).toContain('"outputTokens":38');
    expect(shown).not.toContain("Uncertain effects"); // The program was told of its cut-off turn.
  },
);

test("a question of Pi's gate is durable: its answer comes after kill -9, and the call is made once", async () => {
  const first = project.startHere(["run", "pi", "ask:a.txt", "--session", "s"]);
  await first.says("Allow write_file: a.txt?");
  first.kill("SIGKILL");
  await first.finished;
  expect((await run("approve", "s")).code).toBe(0);
  const { code, stdout, stderr } = await run("resume", "s");
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("Done: ask:a.txt\n");
  expect(project.answers()).toEqual(['"allow"']);
});

test("a script of a shell that speaks JSON lines is an agent", ofCampaign, async () => {
  const [agent, script] = ["ts", "sh"].map(
    (language) =>
      new RegExp(`\`\`\`${language}\\n((?:#!|// mine)[^]*?)\`\`\``).exec(readFileSync(DOCUMENT, "utf8"))?.[1],
  );
  writeFileSync(project.path("mine.ts"), agent!);
  writeFileSync(project.path("agent.sh"), script!);
  chmodSync(project.path("agent.sh"), 0o755);
  const { code, stdout, stderr } = await run("run", "mine.ts", "tell the date", "--session", "s");
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("The date is known.\n");
  expect((await project.shown("s")).entries.map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "tool",
    "assistant",
  ]);
});

test("Codex is told once that its budget is nearly used up, and works on within it", ofCampaign, async () => {
  const words = "use:850 use:10 write:a.txt";
  const { code, stderr } = await run("run", "codex", words, "--session", "s", "--budget", "1000tokens");
  expect(code, stderr).toBe(0);
  const said = JSON.stringify((await project.shown("s")).entries);
  expect(said.split("You say: The budget of this session is nearly used up.")).toHaveLength(2);
  expect(existsSync(project.path("a.txt"))).toBe(true);
});
