// The coding agent is interrupted at commits and at starts and ends of tasks. The crash-points campaign plays
// all of these points. `npm test` leaves them out, and a run of this file alone plays every 16th.
//
// A run takes a fraction of a second, because the repository has two files and the model is in this process.
// The agent, its tasks, git and the shell are real.

import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import {
  type AssistantContent,
  type ModelProvider,
  type ModelRequest,
  type ToolContent,
  workspacesByRoot,
} from "@holdfast/agents";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { crashEverywhere, memorySubject, type CrashWorld, type Snapshot } from "@holdfast/testkit";
import { codingAgent } from "./agent.ts";
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
  GIT_AUTHOR_NAME: "P",
  GIT_AUTHOR_EMAIL: "p@example.invalid",
  GIT_AUTHOR_DATE: "2026-01-01T00:00:00Z",
  GIT_COMMITTER_NAME: "P",
  GIT_COMMITTER_EMAIL: "p@example.invalid",
  GIT_COMMITTER_DATE: "2026-01-01T00:00:00Z",
  GIT_CONFIG_GLOBAL: "/dev/null",
};
const COMMIT = "git add . && git commit --quiet --message='fix: two' && git rev-parse HEAD";
const CALLS = [
  { name: "propose_plan", input: { plan: "make it two" } },
  { name: "edit_file", input: { path: "value.txt", oldText: "one", newText: "one or two" } },
  { name: "write_file", input: { path: "notes/new.txt", content: "why\n" } },
  { name: "shell", input: { command: "grep -q two value.txt", repeatable: true } },
  { name: "shell", input: { command: COMMIT } },
];
/** The calls of a model whose commit was cut off: is it there? */
const LOOK = {
  name: "shell",
  input: { command: "git diff --quiet HEAD && git rev-parse HEAD", repeatable: true },
};
const AGAIN = { name: "shell", input: { command: `find .git -name '*.lock' -delete && ${COMMIT}` } };
const UNCERTAIN = "nobody knows whether it took effect";

function nextCall(messages: ModelRequest["messages"]): { readonly name: string; readonly input: object } {
  const replies = messages.filter(({ role }) => role === "assistant");
  const calls = replies.flatMap(({ content }) => (content as AssistantContent).toolCalls);
  const { text = "" } = (messages.at(-1)?.content ?? {}) as Partial<ToolContent>;
  if (text.includes(UNCERTAIN)) return LOOK;
  const [id] = /^[0-9a-f]{40}$/m.exec(text) ?? [];
  if (id !== undefined)
    return { name: "submit_output", input: { status: "completed", summary: "It is two now.", commit: id } };
  if (calls.at(-1)?.input["command"] === LOOK.input.command) return AGAIN;
  return CALLS[calls.length] ?? expect.fail(`asked once too often: ${text}`);
}

const model: ModelProvider = {
  provider: "fake",
  model: "model",
  isScripted: true,
  isPriced: false,
  describe: () => "fake",
  generate: async ({ messages }) => ({
    text: "",
    toolCalls: [
      {
        id: `call_${messages.length}`,
        ...(nextCall(messages) as { readonly name: string; readonly input: Record<string, unknown> }),
      },
    ],
    finishReason: "tool_calls",
    usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
    model: "fake/model",
  }),
};

test(
  "wherever it is interrupted, the coding agent ends with one commit, and only a cut-off commit changes the conversation",
  { ...ofCampaign, timeout: 600_000 },
  async () => {
    const scenario = {
      name: "the coding agent",
      agent: codingAgent(model, workspacesByRoot({ env: FIXED })),
      input: { repo, text: "Make it two." },
      reset: async () => {
        // A command of the life that was cut off may still be writing there.
        await rm(repo, { recursive: true, force: true, maxRetries: 10 });
        await mkdir(repo);
        await writeFile(join(repo, "value.txt"), "one\n");
        const options = { cwd: repo, env: { PATH: process.env["PATH"], HOME: base, ...FIXED } };
        for (const command of ["init --quiet", "add --all", "commit --quiet --message=begin"]) {
          execFileSync("git", command.split(" "), options);
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

    // The model reads that the commit was cut off, looks, and then goes on. Nothing else differs.
    const wrong = report.failures.filter(({ expected, got }) => {
      const [before, after] = [expected, got] as Snapshot[];
      if (!JSON.stringify(after?.entries ?? null).includes(UNCERTAIN)) return true;
      return !isDeepStrictEqual([before?.outcome, before?.effects], [after?.outcome, after?.effects]);
    });
    expect(wrong).toEqual([]);
    expect(report.outcome).toMatchObject({ status: "completed", output: { status: "completed" } });
    expect(report.runs).toBeGreaterThan(EVERY === 1 ? 80 : 4);
  },
);
