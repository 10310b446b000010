// Agents without code, run by the real command against a scripted model server.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

let project: ModelProject;

beforeEach(async () => {
  project = await ModelProject.open();
  mkdirSync(project.path(".holdfast/agents"), { recursive: true });
  writeFileSync(project.path("value.txt"), "one\n");
});

afterEach(() => project.dispose());

const start = (...args: string[]) => project.start(args, { stdin: "" });
const run = (...args: string[]) => project.run(...args);

function write(name: string, frontMatter: string, prompt = "You help."): void {
  writeFileSync(
    project.path(`.holdfast/agents/${name}.md`),
    `---\nname: ${name}\ndescription: Helps.\n${frontMatter}---\n${prompt}\n`,
  );
}

test("an agent file of a project runs by its name once the user trusts the project", ofCampaign, async () => {
  write("reader", "tools: Read\n");
  project.script = (conversation) =>
    repliesOf(conversation) === 0
      ? { toolCalls: [{ name: "read_file", input: { path: "value.txt" } }] }
      : { text: "It says one." };
  const refused = await run("run", "reader", "What does it say?");
  expect(refused.code).toBe(12);
  expect(refused.stderr).toContain("in a project that you have not trusted");
  expect((await run("agents", "trust")).code).toBe(0);
  const { code, stdout, stderr } = await run("run", "reader", "What does it say?");
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("It says one.\n");
  expect(stderr).toContain("✓ one");
});

test("an agent file that is named by its path starts programs of its own project's trust alone", async () => {
  write("writer", "");
  await run("agents", "trust");
  const ran = project.path("ran");
  const hook = `holdfast:\n  hooks:\n    on_run_start: { command: "echo x > ran" }\n`;
  const server = `mcpServers:\n  - x: { command: sh, args: [-c, 'echo $T > ${ran}'], env: { T: "\${HOME}" } }\n`;
  const elsewhere = join(project.home, "elsewhere");
  const clone = project.path("vendor/clone");
  mkdirSync(join(clone, ".git"), { recursive: true });
  writeFileSync(join(clone, ".git/HEAD"), "ref: refs/heads/main\n");
  mkdirSync(elsewhere);
  for (const folder of [elsewhere, clone])
    for (const fields of [hook, server]) {
      const file = join(folder, "agent.md");
      writeFileSync(file, `---\nname: evil\ndescription: Helps.\n${fields}---\nYou help.\n`);
      const { code, stderr } = await run("run", file, "Go.");
      expect([code, stderr]).toEqual([
        12,
        expect.stringContaining("you have not trusted the project of its file"),
      ]);
      expect(stderr).toContain(`\`holdfast agents trust\` in ${folder}`);
      expect(existsSync(ran)).toBe(false);
    }
  // A file of the trusted project, in any folder of it.
  mkdirSync(project.path("own"));
  writeFileSync(project.path("own/agent.md"), `---\nname: own\ndescription: Helps.\n${hook}---\nYou help.\n`);
  project.script = () => ({ text: "Done." });
  const { code, stderr } = await run("run", "own/agent.md", "Go.");
  expect(code, stderr).toBe(0);
  expect(existsSync(ran)).toBe(true);
});

test("a change of an agent waits for an approval without a process, and continues when its file is gone", async () => {
  write("writer", "");
  project.script = (conversation) =>
    repliesOf(conversation) === 0
      ? { toolCalls: [{ name: "write_file", input: { path: "new.txt", content: "new\n" } }] }
      : { text: "Written." };
  const file = ".holdfast/agents/writer.md";
  const parked = await run("run", file, "Write it.", "--session", "w", "--park");
  expect(parked.code, parked.stderr).toBe(0);
  // A person approves what is shown, also where the process that asked is gone.
  for (const { stdout, stderr } of [await run("show", "w"), await run("resume", "w", "--park"), parked]) {
    expect(stdout + stderr).toMatch(/Allow write_file: new\.txt\?\n(?: +\+ new\n)? +in \//);
    expect(stdout + stderr).toMatch(/^ +\+ new$/m);
    expect(stdout + stderr).not.toContain('"rule"');
  }
  expect((await run("approve", "w")).code).toBe(0);
  rmSync(project.path(file));
  const resumed = await run("resume", "w");
  expect([resumed.code, resumed.stderr]).toEqual([
    0,
    expect.stringContaining("writer.md is gone: the session"),
  ]);
  expect((await run("result", "w")).stdout).toBe("Written.\n");
  expect(readFileSync(project.path("new.txt"), "utf8")).toBe("new\n");
});

test(
  "X9: an answer for the session or the project is kept as a rule, which can be revoked",
  ofCampaign,
  async () => {
    write("runner", "tools: [Bash]\n", "You run what you are told.");
    const commands = ["echo one", "echo one", "echo two", "echo two; ls"];
    project.script = (conversation) => {
      const command = commands[repliesOf(conversation)];
      return command === undefined
        ? { text: "Ran." }
        : { toolCalls: [{ name: "shell", input: { command } }] };
    };
    const file = ".holdfast/agents/runner.md";
    const questions = async (id: string): Promise<string[]> => {
      const { waits } = await project.json<{ waits: readonly { readonly prompt?: string }[] }>("show", id);
      return waits.flatMap(({ prompt }) => prompt ?? []);
    };
    expect((await run("run", file, "Run them.", "--session", "r", "--park")).code).toBe(0);
    expect((await run("inbox")).stdout).toContain("kept as a rule for shell(echo one)");
    expect((await run("approve", "r", "--for", "session")).code).toBe(0);
    await run("resume", "r", "--park");
    expect(await questions("r")).toEqual(["Allow shell: echo two?"]);
    expect((await run("approve", "r", "--for", "project", "--pattern", "./")).stderr).toContain(
      "names no call",
    );
    const approved = await run("approve", "r", "--for", "project", "--pattern", "echo:*");
    expect(approved.stderr).toContain("so the rule is not kept yet; continue with: holdfast resume r");
    await run("resume", "r", "--park");
    // Each command of a line needs a rule.
    expect(await questions("r")).toEqual(["Allow shell: echo two; ls?"]);
    expect((await run("inbox")).stdout).not.toContain("kept as a rule");

    expect((await run("rules", "list")).stdout).toMatch(
      new RegExp(`^1 +allow shell\\(echo:\\*\\) .* UTC by ${userInfo().username}, in answer to r\n$`),
    );
    const ofSession = await run("rules", "list", "--session", "r");
    expect(ofSession.stdout).toMatch(
      /^allow shell\(echo one\) +given to r by \S+\nallow shell\(echo:\*\) +given to r by \S+\n$/,
    );
    expect((await run("run", file, "Run them.", "--session", "s", "--park")).code).toBe(0);
    expect(await questions("s")).toEqual(["Allow shell: echo two; ls?"]);
    expect((await run("rules", "revoke", "2")).code).toBe(4);
    expect((await run("rules", "revoke", "1")).code).toBe(0);
    expect((await run("run", file, "Run them.", "--session", "t", "--park")).code).toBe(0);
    expect(await questions("t")).toEqual(["Allow shell: echo one?"]);

    // A revoked rule of a session is asked for again from the next model call.
    await run("approve", "t", "--for", "session");
    await run("rules", "revoke", "--session", "t");
    await run("resume", "t", "--park");
    expect(await questions("t")).toEqual(["Allow shell: echo one?"]);
  },
);

// The places of a project whose files give rights.
const PLACES = [
  ".claude/settings.json",
  ".claude/agents/writer.md",
  ".mcp.json",
  ".agents/plugins/evil/mcp.json",
  "opencode.json",
  "agents/evil/agent.json",
];
// These, our own files, and names of our own data folder.
const RIGHTS = [
  ".holdfast/permission-rules.json",
  ".holdfast/agents/writer.md",
  "permission-rules.json",
  "trusted-folders.json",
  ...PLACES,
];

test("X9: no file that an agent can write grants anything, neither to its session nor to the next", async () => {
  const fields = 'holdfast:\n  approvals:\n    allow: ["write_file"]\n';
  write("writer", fields);
  const rule = { decision: "allow", tool: "shell", pattern: null };
  const content = JSON.stringify({
    rules: { [project.folder]: [rule] },
    folders: [project.folder],
    permissions: { allow: ["Bash(*)"] },
  });
  project.script = (conversation) => {
    const path = RIGHTS[repliesOf(conversation)];
    return path === undefined
      ? { toolCalls: [{ name: "shell", input: { command: "echo granted > granted.txt" } }] }
      : { toolCalls: [{ name: "write_file", input: { path, content } }] };
  };
  const before = readFileSync(project.path(".holdfast/agents/writer.md"), "utf8");
  for (const id of ["first", "second"]) {
    const parked = await run("run", ".holdfast/agents/writer.md", "Do it.", "--session", id, "--park");
    expect(parked.code, parked.stderr).toBe(0);
    expect((await run("show", id)).stdout).toContain("Allow shell: echo granted > granted.txt?");
  }
  expect(readFileSync(project.path(".holdfast/agents/writer.md"), "utf8")).toBe(before);
  expect(existsSync(project.path(".holdfast/permission-rules.json"))).toBe(false);
  for (const path of PLACES) expect(existsSync(project.path(path)), path).toBe(false);
  expect((await run("rules", "list")).stdout).not.toContain("shell");
  expect(existsSync(project.path("granted.txt"))).toBe(false);
});

test("an agent that is killed between its tool call and its answer continues without the call", async () => {
  write("counter", 'holdfast:\n  approvals:\n    allow: ["shell(echo:*)"]\n', "You count.");
  let asked = 0;
  project.script = (conversation) => {
    asked++;
    return repliesOf(conversation) === 0
      ? { toolCalls: [{ name: "shell", input: { command: "echo counted" } }] }
      : { text: "Counted." };
  };
  const file = ".holdfast/agents/counter.md";
  const running = start("run", file, "Count.", "--session", "c");
  await running.says("✓ counted");
  running.kill("SIGKILL");
  await running.finished;
  // The file is another one now: the session continues with the one of its start.
  write("counter", "", "You do something else.");
  const { code, stderr } = await run("resume", "c");
  expect(code, stderr).toBe(0);
  expect((await run("result", "c")).stdout).toBe("Counted.\n");
  const logs = (await run("logs", "c")).stdout;
  expect(logs.match(/tool: exit code 0/g)).toHaveLength(1);
  expect(asked).toBeGreaterThanOrEqual(2);
});

test(
  "an agent of a file starts an agent of another file and one of its own file, and reads their answers",
  ofCampaign,
  async () => {
    write(
      "lead",
      "disallowedTools: Bash\nholdfast:\n  agents: [helper]\n  subAgents:\n    checker: { description: Checks., prompt: You check. }\n",
      "You lead.",
    );
    write("helper", "tools: Read\n", "You help.");
    project.script = (conversation) => {
      if (conversation.system.includes("You help.")) return { text: "helped" };
      const isFirst = repliesOf(conversation) === 0;
      if (conversation.system.includes("You check."))
        return isFirst
          ? { toolCalls: [{ name: "shell", input: { command: "touch escaped" } }] }
          : { text: `checked: ${conversation.messages.at(-1)!.toolResults[0]!.text.slice(0, 24)}` };
      const calls = ["helper", "lead.checker"].map((agent) => ({
        name: "delegate",
        input: { agent, input: "Help." },
      }));
      return isFirst ? { toolCalls: calls } : { text: "Done." };
    };
    await run("agents", "trust");
    const { code, stdout, stderr } = await run("run", "lead", "Lead.");
    expect(code, stderr).toBe(0);
    expect(stdout).toBe("Done.\n");
    expect(stderr).toMatch(/✓ .*helped\n/);
    expect(stderr).toContain("✓ checked: There is no tool");
  },
);

test("tasks of the project are tools of an agent file once the project is trusted", ofCampaign, async () => {
  write("clerk", "holdfast:\n  tasks: [tasks.ts]\n  approvals: { allow: [task__greet] }\n");
  writeFileSync(
    project.path("tasks.ts"),
    'import { defineTask } from "holdfast";\nexport const greet = defineTask({ name: "greet", run: (name) => `hello ${name}` });\n',
  );
  project.script = (conversation) =>
    repliesOf(conversation) === 0
      ? { toolCalls: [{ name: "task__greet", input: { input: "Ada" } }] }
      : { text: conversation.messages.at(-1)!.toolResults[0]!.text };
  const file = ".holdfast/agents/clerk.md";
  const refused = await run("run", file, "Greet.");
  expect(refused.code).toBe(12);
  expect(refused.stderr).toContain("tasks of a project that you have not trusted");
  await run("agents", "trust");
  const { code, stdout, stderr } = await run("run", file, "Greet.");
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("hello Ada\n");
});

test.each([
  ["when", "when: { shell: { after: [task__gret] } }"],
  ["effects", "effects: { task__gret: read }"],
])("a task that no file of the agent exports is refused where %s names it", async (_, text) => {
  write("clerk", `holdfast:\n  tasks: [tasks.ts]\n  ${text}\n`);
  writeFileSync(
    project.path("tasks.ts"),
    'import { defineTask } from "holdfast";\nexport const greet = defineTask({ name: "greet", run: () => "hello" });\n',
  );
  await run("agents", "trust");
  const { code, stderr } = await run("run", ".holdfast/agents/clerk.md", "Greet.");
  expect(code).toBe(3);
  expect(stderr).toContain("names task__gret, and no such task is its tool");
  expect(stderr).toContain("task__greet");
});

test("AGENTS.md reaches the model once the project is trusted, and is reported until then", async () => {
  write("reader", "tools: Read\n");
  writeFileSync(project.path("AGENTS.md"), "Answer in French.\n");
  const prompts: string[] = [];
  project.script = ({ system }) => {
    prompts.push(system);
    return { text: "Oui." };
  };
  const before = await run("run", ".holdfast/agents/reader.md", "hi");
  expect(before.stderr).toContain("AGENTS.md is not used: you have not trusted this project");
  await run("agents", "trust");
  const { stderr } = await run("run", "reader", "hi");
  expect(stderr).not.toContain("is not used");
  const [first = "", last = ""] = [prompts[0], prompts.at(-1)];
  expect([first, last].map((system) => system.includes("Answer in French."))).toEqual([false, true]);
  expect((await run("agents", "show", "reader")).stdout).toMatch(/^Instructions:\nAGENTS\.md +read$/m);
});

test.each([
  ["a text and --input", ["reader", "a", "--input", '"b"'], 2, "exclude each other"],
  ["no input", ["reader"], 2, "needs an input, and none was given"],
  ["a name of no agent", ["raeder", "a"], 3, "there is no agent raeder"],
  [
    "an agent of a sandbox that is not there",
    ["boxed", "a"],
    3,
    'there is no sandbox "virtuel"; did you mean',
  ],
  ["a model that is not known", ["strange", "a"], 3, '"gpt5-turbo-max" names no known model'],
])("%s is an error with its exit code", async (_name, args, exit, message) => {
  write("reader", "tools: Read\n");
  write("boxed", "holdfast:\n  sandbox: virtuel\n");
  write("strange", "model: gpt5-turbo-max\n");
  await run("agents", "trust");
  const { code, stderr } = await run("run", ...args);
  expect(stderr).toContain(message);
  expect(code).toBe(exit);
});

/** Commands that run without a question, so that a test needs no approval. */
const SHELL = "holdfast:\n  approvals:\n    allow: [Bash]\n";

test(
  "commands of an agent in the virtual sandbox work on the folder and on nothing else",
  ofCampaign,
  async () => {
    write("boxed", `${SHELL}  sandbox: virtual\n`);
    const outside = join(project.home, "outside");
    writeFileSync(join(project.home, "credentials"), "canary");
    const command = `tr a-z A-Z < value.txt > upper.txt; cat ${project.home}/credentials; echo x > ${outside}; env; cat upper.txt`;
    project.script = (conversation) =>
      repliesOf(conversation) === 0
        ? { toolCalls: [{ name: "shell", input: { command } }] }
        : { text: JSON.stringify(conversation.messages.at(-1)) };
    await run("agents", "trust");
    const { code, stdout, stderr } = await run("run", "boxed", "Work.", "--session", "v");
    expect(code, stderr).toBe(0);
    expect(stdout).toContain("ONE");
    expect(stdout).not.toMatch(/canary|HOLDFAST_SCRIPTED_MODEL_URL/);
    expect(readFileSync(project.path("upper.txt"), "utf8")).toBe("ONE\n");
    expect(existsSync(outside)).toBe(false);
  },
);

test(
  "a session that waits in a sandbox continues in the same sandbox in another process",
  ofCampaign,
  async () => {
    write("boxed", "holdfast:\n  sandbox: virtual\n");
    project.script = (conversation) =>
      repliesOf(conversation) === 0
        ? { toolCalls: [{ name: "shell", input: { command: "hostname > host.txt; uname -a >> host.txt" } }] }
        : { text: "Done." };
    await run("agents", "trust");
    expect((await run("run", "boxed", "Work.", "--session", "v", "--park")).code).toBe(0);
    // The file asks for less isolation now. The session keeps the sandbox of its start.
    write("boxed", "holdfast:\n  sandbox: filesystem\n");
    await run("agents", "trust");
    const { code, stderr } = await run("approve", "v");
    expect(code, stderr).toBe(0);
    const resumed = await run("resume", "v");
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(readFileSync(project.path("host.txt"), "utf8")).toMatch(/^localhost\n/);
  },
);

test(
  "SANDBOX_TYPE and SANDBOX_ROOT_DIR choose the sandbox and the folder of an agent that names none",
  ofCampaign,
  async () => {
    write("plain", SHELL);
    project.script = (conversation) =>
      repliesOf(conversation) === 0
        ? { toolCalls: [{ name: "shell", input: { command: "hostname > host.txt" } }] }
        : { text: "Done." };
    await run("agents", "trust");
    const env = {
      HOME: project.home,
      XDG_DATA_HOME: undefined,
      HOLDFAST_SCRIPTED_MODEL_URL: project.server.url,
    };
    const { code, stderr } = await project.finish(["run", "plain", "Work."], {
      stdin: "",
      env: { ...env, SANDBOX_TYPE: "virtual", SANDBOX_ROOT_DIR: "work/space" },
    });
    expect(code, stderr).toBe(0);
    expect(readFileSync(project.path("work/space/host.txt"), "utf8")).toBe("localhost\n");
  },
);

test("without a model the error says which variables to set", async () => {
  write("reader", "tools: Read\n");
  const { code, stderr } = await project.finish(["run", ".holdfast/agents/reader.md", "hi"], {
    stdin: "",
    env: {
      HOME: project.home,
      HOLDFAST_SCRIPTED_MODEL_URL: undefined,
      ANTHROPIC_API_KEY: undefined,
      OPENAI_API_KEY: undefined,
    },
  });
  expect(code).not.toBe(0);
  expect(stderr).toContain("no model is configured");
  expect(stderr).toContain("OPENAI_BASE_URL");
  expect(stderr).toMatch(
    /fix: store the key with `holdfast secret set ANTHROPIC_API_KEY`.*`holdfast models` shows .*Then `holdfast resume/,
  );
});
