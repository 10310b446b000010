// The coding agent is interrupted at commits and at starts and ends of tasks. The crash-points campaign plays all of these points.
// `npm test` leaves them out, and a run of this file alone plays every 16th.
//
// A run takes a fraction of a second, because the repository has two files and the model is in this process. The agent, its
// tasks, git and the shell are real.

import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCodingAgent, workspacesByRoot, type ModelProvider } from "@holdfast/agents";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { crashEverywhere, memorySubject, type CrashWorld } from "@holdfast/testkit";
import { git } from "./fixture.ts";

const EVERY = isCampaign ? 1 : 16;

let base: string;
let repo: string;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "coding-crash-"));
  repo = join(base, "repo");
});
afterEach(() => rm(base, { recursive: true, force: true }));

/** Two runs make the same commits, down to their ids. */
const FIXED = {
  GIT_AUTHOR_DATE: "2026-01-01T00:00:00Z",
  GIT_COMMITTER_DATE: "2026-01-01T00:00:00Z",
  GIT_CONFIG_GLOBAL: "/dev/null",
};
const REPLIES = [
  { name: "propose_plan", input: { summary: "make it two", steps: ["edit value.txt"] } },
  { name: "edit_file", input: { path: "value.txt", oldText: "one", newText: "one or two" } },
  { name: "write_file", input: { path: "notes/new.txt", content: "why\n" } },
  { name: "finish", input: { summary: "It is two now.", commitMessage: "fix: two" } },
];

const model: ModelProvider = {
  provider: "fake",
  model: "model",
  isScripted: true,
  isPriced: false,
  describe: () => "fake",
  generate: async ({ messages }) => {
    const number = messages.filter(({ role }) => role === "assistant").length;
    const reply = REPLIES[number];
    if (reply === undefined) throw new Error(`asked once too often: ${number}`);
    return {
      text: "",
      toolCalls: [{ id: `call_${number}`, ...reply }],
      finishReason: "tool_calls",
      usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
      model: "fake/model",
    };
  },
};

test(
  "wherever it is interrupted, the coding agent ends as if nothing had happened: one commit, the same conversation",
  { ...ofCampaign, timeout: 600_000 },
  async () => {
    const scenario = {
      name: "the coding agent",
      agent: createCodingAgent({ workspace: workspacesByRoot({ env: FIXED }), model }),
      input: { repo, testCommand: "grep -q two value.txt" },
      reset: async () => {
        // A command of the life that was cut off may still be writing there.
        await rm(repo, { recursive: true, force: true, maxRetries: 10 });
        await mkdir(repo);
        await writeFile(join(repo, "value.txt"), "one\n");
        const options = { cwd: repo, env: { PATH: process.env["PATH"], HOME: base, ...FIXED } };
        for (const command of ["init --quiet", "add --all", "commit --quiet --message=begin"]) {
          execFileSync(
            "git",
            ["-c", "user.name=P", "-c", "user.email=p@example.invalid", ...command.split(" ")],
            options,
          );
        }
      },
      world: async ({ runtime, sessionId, until }: CrashWorld) => {
        await until((session) => session?.status === "input_required" || session?.endedAt !== undefined);
        await runtime.answer(sessionId, { approved: true });
      },
      effects: async () => ({
        log: await git(repo, "log", "--format=%s"),
        files: await git(repo, "show", "--stat", "--format=", "HEAD"),
        status: await git(repo, "status", "--porcelain"),
        value: await readFile(join(repo, "value.txt"), "utf8"),
      }),
    };
    const report = await crashEverywhere(scenario, memorySubject, { every: EVERY });

    expect(report.failures).toEqual([]);
    expect(report.outcome).toMatchObject({ status: "completed", output: { status: "completed", turns: 4 } });
    expect(report.runs).toBeGreaterThan(EVERY === 1 ? 80 : 4);
  },
);
