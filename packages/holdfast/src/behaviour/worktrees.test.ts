// Agent files with a workspace of their own, and the commands over worktrees, by the real command against a
// scripted model server.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Conversation, Reply } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

// A test starts up to a dozen commands.
vi.setConfig({ testTimeout: 180_000 });

let project: ModelProject;

beforeEach(async () => {
  project = await ModelProject.open();
  mkdirSync(project.path(".holdfast/agents"), { recursive: true });
  writeFileSync(project.path("value.txt"), "one\n");
  writeFileSync(project.path(".gitignore"), ".holdfast/\n");
  writeFileSync(project.path("AGENTS.md"), "Answer in French.\n");
  git("init", "--quiet", "--initial-branch=main");
  git("config", "user.name", "Test");
  git("config", "user.email", "test@example.invalid");
  git("add", "--all");
  git("commit", "--quiet", "-m", "base");
});

afterEach(() => project.dispose());

const start = (...args: string[]) => project.start(args, { stdin: "" });
const run = (...args: string[]) => project.run(...args);

async function ran(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...args);
  expect(code, stderr).toBe(0);
  return stdout;
}

function git(...args: readonly string[]): string {
  return execFileSync("git", args, {
    cwd: project.folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
}

function write(name: string, frontMatter: string, prompt: string): void {
  writeFileSync(
    project.path(`.holdfast/agents/${name}.md`),
    `---\nname: ${name}\ndescription: Helps.\n${frontMatter}---\n${prompt}\n`,
  );
}

/** Sessions that are killed at their run and their removal, in every run and in the campaign (`HOLDFAST_CAMPAIGN`). */
const KILLS = isCampaign ? 100 : 1;

/** Changes of files that run without a question, so that a test needs no approval. */
const OWN = (more: string): string => `permissionMode: acceptEdits\nholdfast:\n${more}`;

/** The agent writes one file and ends. */
function writesOnce(path: string, content: string, conversation: Conversation): Reply {
  return repliesOf(conversation) === 0
    ? { toolCalls: [{ name: "write_file", input: { path, content } }] }
    : { text: `Wrote ${path}.` };
}

test(
  "a lead starts three agents in worktrees of their own, and learns their branches and changes",
  ofCampaign,
  async () => {
    write("lead", "holdfast:\n  agents: [adder, fixer, reader]\n", "You lead.");
    write("adder", OWN("  workspace: worktree\n  sandbox: virtual\n"), "You add.");
    write("fixer", OWN("  workspace: worktree\n"), "You fix.");
    write(
      "reader",
      `isolation: worktree\nholdfast:\n  output: { type: object, properties: { ok: { type: boolean } } }\n`,
      "You read.",
    );
    const results: string[] = [];
    let described = "";
    project.script = (conversation) => {
      const { system, messages, tools } = conversation;
      if (system.includes("You add.")) return writesOnce("added.txt", "added\n", conversation);
      if (system.includes("You fix.")) return writesOnce("value.txt", "fixed\n", conversation);
      if (system.includes("You read.")) {
        if (system.includes("Answer in French.") && repliesOf(conversation) === 0)
          return {
            toolCalls: [
              { name: "git_diff", input: {} },
              { name: "read_file", input: { path: "value.txt" } },
            ],
          };
        return {
          toolCalls: [{ name: "submit_output", input: { ok: JSON.stringify(messages).includes("one") } }],
        };
      }
      described = JSON.stringify(tools);
      if (repliesOf(conversation) === 0)
        return {
          toolCalls: ["adder", "fixer", "reader"].map((agent) => ({
            name: "delegate",
            input: { agent, input: "Work." },
          })),
        };
      results.push(
        ...messages.flatMap(({ toolResults }) => toolResults.map((result) => JSON.stringify(result))),
      );
      return { text: "Done." };
    };
    await ran("agents", "trust");
    expect(await ran("run", "lead", "Lead.", "--session", "lead")).toBe("Done.\n");
    const [adder = "", fixer = "", reader = ""] = results;
    expect(adder).toMatch(
      /Wrote added.txt.*git branch holdfast\/lead-\d+: 1 commit since .*added.txt \| 1 \+/s,
    );
    expect(fixer).toMatch(/value.txt \| 2 \+-/);
    expect(reader).toMatch(/ok\W+true.*It changed no file/s);
    expect(described).toContain("Its result matches this JSON Schema");
    // The folder of the project stays as it was, and the work is on three branches.
    expect(readFileSync(project.path("value.txt"), "utf8")).toBe("one\n");
    expect(git("status", "--porcelain")).toBe("");
    expect(git("branch", "--list", "holdfast/*").trim().split("\n")).toHaveLength(3);
  },
);

test(
  "an empty workspace has no file of the project, and a child that shares works in the folder of its parent",
  ofCampaign,
  async () => {
    write("lead", OWN("  workspace: empty\n  agents: [helper]\n"), "You lead.");
    write("helper", "permissionMode: acceptEdits\n", "You help.");
    project.script = (conversation) => {
      if (conversation.system.includes("You help."))
        return writesOnce("helped.txt", "helped\n", conversation);
      switch (repliesOf(conversation)) {
        case 0:
          return { toolCalls: [{ name: "delegate", input: { agent: "helper", input: "Help." } }] };
        case 1:
          return { toolCalls: [{ name: "list_files", input: {} }] };
        default:
          return { text: JSON.stringify(conversation.messages.at(-1)) };
      }
    };
    await ran("agents", "trust");
    const files = await ran("run", "lead", "Lead.");
    expect(files).toContain("helped.txt");
    expect(files).not.toContain("value.txt");
    expect(existsSync(project.path("helped.txt"))).toBe(false);
  },
);

/** A session `s` of an agent that has written `value.txt` and `new.txt` in its worktree. */
async function worked(): Promise<string> {
  write("writer", OWN("  workspace: worktree\n"), "You write.");
  const files = ["value.txt", "new.txt"];
  project.script = (conversation) => {
    const path = files[repliesOf(conversation)];
    return path === undefined
      ? { text: "Done." }
      : { toolCalls: [{ name: "write_file", input: { path, content: "written\n" } }] };
  };
  await ran("run", ".holdfast/agents/writer.md", "Write.", "--session", "s");
  const [worktree] = await project.json<Listed>("worktrees", "list");
  return worktree?.path ?? "";
}

type Listed = readonly { readonly session: string; readonly path: string; readonly status: string }[];

test(
  "the work of a session is listed, shown, merged and then removed without a loss",
  ofCampaign,
  async () => {
    const path = await worked();
    expect(await ran("worktrees", "list")).toMatch(/^s +completed +holdfast\/s +1 changed, 1 untracked +~\//);
    expect(await ran("diff", "s", "--stat")).toContain("2 files changed");
    expect(await ran("diff", "s")).toContain("+written");
    const refused = await run("worktrees", "remove", "s");
    expect([refused.code, refused.stderr]).toEqual([6, expect.stringContaining("work that is nowhere else")]);
    const open = await run("merge", "s");
    expect([open.code, open.stderr]).toEqual([6, expect.stringContaining("give --commit")]);
    expect((await run("merge", "s", "-m", " ")).stderr).toContain("the message is empty");
    expect(await ran("merge", "s", "--commit", "-m", "Mend the writer")).toContain(
      "holdfast/s is merged into main",
    );
    const message = "Mend the writer\n\nHoldfast-Session: s";
    expect(
      git("log", "-2", "--format=%B%x00")
        .split("\0\n")
        .slice(0, 2)
        .map((one) => one.trim()),
    ).toEqual([message, message]);
    expect(readFileSync(project.path("new.txt"), "utf8")).toBe("written\n");
    expect(await ran("worktrees", "remove", "s")).toContain("refs/holdfast/rescue/s");
    expect(existsSync(path)).toBe(false);
    expect(await ran("worktrees", "list")).toContain("no session of this project has a worktree");
    expect(git("show", "refs/holdfast/rescue/s:new.txt")).toBe("written\n");
    expect((await run("diff", "nothing")).code).toBe(4);
  },
);

test("a merge and the commit of its work have the title of the session", async () => {
  await worked();
  await ran("title", "s", "Write the notes");
  await ran("merge", "s", "--commit");
  expect(git("log", "-2", "--format=%s")).toBe("Write the notes\nWrite the notes\n");
});

test("a worktree whose folder is gone is removed, and the command names no rescue that is not there", async () => {
  rmSync(await worked(), { recursive: true });
  const removed = await ran("worktrees", "remove", "s");
  expect(removed).toContain("its folder was gone, so what remains are the commits of holdfast/s");
  expect(git("for-each-ref", "refs/holdfast/rescue")).toBe("");
});

test(
  "a fork has the files of its checkpoint, the command says so, and a deleted session keeps no snapshot",
  ofCampaign,
  async () => {
    write("writer", OWN("  sandbox: virtual\n"), "You write.");
    const files = ["one.txt", "two.txt", "value.txt"];
    project.script = (conversation) => {
      const path = JSON.stringify(conversation.messages).includes("This session is a fork")
        ? undefined
        : files[repliesOf(conversation)];
      return path === undefined
        ? { text: "Done." }
        : { toolCalls: [{ name: "write_file", input: { path, content: "written\n" } }] };
    };
    const file = ".holdfast/agents/writer.md";
    await ran("run", file, "Write.", "--session", "s", "--worktree");
    const at = (await project.run("logs", "s", "--json")).stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as { type: string; seq: number })
      .filter(({ type }) => type === "checkpoint");
    const forked = await run("fork", "s", "--at", String(at[1]?.seq), "--session", "f", "--run");
    expect([forked.code, forked.stdout], forked.stderr).toEqual([0, "Done.\n"]);
    expect(forked.stderr).toContain(
      "it works in a git worktree of its own, which begins with the files of its checkpoint",
    );
    const listed = await project.json<Listed>("worktrees", "list");
    const pathOf = (id: string): string => listed.find(({ session }) => session === id)?.path ?? "";
    expect(readdirSync(pathOf("f")).toSorted()).toEqual([
      ".git",
      ".gitignore",
      "AGENTS.md",
      "one.txt",
      "two.txt",
      "value.txt",
    ]);
    expect(readFileSync(join(pathOf("f"), "value.txt"), "utf8")).toBe("one\n");
    expect(readFileSync(join(pathOf("s"), "value.txt"), "utf8")).toBe("written\n");
    expect(git("for-each-ref", "--format=%(refname)", "refs/holdfast").trim().split("\n")).toEqual([
      "refs/holdfast/snapshots/f",
      "refs/holdfast/snapshots/s",
    ]);
    await ran("delete", "s");
    await ran("worktrees", "remove", "f", "--rescue");
    expect(git("for-each-ref", "--format=%(refname)", "refs/holdfast").trim()).toBe("refs/holdfast/rescue/f");
    await ran("run", file, "Write.", "--session", "shared");
    expect((await run("fork", "shared")).stderr).toContain(
      `it works in the same folder as its origin: ${project.folder}`,
    );
  },
);

test(
  "a session that has not ended keeps its worktree, and finds its work there after a kill",
  ofCampaign,
  async () => {
    write("writer", "holdfast:\n  workspace: worktree\n", "You write.");
    project.script = (conversation) =>
      repliesOf(conversation) === 0
        ? { toolCalls: [{ name: "write_file", input: { path: "new.txt", content: "written\n" } }] }
        : { text: "Done." };
    await ran("run", ".holdfast/agents/writer.md", "Write.", "--session", "s", "--park");
    const refused = await run("worktrees", "remove", "s", "--rescue");
    expect([refused.code, refused.stderr]).toEqual([6, expect.stringContaining("has not ended")]);
    await ran("approve", "s");
    const running = start("resume", "s");
    await running.says("new.txt: written");
    running.kill("SIGKILL");
    await running.finished;
    await run("resume", "s"); // It may have ended before the kill.
    expect(await ran("result", "s")).toBe("Done.\n");
    expect(await ran("diff", "s")).toContain("+written");
    // One folder for the repository, and in it the worktree with its record.
    const folder = join(project.home, ".local/share/holdfast/worktrees");
    expect(
      readdirSync(folder)
        .flatMap((name) => readdirSync(join(folder, name)))
        .toSorted(),
    ).toEqual(["s", "s.json"]);
  },
);

test(
  "a project that can have no worktree refuses the session before its first model call",
  ofCampaign,
  async () => {
    write("writer", OWN("  workspace: worktree\n"), "You write.");
    rmSync(project.path(".git"), { recursive: true });
    project.script = () => ({ text: "never" });
    const { code, stderr } = await run("run", ".holdfast/agents/writer.md", "Write.");
    expect(stderr).toContain("is in no git repository, so it can have no worktree");
    expect(code).not.toBe(0);
  },
);

test(
  "a second session in one folder is a warning that names the first, and a worktree is none",
  ofCampaign,
  async () => {
    write("sharer", OWN("  approvals:\n    allow: [Bash]\n"), "You share.");
    write("writer", OWN("  workspace: worktree\n"), "You write.");
    const asked = Promise.withResolvers<void>();
    project.script = (conversation) => {
      if (!conversation.system.includes("You share.") || repliesOf(conversation) > 0)
        return { text: "Done." };
      asked.resolve();
      return {
        toolCalls: [{ name: "shell", input: { command: "while [ ! -e stop ]; do sleep 0.1; done" } }],
      };
    };
    const first = start("run", ".holdfast/agents/sharer.md", "Share.", "--session", "first");
    await asked.promise;
    const own = await run("run", ".holdfast/agents/writer.md", "Write.");
    expect(own.stderr).not.toContain("may work in this folder");
    const second = start("run", ".holdfast/agents/sharer.md", "Share.");
    await second.says("first (sharer) may work in this folder at the same time");
    writeFileSync(project.path("stop"), "");
    expect((await first.finished).code).toBe(0);
    expect((await second.finished).code).toBe(0);
  },
);

test("a second session of code in one folder is a warning, where both have tasks that change files", async () => {
  const code = (name: string, body: string, tasks = "shell"): void =>
    writeFileSync(
      project.path(`${name}.ts`),
      `import { defineWorkspaceTasks, workspacesByRoot } from "@holdfast/agents";
       import { defineAgent } from "holdfast";
       const { shell, readFile } = defineWorkspaceTasks(workspacesByRoot());
       const until = (file) => ({ workspace: ".", command: \`touch \${file}; while [ ! -e stop ]; do sleep 0.1; done\` });
       export default defineAgent({ name: "${name}", tasks: [${tasks}], run: async (ctx) => { ${body} } });`,
    );
  code("sharer", `await ctx.scheduleTask(shell, until("began"));`);
  code("writer", `return "written";`);
  code("reader", `return "read";`, "readFile");
  const first = start("run", "sharer.ts", "--session", "first");
  await vi.waitFor(() => expect(existsSync(project.path("began"))).toBe(true), 30_000);
  const warning = "first (sharer) may work in this folder at the same time";
  for (const name of ["writer", "reader"]) {
    const { code: exit, stderr } = await run("run", `${name}.ts`);
    expect(exit, stderr).toBe(0);
    expect(stderr.includes(warning), stderr).toBe(name === "writer");
  }
  const second = start("run", "sharer.ts");
  await second.says(warning);
  writeFileSync(project.path("stop"), "");
  expect((await first.finished).code).toBe(0);
  expect((await second.finished).code).toBe(0);
});

test(
  "a session loses nothing that it has written by kills of run and of remove at any moment",
  { ...ofCampaign, timeout: 36_000_000 },
  async () => {
    write("writer", OWN("  workspace: worktree\n"), "You write.");
    const files = ["one.txt", "two.txt", "value.txt"];
    project.script = (conversation) => {
      const path = files[repliesOf(conversation)];
      return path === undefined
        ? { text: "Done." }
        : { toolCalls: [{ name: "write_file", input: { path, content: `written ${path}\n` } }] };
    };
    /** Kills the command after a line of its output and a random time, and repeats it until it succeeds. */
    const untilDone = async (
      line: string,
      first: readonly string[],
      again: readonly string[],
    ): Promise<void> => {
      const started = start(...first);
      await started.says(line).catch(() => {});
      await delay(Math.random() * 300);
      started.kill("SIGKILL");
      await started.finished;
      for (let tries = 0; tries < 20; tries++) {
        const { code, stderr } = await run(...again);
        if (code === 0 || stderr.includes("SESSION_ENDED")) return;
        expect(stderr).toContain("another git is working"); // A lock of a killed git, until it is old.
        await delay(2_000);
      }
    };
    const moments = ["prepare", "one.txt: written", "value.txt: written"];
    for (let number = 0; number < KILLS; number++) {
      const id = `k${number}`;
      const file = ".holdfast/agents/writer.md";
      await untilDone(
        moments[number % 3]!,
        ["run", file, "Write.", "--session", id],
        ["run", file, "Write.", "--session", id],
      );
      const diff = await ran("diff", id);
      for (const path of files) expect(diff).toContain(`+written ${path}`);
      const remove = ["worktrees", "remove", id, "--rescue"];
      await untilDone("", remove, remove);
      for (const path of files)
        expect(git("show", `refs/holdfast/rescue/${id}:${path}`)).toBe(`written ${path}\n`);
    }
  },
);

test("work in a submodule is shown by diff and taken over by merge, and the note says how to check it out", async () => {
  const lib = project.path("upstream");
  mkdirSync(lib);
  writeFileSync(project.path("upstream/lib.txt"), "one\n");
  git("-C", lib, "init", "--quiet", "--initial-branch=main");
  git("-C", lib, "add", "--all");
  git("-C", lib, "-c", "user.name=T", "-c", "user.email=t@example.invalid", "commit", "--quiet", "-m", "lib");
  git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "lib");
  git("commit", "--quiet", "-m", "a submodule");
  rmSync(lib, { recursive: true });
  write("fixer", OWN("  sandbox: virtual\n"), "You fix.");
  await ran("agents", "trust");
  project.script = (conversation) => writesOnce("lib/lib.txt", "fixed\n", conversation);
  await ran("run", "fixer", "Fix it.", "--worktree", "--session", "s");
  expect(await ran("diff", "s")).toContain("+++ b/lib/lib.txt");
  const { code, stderr } = await run("merge", "s", "--commit");
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("new commits of submodules: lib");
  expect(readFileSync(project.path("lib/lib.txt"), "utf8")).toBe("one\n");
  git("submodule", "update", "--recursive");
  expect(readFileSync(project.path("lib/lib.txt"), "utf8")).toBe("fixed\n");
});
