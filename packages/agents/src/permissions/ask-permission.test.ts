// Rules and kept answers in sessions of the model loop: what a call may do that no rule and no person
// allowed.

import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { AgentTracer } from "@holdfast/core";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";

import type { PermissionRule } from "../record/agent-record.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel } from "../testing/fake-model.ts";
import { ModelLoop } from "../model-loop/model-loop.ts";
import type { ProjectRules } from "./ask-permission.ts";

let folder: string;
let runtime: Runtime | undefined;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-rules-")));
});
afterEach(async () => {
  await runtime?.close();
  runtime = undefined;
  rmSync(folder, { recursive: true, force: true });
});

type Call = readonly [tool: string, input: object];

/** One session that makes these calls one after the other. Its questions are answered in their order, and then with no. */
async function play(
  calls: readonly Call[],
  permissions: readonly PermissionRule[],
  answers: readonly unknown[] = [],
  parts: { readonly projectRules?: ProjectRules } = {},
) {
  const questions: string[] = [];
  const tracer: AgentTracer = {
    trace: (event) => {
      if (event.type !== "waiting") return;
      for (const wait of event.waits) {
        if (wait.type !== "input" || questions.includes(`${wait.id} ${wait.prompt}`)) continue;
        questions.push(`${wait.id} ${wait.prompt}`);
        const answer = answers[questions.length - 1] ?? { approved: false };
        void runtime?.answer(event.sessionId, answer, { question: wait.id });
      }
    },
  };
  const model = fakeModel((_request, number) =>
    number < calls.length ? { calls: [calls[number] as [string, object]] } : { text: "Done." },
  );
  const loop = new ModelLoop({ model, workspace: workspacesByRoot(), root: folder, ...parts });
  await runtime?.close();
  runtime = createRuntime({ storage: new MemoryStorage(), tracer });
  const agent = loop.agent({ ...RECORD, permissions });
  const outcome = await (await runtime.start(agent, "Do it.")).settled();
  const results = (model.requests.at(-1)?.messages ?? [])
    .filter(({ role }) => role === "tool")
    .map(({ content }) => (content as { readonly text: string }).text);
  return { outcome, results, questions: questions.map((text) => text.replace(/^\d+ /, "")) };
}

function put(path: string, text = "x\n"): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

const write = (path: string): Call => ["write_file", { path, content: "x" }];
const FOR_SESSION = { approved: true, remember: { scope: "session" } };

test("an answer that is kept for a folder's path permits no file below it", async () => {
  mkdirSync(join(folder, "src"));
  const { questions } = await play([write("src/"), write("src/deep/evil.ts")], [], [FOR_SESSION]);
  expect(questions).toEqual(["Allow write_file: src/?", "Allow write_file: src/deep/evil.ts?"]);
  expect(existsSync(join(folder, "src/deep/evil.ts"))).toBe(false);
});

test("a pattern that cannot be used is not kept, and one that was kept lets later calls ask", async () => {
  const kept: PermissionRule[] = [];
  const projectRules: ProjectRules = { read: () => kept, add: (rule) => void kept.push(rule) };
  const unusable = { approved: true, remember: { scope: "project", pattern: "./" } };
  await play([write("a.txt")], [], [unusable], { projectRules });
  expect(kept).toEqual([]);
  await play([write("./")], [], [{ approved: true, remember: { scope: "project" } }], { projectRules });
  expect(kept).toEqual([{ decision: "allow", tool: "write_file", pattern: "." }]);

  kept.push({ decision: "allow", tool: "write_file", pattern: "./" }); // As a person wrote it into the file.
  const { outcome, questions } = await play([write("ok.txt")], [], [], { projectRules });
  expect(outcome.status).toBe("completed");
  expect(questions).toEqual(["Allow write_file: ok.txt?"]);
});

const RULES: readonly PermissionRule[] = [
  { decision: "deny", tool: "read_file", pattern: "secrets/**" },
  { decision: "deny", tool: "list_files", pattern: "secrets/**" },
  { decision: "deny", tool: "search", pattern: "secrets/**" },
  { decision: "allow", tool: "write_file", pattern: "docs/**" },
];

test("no spelling of a path and no link reads what a rule forbids (permissions-8)", async () => {
  put("secrets/key.txt", "CANARY\n");
  put("a.txt");
  symlinkSync("secrets", join(folder, "pub"));
  symlinkSync("secrets/key.txt", join(folder, "key"));
  const paths = [
    "secrets/key.txt",
    join(folder, "secrets/key.txt"),
    "./a/../secrets//key.txt",
    "pub/key.txt",
    "pub/../secrets/key.txt",
    join(folder, "pub/key.txt"),
    "key",
  ];
  const folders = ["secrets", "secrets/", "pub", join(folder, "pub"), "pub/."];
  const calls: Call[] = [
    ...paths.map((path): Call => ["read_file", { path }]),
    ...folders.flatMap((path): Call[] => [
      ["list_files", { path }],
      ["search", { pattern: "CANARY", path }],
    ]),
  ];
  const { results, questions } = await play(calls, RULES);
  expect(results.filter((text) => !text.startsWith("Not permitted: "))).toEqual([]);
  expect(results.length).toBe(calls.length);
  expect(questions).toEqual([]);
  const { results: allowed } = await play([["read_file", { path: join(folder, "a.txt") }]], RULES);
  expect(allowed).toEqual(["x\n"]);
});

test.each(["a folder", "a repository"])(
  "a search, a listing and a diff from above leave out what a rule forbids, in %s (permissions-9)",
  async (kind) => {
    put("secrets/key.txt", "old\n");
    put("secrets/deep/key.txt", "old\n");
    put("a.txt", "old\n");
    symlinkSync("secrets/key.txt", join(folder, "key"));
    if (kind === "a repository") {
      const git = (...args: string[]): unknown => execFileSync("git", args, { cwd: folder, stdio: "pipe" });
      git("init", "-q");
      git("add", "-A");
      git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x");
    }
    for (const path of ["secrets/key.txt", "secrets/deep/key.txt", "a.txt"]) put(path, "CANARY\n");
    const { results } = await play(
      [
        ["search", { pattern: "CANARY" }],
        ["search", { pattern: "CAN.RY", isRegex: true, path: folder }],
        ["list_files", {}],
        ["list_files", { recursive: true, path: "." }],
        ...(kind === "a repository" ? [["git_diff", {}] as const] : []),
      ],
      RULES,
    );
    for (const text of results) {
      expect(text).toContain("a.txt");
      expect(text).toMatch(/\(files that a rule keeps from this tool are left out\)$/);
      expect(text).not.toContain("secrets");
      expect(text).not.toContain("key:");
    }
  },
);

test("a link in an allowed folder permits nothing outside of it (permissions-8)", async () => {
  put("docs/a.md");
  mkdirSync(join(folder, ".github"));
  symlinkSync("../.github", join(folder, "docs/gh"));
  symlinkSync("../none/new.txt", join(folder, "docs/dangling"));
  const paths = ["docs/gh/workflows/evil.yml", "docs/dangling", "docs/../top.txt"];
  const { questions } = await play(paths.map(write), RULES);
  expect(questions).toEqual(paths.map((path) => `Allow write_file: ${path}?`));
  const inside = ["docs/new/b.md", join(folder, "docs/c.md")];
  const allowed = await play(inside.map(write), RULES);
  expect(allowed.questions).toEqual([]);
  expect(existsSync(join(folder, "docs/new/b.md"))).toBe(true);
  // The answer for a link's path would permit another place later.
  const again = await play([write("docs/gh/x"), write("docs/gh/x")], RULES, [FOR_SESSION]);
  expect(again.questions).toEqual(["Allow write_file: docs/gh/x?", "Allow write_file: docs/gh/x?"]);
});
