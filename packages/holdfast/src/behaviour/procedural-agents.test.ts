// Agents without a model, through the real command: a script is the agent, its parameters are the input, and
// its output is the result.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { expectError } from "../testing/expect-error.ts";
import { Project } from "../testing/holdfast-process.ts";
import { writeScript } from "../testing/script-files.ts";

let project: Project;
let home: string;

beforeEach(async () => {
  project = new Project();
  home = mkdtempSync(join(tmpdir(), "holdfast-home-"));
  writeScript(project, "count", 'wc -w < "$2"');
  writeAgent("words", "count");
  project.write("notes.txt", "one two three\n");
  await run("agents", "trust");
});
afterEach(async () => {
  await project.dispose();
  rmSync(home, { recursive: true, force: true });
});

function writeAgent(name: string, script: string, more = ""): void {
  project.write(
    `.holdfast/agents/${name}.md`,
    `---\nname: ${name}\ndescription: Counts.\nholdfast:\n  script: ${script}\n${more}---\nCounts the words of a file.\n`,
  );
}

/** No model is there. */
const env = () => ({
  HOME: home,
  XDG_DATA_HOME: undefined,
  HOLDFAST_SCRIPTED_MODEL_URL: undefined,
  ANTHROPIC_API_KEY: undefined,
  OPENAI_API_KEY: undefined,
});
const run = (...args: string[]) => project.finish(args, { stdin: "", env: env() });
const NOTES = '{"file": "notes.txt"}';

test("a script runs as an agent without a model, and its call is in the logs", ofCampaign, async () => {
  const done = await run("run", "words", "--input", NOTES, "--session", "w1");
  expect(done.code, done.stderr).toBe(0);
  expect(done.stdout.trim()).toBe("3");
  expect((await run("logs", "w1")).stdout).toMatch(/script_started[^]*script_finished/);
  expect((await run("agents", "check", "words")).stdout).toContain("an agent without a model");
});

test("a script without required parameters needs no input, and one with them says which is missing", async () => {
  writeScript(project, "hello", "echo hello", {
    parameters_schema: { properties: { name: { type: "string" } } },
  });
  writeAgent("greeter", "hello");
  await run("agents", "trust");
  const done = await run("run", "greeter");
  expect(done.code, done.stderr).toBe(0);
  expect(done.stdout.trim()).toBe("hello");
  const missing = await run("run", "words");
  expect(missing.code).toBe(2);
  expect(missing.stderr).toContain("must have required property 'file'");
});

test("a script that is the whole agent gets a secret among its variables, and no record has the value", async () => {
  writeScript(project, "use", 'test "$TOKEN" = t0ken-of-the-script && echo "used $TOKEN"', {
    parameters_schema: { properties: {} },
  });
  writeAgent("user", "use", "  environment: [staging]\n  variables: [TOKEN]\n");
  await run("env", "set", "staging", "TOKEN", "--secret");
  await run("agents", "trust");
  const variables = { ...env(), TOKEN: "t0ken-of-the-script" };
  const done = await project.finish(["run", "user", "--session", "u1"], { stdin: "", env: variables });
  expect(done.code, done.stderr).toBe(0);
  expect(done.stdout.trim()).toBe("used [secret]");
});

test("a folder of the type procedural runs its script", ofCampaign, async () => {
  const fields = { name: "folder-words", description: "Counts.", type: "procedural", script: "count" };
  project.write("agents/folder-words/agent.json", JSON.stringify(fields));
  await run("agents", "trust");
  const done = await run("run", "folder-words", "--input", NOTES);
  expect(done.code, done.stderr).toBe(0);
  expect(done.stdout.trim()).toBe("3");
});

test(
  "the output schema makes JSON of the output, and another output fails the session",
  ofCampaign,
  async () => {
    writeScript(project, "facts", 'echo "{\\"words\\": $(wc -w < "$2")}"');
    const output =
      "  output: { type: object, properties: { words: { type: integer } }, required: [words] }\n";
    writeAgent("facts", "facts", output);
    writeAgent("plain", "count", output);
    await run("agents", "trust");
    expect(JSON.parse((await run("run", "facts", "--input", NOTES)).stdout)).toEqual({ words: 3 });
    const wrong = await run("run", "plain", "--input", NOTES);
    expect(wrong.code).not.toBe(0);
    expect(wrong.stderr).toContain("the output of the script count does not fit");
  },
);

test(
  "a wrong input starts no session, and a script that fails fails its session with its words",
  ofCampaign,
  async () => {
    expectError(await run("run", "words", "--input", '{"file": 7}'), 2, "E_INVALID_INPUT", [
      "/file",
      "string",
    ]);
    expect(existsSync(project.path(".holdfast/holdfast.db"))).toBe(false);
    const failed = await run("run", "words", "--input", '{"file": "none.txt"}');
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain("the script count ended with");
    expect(failed.stderr).toContain("none.txt");
  },
);

test("fields that need a model, and a script that was not pushed, refuse the run", ofCampaign, async () => {
  writeAgent("both", "count", "  agents: [words]\n");
  writeAgent("fresh", "fresh");
  writeScript(project, "fresh", "");
  writeAgent("list", "count", "  scripts: [count]\n");
  expectError(await run("run", "both", "--input", NOTES), 3, "E_AGENT_INVALID", [
    "no model that could use holdfast.agents",
  ]);
  expectError(await run("run", "fresh", "--input", NOTES), 3, "E_AGENT_INVALID", ["have not pushed it"]);
  expectError(await run("run", "list", "--input", NOTES), 3, "E_AGENT_INVALID", ["which could call scripts"]);
});

test(
  "a killed session goes on with the version of its start, and a script that happens once is not repeated",
  ofCampaign,
  async () => {
    const wait = 'echo x >> "$2"; while [ ! -e go ]; do sleep 0.05; done; echo old';
    writeScript(project, "again", wait, { effect: "repeatable" });
    writeScript(project, "once", wait);
    writeAgent("again", "again");
    writeAgent("once", "once");
    await run("agents", "trust");
    for (const name of ["again", "once"]) {
      const file = `${name}.txt`;
      const input = JSON.stringify({ file });
      const killed = project.start(["run", name, "--input", input, "--session", name], {
        stdin: "",
        env: env(),
      });
      const seen = (): string => (existsSync(project.path(file)) ? "begun" : killed.stderr);
      await expect.poll(seen, { timeout: 90_000 }).toBe("begun");
      killed.kill("SIGKILL");
      await killed.finished;
    }
    writeScript(project, "again", "echo new", { effect: "repeatable" });
    await run("script", "push", "again");
    project.write("go", "");
    const resumed = await run("resume", "again");
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(resumed.stdout.trim()).toBe("old");
    expect(readFileSync(project.path("again.txt"), "utf8")).toBe("x\nx\n");
    const uncertain = await run("resume", "once");
    expect(uncertain.code).not.toBe(0);
    expect(uncertain.stderr).toContain("nobody knows whether it took effect");
    expect(readFileSync(project.path("once.txt"), "utf8")).toBe("x\n");
  },
);
