import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { decodeJson, type AgentTracer } from "@holdfast/core";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";

import { createCodingAgent } from "./coding-agent.ts";
import type { CodingInput, CodingLimits, CodingReport } from "./coding-agent/coding-session.ts";
import type { ModelProvider, ToolContent } from "./models/model-provider.ts";
import { workspacesByRoot } from "./tasks/workspace-source.ts";
import { fakeModel as model, type Play, type Say } from "./testing/fake-model.ts";

const AS_PERSON = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
const IDENTITY = { GIT_CONFIG_GLOBAL: "/dev/null" };

let repo: string;
let storage: MemoryStorage;
let runtime: Runtime | undefined;

beforeEach(async () => {
  repo = await mkdtemp(join(tmpdir(), "coding-agent-"));
  await writeFile(join(repo, "value.txt"), "one\n");
  await writeFile(
    join(repo, "test.sh"),
    "grep -q two value.txt && echo passed || { echo value.txt is wrong; exit 1; }\n",
  );
  await writeFile(join(repo, "package.json"), '{ "scripts": { "test": "sh test.sh" } }\n');
  git("init", "-q", "-b", "main");
  git("add", ".");
  git(...AS_PERSON, "commit", "-q", "-m", "begin");
  storage = new MemoryStorage();
});

afterEach(async () => {
  await runtime?.close();
  await rm(repo, { recursive: true, force: true });
});

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: repo, encoding: "utf8" }).trim();
}

interface Played {
  readonly report: CodingReport;
  readonly entries: readonly { readonly role: string; readonly content: unknown }[];
  /** The answers of the calls, in order. */
  readonly results: readonly string[];
  /** Inputs of the tasks, in order. */
  readonly tasks: readonly unknown[];
  /** Prompts of the questions asked. */
  readonly questions: readonly string[];
}

interface PlayOptions {
  readonly input?: Partial<CodingInput>;
  readonly answers?: readonly unknown[];
  readonly limits?: Partial<CodingLimits>;
}

/** Runs a session to its end, answering its questions: yes, unless told otherwise. */
async function play(
  provider: ModelProvider,
  { input, answers = [], limits = {} }: PlayOptions = {},
): Promise<Played> {
  const questions = new Map<string, string>();
  const tasks: unknown[] = [];
  const tracer: AgentTracer = {
    trace: (event) => {
      if (event.type === "task_started") tasks.push(JSON.parse(String(event.input)));
      if (event.type === "waiting") {
        const [wait] = event.waits;
        if (wait?.type !== "input" || questions.has(wait.name)) return;
        questions.set(wait.name, wait.prompt);
        void runtime?.answer(event.sessionId, answers[questions.size - 1] ?? { approved: true });
      }
    },
  };
  runtime = createRuntime({ storage, tracer });
  const agent = createCodingAgent({
    workspace: workspacesByRoot({ env: IDENTITY }),
    model: provider,
    limits,
  });
  const handle = await runtime.start(agent, { repo, ...input });
  const report = await handle.result();
  const entries = (await storage.reader.entries(handle.sessionId, 0, 1_000)).map(({ role, content }) => ({
    role,
    content: decodeJson(content),
  }));
  return {
    report,
    entries,
    results: entries
      .filter(({ role }) => role === "tool")
      .map(({ content }) => (content as ToolContent).text),
    tasks,
    questions: [...questions.values()],
  };
}

const PLAN: Say = { calls: [["propose_plan", { summary: "make it two", steps: ["edit value.txt"] }]] };
const EDIT: Say = { calls: [["edit_file", { path: "value.txt", oldText: "one", newText: "two" }]] };
const FINISH: Say = { calls: [["finish", { summary: "It is two now.", commitMessage: "fix: two" }]] };

describe("the work of a coding agent", () => {
  test("a failing test in, a commit that makes it pass out", ofCampaign, async () => {
    const { report, questions, entries } = await play(model([PLAN, EDIT, FINISH]));
    expect(report).toEqual({
      status: "completed",
      summary: "It is two now.",
      commit: git("rev-parse", "HEAD"),
      filesChanged: ["value.txt"],
      turns: 3,
      model: "fake/model",
      usage: { inputTokens: 30, outputTokens: 15, costMicroUsd: 300 },
    });
    expect(git("log", "--format=%s")).toBe("fix: two\nbegin");
    expect(git("status", "--porcelain")).toBe("");
    expect(questions).toEqual([expect.stringContaining(repo)]);
    expect(entries.map((entry) => entry.role)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
      "tool",
      "assistant",
      "tool",
    ]);
    expect(entries[0]?.content).toContain("value.txt is wrong");
  });

  test("every tool shows the model the data that it asked for", ofCampaign, async () => {
    const { results, report } = await play(
      model([
        {
          calls: [
            ["list_files", { recursive: true }],
            ["read_file", { path: "value.txt" }],
            ["search", { pattern: "two" }],
            ["run_tests", {}],
          ],
        },
        PLAN,
        {
          calls: [
            ["write_file", { path: "sub/new.txt", content: "new\n" }],
            ["shell", { command: "echo hi; exit 3", repeatable: true }],
            ["edit_file", { path: "value.txt", oldText: "one", newText: "two" }],
            ["git_diff", {}],
            ["read_file", { path: "../outside" }],
          ],
        },
        FINISH,
      ]),
    );
    expect(results.slice(0, 4)).toEqual([
      "package.json\ntest.sh\nvalue.txt",
      "one\n",
      "test.sh:1: grep -q two value.txt && echo passed || { echo value.txt is wrong; exit 1; }",
      "exit code 1\nvalue.txt is wrong",
    ]);
    expect(results.slice(5, 8)).toEqual([
      "sub/new.txt: written, 4 bytes",
      "exit code 3\nhi",
      "value.txt: changed at line 1",
    ]);
    expect(results[8]).toContain("-one\n+two");
    expect(results[9]).toContain("leads out of the workspace");
    expect(report.filesChanged).toEqual(["sub/new.txt", "value.txt"]);
  });

  test("the commit contains files that a command staged, and no leftovers of tests", ofCampaign, async () => {
    await writeFile(join(repo, "test.sh"), "touch report.xml; grep -q two value.txt\n");
    git(...AS_PERSON, "commit", "-q", "-a", "-m", "tests write a report");
    const { report } = await play(
      model([PLAN, EDIT, { calls: [["shell", { command: "echo x > made.txt; git add made.txt" }]] }, FINISH]),
    );
    expect(report.filesChanged).toEqual(["made.txt", "value.txt"]);
    expect(git("status", "--porcelain")).toBe("?? report.xml");
  });

  test("tests that still fail send it back to work", ofCampaign, async () => {
    const wrong: Say = { calls: [["edit_file", { path: "value.txt", oldText: "one", newText: "three" }]] };
    const right: Say = { calls: [["edit_file", { path: "value.txt", oldText: "three", newText: "two" }]] };
    const { results, report } = await play(model([PLAN, wrong, FINISH, right, FINISH]));
    expect(results[2]).toBe("It is not done: the tests do not pass.\n\nexit code 1\nvalue.txt is wrong");
    expect(report).toMatchObject({ status: "completed", turns: 5 });
    expect(git("rev-list", "--count", "HEAD")).toBe("2");
  });

  test("a model that only says it is done is taken at its word, if the tests pass", ofCampaign, async () => {
    const { report } = await play(model([PLAN, EDIT, { text: "It is two now." }]));
    expect(report).toMatchObject({
      status: "completed",
      summary: "It is two now.",
      filesChanged: ["value.txt"],
    });
    expect(git("log", "-1", "--format=%s")).toBe("make it two");
  });

  test("a task and a test command may be given", ofCampaign, async () => {
    const provider = model([PLAN, EDIT, FINISH]);
    const { entries } = await play(provider, { input: { task: "Make it two.", testCommand: "true" } });
    expect(entries[0]?.content).toBe("Make it two.\n\nThe tests now:\nexit code 0");
    expect(provider.requests[0]?.system).toContain("run by: true");
  });

  test("a repository whose tests pass is left alone, and no model is asked", ofCampaign, async () => {
    const { report } = await play(model([]), { input: { testCommand: "true" } });
    expect(report).toMatchObject({ status: "nothing_to_do", turns: 0, commit: null, model: null });
  });

  // Resumed from another folder, "." would be another repository.
  test(
    "a relative path is taken once, and every later task names the repository by its absolute path",
    ofCampaign,
    async () => {
      const { entries, tasks } = await play(model([PLAN, EDIT, FINISH]), {
        input: { repo: relative(process.cwd(), repo) },
      });
      expect(entries).toHaveLength(7);
      const workspaces = tasks
        .map((input) => (input as { workspace?: string } | undefined)?.workspace)
        .filter((name) => name !== undefined);
      expect(workspaces[0]).toBe(relative(process.cwd(), repo));
      expect(new Set(workspaces.slice(1))).toEqual(new Set([repo]));
    },
  );
});

describe("a person decides", () => {
  test("nothing is changed before the plan is approved", ofCampaign, async () => {
    const early: Say = {
      calls: [
        ...(EDIT.calls ?? []),
        ["shell", { command: "touch made" }],
        ["write_file", { path: "x", content: "" }],
      ],
    };
    const refuse = { approved: false, reason: "no" };
    const { results, report } = await play(model([early, PLAN, PLAN, PLAN]), {
      answers: [refuse, refuse, refuse],
    });
    expect(results.slice(0, 3)).toEqual(
      Array.from({ length: 3 }, () => expect.stringContaining("is not possible yet: call propose_plan")),
    );
    expect(report).toMatchObject({
      status: "plan_refused",
      commit: null,
      turns: 4,
      summary: expect.stringContaining("The last reason: no"),
    });
    expect(git("status", "--porcelain")).toBe("");
  });

  test("a refused plan is revised with the reason", ofCampaign, async () => {
    const answers = [
      { approved: false, reason: "say which file" },
      { approved: true, reason: "better" },
    ];
    const { results, report, questions } = await play(model([PLAN, PLAN, EDIT, FINISH]), { answers });
    expect(results[0]).toContain("The reason: say which file");
    expect(results[1]).toContain("The person says: better");
    expect(report.status).toBe("completed");
    expect(questions).toHaveLength(2);
  });

  test(
    "an answer that is none is refused where it is given, and the question stays open",
    ofCampaign,
    async () => {
      const agent = createCodingAgent({ workspace: workspacesByRoot(), model: model([PLAN]) });
      const asked = Promise.withResolvers<void>();
      runtime = createRuntime({
        storage,
        tracer: { trace: (event) => void (event.type === "waiting" && asked.resolve()) },
      });
      const handle = await runtime.start(agent, { repo });
      await asked.promise;
      for (const answer of ["yes", { approved: "yes" }, true, { approved: true, name: "Ada" }, null])
        await expect(handle.answer(answer)).rejects.toMatchObject({
          code: "usage",
          fix: expect.stringContaining("approve"),
        });
      expect(await storage.reader.pendingSignals(handle.sessionId)).toEqual([]);
      expect((await handle.session()).status).toBe("input_required");
    },
  );

  test(
    "the question shows the whole plan, where it will work, and that the shell is not isolated",
    ofCampaign,
    async () => {
      const agent = createCodingAgent({ workspace: workspacesByRoot(), model: model([PLAN]) });
      const asked = Promise.withResolvers<void>();
      runtime = createRuntime({
        storage,
        tracer: { trace: (event) => void (event.type === "waiting" && asked.resolve()) },
      });
      const { sessionId } = await runtime.start(agent, { repo });
      await asked.promise;
      const records = await storage.reader.journal(sessionId, 0, 1_000);
      const text = JSON.stringify(records.filter((record) => record.type === "request_input"));
      expect(text).toContain("edit value.txt");
      expect(text).toContain("NOT isolated");
      expect(text).toContain("npm test");
    },
  );
});

describe("it always ends, and says why", () => {
  const left = (reason: RegExp): object => ({
    status: "stopped",
    commit: null,
    reason: expect.stringMatching(reason),
  });

  test(
    "calls without a name, of no tool, and with wrong arguments are answered and counted",
    ofCampaign,
    async () => {
      const wrong: Say = {
        calls: [
          ["", {}],
          ["no_such_tool", {}],
          ["read_file", { file: "x" }],
          ["read_file", {}, "the arguments are not a JSON object: ["],
        ],
      };
      const provider = model(() => wrong);
      const { report, results } = await play(provider);
      expect(results.slice(0, 4)).toEqual([
        expect.stringContaining("A call without the name of a tool. The tools are: read_file,"),
        expect.stringContaining('There is no tool "no_such_tool"'),
        expect.stringContaining("the arguments of read_file are not right"),
        "the arguments are not a JSON object: [",
      ]);
      expect(report).toMatchObject({ ...left(/6 calls in a row/), turns: 2 });
    },
  );

  test("the agent stops after the same call with the same result several times", ofCampaign, async () => {
    const { report, results } = await play(model(() => ({ calls: [["read_file", { path: "value.txt" }]] })));
    expect(report).toMatchObject({
      ...left(/read_file was called 5 times with the same result/),
      turns: 5,
    });
    expect(results[2]).toContain("Do something else.");
  });

  test("a model that says nothing", ofCampaign, async () => {
    const { report } = await play(model(() => ({})));
    expect(report).toMatchObject({ ...left(/3 replies in a row called no tool/), turns: 3 });
  });

  test("too many turns; what was changed until then is left, not committed", ofCampaign, async () => {
    const { report } = await play(
      model((_request, number) =>
        number === 0 ? PLAN : number === 1 ? EDIT : { calls: [["shell", { command: `echo ${number}` }]] },
      ),
      { limits: { turns: 4 } },
    );
    expect(report).toMatchObject({
      ...left(/limit of 4 model calls/),
      turns: 4,
      filesChanged: ["value.txt"],
    });
    expect(report.summary).toContain("not committed");
    expect(git("rev-list", "--count", "HEAD")).toBe("1");
  });

  test("the tokens it has used", ofCampaign, async () => {
    const busy: Play = (_request, number) => ({ calls: [["search", { pattern: `x${number}` }]] });
    expect((await play(model(busy), { limits: { tokens: 25 } })).report).toMatchObject({
      ...left(/limit of 25 tokens/),
      turns: 2,
    });
  });

  test("the agent stops when the model refuses", ofCampaign, async () => {
    expect((await play(model([{ finishReason: "refusal" }]))).report).toMatchObject(left(/model refused/));
  });

  test("a reply that was cut off is continued", ofCampaign, async () => {
    const { entries, report } = await play(
      model([{ text: "I th", finishReason: "length" }, PLAN, EDIT, FINISH]),
    );
    expect(entries[2]).toEqual({ role: "user", content: expect.stringContaining("cut off") });
    expect(report.status).toBe("completed");
  });

  test("hundreds of calls in one reply", ofCampaign, async () => {
    const calls = Array.from({ length: 100 }, (_, i): [string, object] => ["search", { pattern: `p${i}` }]);
    const { results } = await play(model([{ calls }]), { limits: { turns: 1, callsPerReply: 3 } });
    expect(results).toHaveLength(100);
    expect(results.filter((text) => text === "(no match)")).toHaveLength(3);
    expect(results[99]).toContain("only 3 calls of one reply");
  });

  test("calls after the end are not carried out, and still answered", ofCampaign, async () => {
    const { results, report } = await play(
      model([
        PLAN,
        EDIT,
        {
          calls: [
            ...(FINISH.calls ?? []),
            ["shell", { command: "touch late" }],
            ["read_file", { path: "value.txt" }],
          ],
        },
      ]),
    );
    expect(results.slice(-2)).toEqual(
      Array.from({ length: 2 }, () => "Not carried out: the work has ended."),
    );
    expect(report.status).toBe("completed");
    expect(git("status", "--porcelain")).toBe("");
  });
});

describe("a session that cannot begin", () => {
  test.each<[string, () => Promise<unknown>, RegExp]>(
    sampled([
      [
        "changes that are not committed",
        () => writeFile(join(repo, "extra.txt"), ""),
        /not committed \(extra.txt\)/,
      ],
      [
        "a folder that is no repository",
        () => rm(join(repo, ".git"), { recursive: true }),
        /not a git repository/,
      ],
      ["a folder that is not there", () => rm(repo, { recursive: true }), /is not a directory/],
      [
        "a repository without tests and without a task",
        async () => {
          await rm(join(repo, "package.json"));
          git(...AS_PERSON, "commit", "-q", "-a", "-m", "no tests");
        },
        /no tests were found/,
      ],
    ]),
  )("%s", async (_what, prepare, message) => {
    await prepare();
    await expect(play(model([]))).rejects.toThrow(message);
  });

  test("an input without a repository is refused", async () => {
    await expect(play(model([]), { input: { repo: "" } })).rejects.toMatchObject({ code: "invalid_input" });
  });
});
