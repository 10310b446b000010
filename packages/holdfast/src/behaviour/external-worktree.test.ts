// External agents and agent files in a git worktree of their own, by `run --worktree`.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { startScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";
import type { Finished } from "../testing/holdfast-process.ts";

let project: ExternalProject;
beforeEach(() => {
  project = new ExternalProject();
  writeFileSync(project.path(".gitignore"), "*\n!kept.txt\n!a.txt\n!b.txt\n");
  writeFileSync(project.path("kept.txt"), "kept\n");
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.org", ...args], {
      cwd: project.folder,
    });
  git("init", "-q", "-b", "main");
  git("add", "kept.txt");
  git("commit", "-qm", "first");
});
afterEach(() => project.dispose());

const run = (...args: string[]): Promise<Finished> => project.finishHere(args);

test("a session with a workspace of its own leaves the current folder alone", ofCampaign, async () => {
  const input = JSON.stringify({ text: "write:a.txt", workspace: "empty" });
  const { code, stderr } = await run("run", "claude-code", "--input", input, "--session", "s");
  expect(code, stderr).toBe(0);
  expect(existsSync(project.path("a.txt"))).toBe(false);
  const folder = project.starts()[0]!.cwd;
  expect(folder).toContain("/workspaces/");
  expect(readFileSync(`${folder}/a.txt`, "utf8")).toBe("x\n");
});

test(
  "an external agent works on a branch of its own, and its work is shown and merged by its session",
  ofCampaign,
  async () => {
    const { code, stderr } = await run("run", "claude-code", "write:a.txt", "--session", "s", "--worktree");
    expect(code, stderr).toBe(0);
    expect(stderr).not.toContain("not committed");
    expect(stderr).toMatch(/changed in its worktree \(branch holdfast\/s\):\n a\.txt \| 1 \+\n/);
    expect(stderr).toContain("see it:  holdfast diff s\ntake it: holdfast merge s --commit");
    expect(existsSync(project.path("a.txt"))).toBe(false);
    const [start] = project.starts();
    expect(start?.cwd).not.toBe(project.folder);
    expect(readFileSync(`${start?.cwd}/kept.txt`, "utf8")).toBe("kept\n");
    expect((await run("diff", "s")).stdout).toContain("+x");
    expect((await run("worktrees", "list")).stdout).toContain("holdfast/s");
    const merged = await run("merge", "s", "--commit");
    expect(merged.code, merged.stderr).toBe(0);
    expect(readFileSync(project.path("a.txt"), "utf8")).toBe("x\n");
  },
);

test(
  "a worktree without the changes of the folder is a warning before the agent works",
  ofCampaign,
  async () => {
    writeFileSync(project.path("kept.txt"), "changed\n");
    const { code, stderr } = await run("run", "claude-code", "hello", "--worktree");
    expect(code, stderr).toBe(0);
    expect(stderr).toContain("kept.txt is not committed, and the agent does not see the changes");
  },
);

test(
  "a chat and a hand-over take --worktree and --profile, and a conversation keeps what it began with",
  ofCampaign,
  async () => {
    mkdirSync(project.path(".holdfast/profiles"), { recursive: true });
    writeFileSync(project.path(".holdfast/profiles/mine.yaml"), "variables: [MINE]\n", { mode: 0o600 });
    const start = (...args: string[]) => project.startHere(args, { MINE: "1" }).finished;
    const chat = await start(
      "chat",
      "claude-code",
      "write:a.txt",
      "--session",
      "c",
      "--worktree",
      "--profile",
      "mine",
    );
    expect(chat.code, chat.stderr).toBe(0);
    expect(chat.stdout).toContain("Done: write:a.txt");
    const hand = await start(
      "fork",
      "c",
      "--agent",
      "claude-code",
      "--input",
      '"write:b.txt"',
      "--session",
      "f",
      "--worktree",
      "--profile",
      "mine",
    );
    expect(hand.code, hand.stderr).toBe(0);
    expect(project.starts().map(({ cwd, env }) => [cwd === project.folder, env.includes("MINE")])).toEqual([
      [false, true],
      [false, true],
    ]);
    expect((await run("diff", "f")).stdout).toContain("b.txt");

    const again = await start("chat", "--session", "c", "--profile", "mine");
    expect(again.code).toBe(2);
    expect(again.stderr).toContain("keeps the agent of its start");
    expect((await start("fork", "c", "--worktree")).stderr).toContain("name the agent with --agent");
  },
);

test(
  "a second session in the folder is a warning for chat and fork, and names --worktree",
  ofCampaign,
  async () => {
    expect((await run("run", "claude-code", "hello", "--session", "s")).code).toBe(0);
    const first = project.startHere(["run", "claude-code", "write:a.txt hang", "--session", "first"]);
    await project.hangs("first");
    const warned = /first \(claude-code\) may work in this folder[^]*run codex "…" --worktree/;
    const forked = await run("fork", "s", "--agent", "codex");
    expect(forked.stderr).toMatch(warned);
    const chat = project.start(["chat", "codex"], { stdin: "hello\n", env: project.environment() });
    expect((await chat.finished).stderr).toMatch(warned);
    first.kill("SIGKILL");
    await first.finished;
    expect((await run("cancel", "first", "--hard")).code).toBe(0);
  },
);

test(
  "a conversation of an external agent continues in its worktree after its command has ended",
  ofCampaign,
  async () => {
    const input = JSON.stringify({ text: "write:a.txt", conversation: true });
    expect(
      (await run("run", "claude-code", "--input", input, "--session", "s", "--worktree", "--park")).code,
    ).toBe(0);
    await run("signal", "s", "next_input", '"write:b.txt"');
    expect((await run("resume", "s", "--park")).code).toBe(0);
    const folders = new Set(project.starts().map(({ cwd }) => cwd));
    expect(folders.size).toBe(1);
    expect(existsSync(`${[...folders][0]}/b.txt`)).toBe(true);
  },
);

test.each(
  sampled([
    ["an agent of code", ["run", "code.ts", "--worktree"], "--worktree: for agent files"],
    ["a conversation of code", ["run", "code.ts", "--conversation"], "--conversation is for agent files"],
    ["a sandbox for code", ["run", "code.ts", "--sandbox", "virtual"], "--sandbox: for agent files"],
    [
      "a conversation of which nothing is kept",
      ["run", "claude-code", "hello", "--conversation", "--ephemeral"],
      "--ephemeral",
    ],
    ["an unknown sandbox", ["run", "claude-code", "hello", "--sandbox", "none-such"], "none-such"],
    ["a folder without a repository", ["run", "claude-code", "hello", "--worktree"], "git"],
  ]),
)("%s is refused with the reason", async (_what, args, says) => {
  writeFileSync(
    project.path("code.ts"),
    'import { defineAgent } from "holdfast";\nexport default defineAgent({ name: "code", run: async () => 1 });\n',
  );
  if (says === "git") execFileSync("rm", ["-rf", project.path(".git")]);
  const { code, stderr } = await run(...args);
  expect(code).not.toBe(0);
  expect(stderr).toContain(says);
  expect(existsSync(project.path("claude.log")), "the program was started").toBe(false);
});

test(
  "a conversation of an agent file waits after its answer, and its sandbox is that of the call",
  ofCampaign,
  async () => {
    const server = await startScriptedModelServer({
      script: ({ messages }) => ({ text: `Answer ${messages.filter(({ role }) => role === "user").length}` }),
    });
    try {
      const env = { HOLDFAST_SCRIPTED_MODEL_URL: server.url };
      const started = (...args: string[]) => project.startHere(args, env).finished;
      writeFileSync(project.path("lead.md"), "---\nname: lead\ndescription: Leads.\n---\nLead.\n");
      const refused = await started("run", "lead.md", "Go.", "--sandbox", "none-such");
      expect(refused.stderr).toContain("none-such");
      const { code, stdout, stderr } = await started(
        "run",
        "lead.md",
        "Go.",
        "--conversation",
        "--session",
        "c",
      );
      expect([code, stdout], stderr).toEqual([0, "c\n"]);
      expect(stderr).toContain("holdfast signal c ci @build.log");
      expect((await run("signal", "c", "next_input", '"Again."')).code).toBe(0);
      expect((await started("resume", "c", "--park")).stderr).toContain("Answer 2");
    } finally {
      await server.close();
    }
  },
);

test.each([
  [{ text: "write:b.txt" }, "b.txt"],
  [{ text: "write:b.txt", worktree: true }, "on the git branch holdfast/l-"],
  [{ text: "write:b.txt", workspace: "worktree" }, "on the git branch holdfast/l-"],
  [{ text: "write:b.txt", workspace: "empty" }, "Its files are in /"],
])(
  "an agent file lets an external agent do a part of its work, as a durable child: %j",
  ofCampaign,
  async (input, says) => {
    const server = await startScriptedModelServer({
      script: ({ messages }) =>
        messages.some(({ role }) => role === "assistant")
          ? { text: "Done." }
          : {
              toolCalls: [{ name: "delegate", input: { agent: "claude-code", input } }],
            },
    });
    try {
      writeFileSync(
        project.path("lead.md"),
        "---\nname: lead\ndescription: Leads.\nholdfast:\n  agents: [claude-code]\n---\nLead.\n",
      );
      const env = { HOLDFAST_SCRIPTED_MODEL_URL: server.url };
      const { code, stdout, stderr } = await project.startHere(
        ["run", "lead.md", "Go.", "--session", "l"],
        env,
      ).finished;
      expect(code, stderr).toBe(0);
      expect(stdout).toBe("Done.\n");
      expect(existsSync(project.path("b.txt"))).toBe(Object.keys(input).length === 1);
      const said = JSON.stringify((await project.shown("l")).entries);
      expect(said).toContain("Done: write:b.txt");
      expect(said).toContain(says);
    } finally {
      await server.close();
    }
  },
);

test(
  "code asks for an external agent with a worktree by its name, where a runner offers it",
  ofCampaign,
  async () => {
    writeFileSync(
      project.path("lead.ts"),
      `import { defineAgent, local } from "holdfast";
export const lead = defineAgent({
  name: "lead",
  run: async (ctx) =>
    ctx.waitForChild(ctx.spawnAgent(local("claude-code"), { text: "write:a.txt", workspace: "worktree" })),
});
`,
    );
    try {
      const up = await run("up", "--agents", "lead.ts", "--agents", "claude-code", "--port", "0");
      expect(up.code, up.stderr).toBe(0);
      const { code, stderr } = await run("run", "lead.ts", "--session", "l");
      expect(code, stderr).toBe(0);
      expect(existsSync(project.path("a.txt"))).toBe(false);
      expect((await run("diff", "l-0")).stdout).toContain("a.txt");
    } finally {
      await run("local", "stop");
    }
  },
);
