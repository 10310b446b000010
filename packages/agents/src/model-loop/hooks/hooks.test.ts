// Hooks in sessions of the model loop: what each point may do, and what a hook that misbehaves does.

import {
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentTracer } from "@holdfast/core";
import { createRuntime, defineAgent, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { agentFileText } from "../../files/agent-file-text.ts";
import { foundAt } from "../../places/agent-places.ts";
import type { AgentHook, AgentRecord } from "../../record/agent-record.ts";
import { FieldReport } from "../../format/field-report.ts";
import { claudeHooks } from "../../hooks/claude-hooks.ts";
import { loadAgentFile } from "../../files/load-agent-file.ts";
import { workspacesByRoot } from "../../tasks/workspace-source.ts";
import { RECORD } from "../../testing/agent-record.ts";
import { fakeModel, type Play } from "../../testing/fake-model.ts";
import { ModelLoop } from "../model-loop.ts";

let folder: string;
let runtime: Runtime | undefined;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-hooks-")));
  writeFileSync(join(folder, "a.txt"), "alpha\n");
});
afterEach(async () => {
  await runtime?.close();
  runtime = undefined;
  rmSync(folder, { recursive: true, force: true });
});

function hook(point: AgentHook["point"], command: string, change: Partial<AgentHook> = {}): AgentHook {
  const run = { type: "command", command } as const;
  return { point, tools: null, run, timeoutMs: 5_000, onError: "block", claudeEvent: null, ...change };
}

const READ: Play = (_request, number) =>
  number === 0 ? { calls: [["read_file", { path: "a.txt" }]] } : { text: "Done." };

async function play(
  hooks: readonly AgentHook[],
  script: Play = READ,
  record: Partial<AgentRecord> = {},
  answer: unknown = { approved: false },
) {
  const model = fakeModel(script);
  const workspace = workspacesByRoot();
  const loop = new ModelLoop({ model, workspace, root: folder });
  const questions: string[] = [];
  const asked = new Set<number>();
  const tracer: AgentTracer = {
    trace: (event) => {
      if (event.type !== "waiting") return;
      for (const wait of event.waits) {
        if (wait.type !== "input" || asked.has(wait.id)) continue;
        asked.add(wait.id);
        questions.push(wait.prompt);
        void runtime?.answer(event.sessionId, answer, { question: wait.id });
      }
    },
  };
  runtime = createRuntime({ storage: new MemoryStorage(), tracer });
  const judge = defineAgent({
    name: "judge",
    run: async (_ctx, input) => {
      const { tool } = input as { tool?: string };
      return tool === "read_file"
        ? { action: "block", block_reason: "the judge says no" }
        : { action: "continue" };
    },
  });
  const teller = defineAgent({
    name: "teller",
    run: async () => readFileSync(join(folder, "answer"), "utf8"),
  });
  const agent = loop.agent({ ...RECORD, ...record, hooks }, [], { hookAgents: [judge, teller] });
  const outcome = await (await runtime.start(agent, "Read a.txt.")).settled();
  const texts = (model.requests.at(-1)?.messages ?? []).map(({ role, content }) => ({
    role,
    text: typeof content === "string" ? content : (content as { text: string }).text,
  }));
  const result = texts.find(({ role }) => role === "tool")?.text;
  return { outcome, requests: model.requests, texts, result, questions };
}
const failureOf = ({ outcome }: { readonly outcome: unknown }): string => JSON.stringify(outcome);

describe("on_run_start", () => {
  test("a hook changes the input, and the next hook and the model get the changed one", async () => {
    const { texts } = await play([
      hook("on_run_start", `echo '{"input": "Read it twice."}'`),
      hook("on_run_start", "cat > seen.json"),
    ]);
    expect(texts[0]?.text).toBe("Read it twice.");
    const seen = JSON.parse(readFileSync(join(folder, "seen.json"), "utf8")) as Record<string, unknown>;
    expect(seen).toMatchObject({
      hook: "on_run_start",
      agent: "helper",
      input: "Read it twice.",
      cwd: folder,
    });
  });

  test.each<readonly [string, AgentHook, RegExp]>([
    [
      "by its output",
      hook("on_run_start", `echo '{"action": "block", "reason": "not today"}'`),
      /Blocked by on_run_start hook: not today/,
    ],
    ["by exit code 2", hook("on_run_start", "echo no budget >&2; exit 2"), /hook: no budget/],
    ["by a failure", hook("on_run_start", "echo broken >&2; exit 1"), /hook: the hook failed: [^"]*broken/],
    [
      "by its time-out",
      hook("on_run_start", "sleep 100", { timeoutMs: 200 }),
      /the hook failed: [^"]*200 ms/,
    ],
    ["by output that is no JSON", hook("on_run_start", "echo '{'"), /its output is no JSON/],
    ["by an unknown action", hook("on_run_start", `echo '{"action": "maybe"}'`), /it answered \\+"maybe/],
    ["by a missing program", hook("on_run_start", "no-such-program-7"), /the hook failed/],
  ])("a hook blocks the session before its first model call %s", async (_name, one, says) => {
    const { outcome, requests } = await play([one]);
    expect(failureOf({ outcome })).toMatch(says);
    expect(failureOf({ outcome })).toContain("policy_denied");
    expect(requests).toEqual([]);
  });

  test("a hook that fails changes nothing where on_error is continue", async () => {
    const { outcome, texts } = await play([hook("on_run_start", "exit 1", { onError: "continue" })]);
    expect(outcome).toMatchObject({ status: "completed" });
    expect(texts[0]?.text).toBe("Read a.txt.");
  });
});

describe("before_tool", () => {
  test("a hook blocks a call with a reason for the model, and the call does not run", async () => {
    const { result, outcome } = await play([
      hook("before_tool", "echo 'a.txt is secret' >&2; exit 2", { tools: ["read_*"] }),
    ]);
    expect(result).toBe("Not carried out: a hook blocked it. a.txt is secret");
    expect(outcome).toMatchObject({ status: "completed" });
  });

  test("a hook for other tools sees nothing", async () => {
    const { result } = await play([
      hook("before_tool", "touch seen; exit 2", { tools: ["shell", "mcp__*"] }),
    ]);
    expect(result).toContain("alpha");
    expect(existsSync(join(folder, "seen"))).toBe(false);
  });

  test("an agent blocks a call as a hook", async () => {
    const { result } = await play([hook("before_tool", "", { run: { type: "agent", name: "judge" } })]);
    expect(result).toBe("Not carried out: a hook blocked it. the judge says no");
  });

  test("a hook cannot allow what the rules ask for, and can ask for what they allow", async () => {
    const write: Play = (_request, number) =>
      number === 0 ? { calls: [["write_file", { path: "b.txt", content: "x" }]] } : { text: "Done." };
    const allow = hook("before_tool", `echo '{"hookSpecificOutput": {"permissionDecision": "allow"}}'`);
    expect((await play([allow], write)).questions).toEqual(["Allow write_file: b.txt?"]);
    expect(existsSync(join(folder, "b.txt"))).toBe(false);
    await runtime?.close();
    const ask = hook("before_tool", `echo '{"hookSpecificOutput": {"permissionDecision": "ask"}}'`);
    expect((await play([ask])).questions).toEqual(["Allow read_file: a.txt?"]);
  });

  test("a hook that wants a person to be asked has each call asked, whatever rules and kept answers allow", async () => {
    const ask = hook("before_tool", `if grep -q RISKY; then echo '{"action":"ask"}'; fi`);
    const script: Play = (_request, number) =>
      number < 3
        ? { calls: [["shell", { command: ["echo", "echo RISKY", "echo RISKY"][number] }]] }
        : { text: "Done." };
    const permissions = [{ decision: "allow", tool: "shell", pattern: "echo:*" }] as const;
    const kept = { approved: true, remember: { scope: "session" } };
    const { questions } = await play([ask], script, { permissions }, kept);
    expect(questions).toEqual(["Allow shell: echo RISKY?", "Allow shell: echo RISKY?"]);
    await runtime?.close();
    const denied = await play([ask], script, {
      permissions: [{ decision: "deny", tool: "shell", pattern: null }],
    });
    expect(denied.questions).toEqual([]);
  });

  const FAILED_CLOSED = /^Not carried out: a hook blocked it. the hook failed: it.* one answer such as/;
  const NOT_AN_ANSWER: readonly (readonly [name: string, output: string])[] = [
    ["text before it", 'Shell ready\n{"action":"block"}'],
    ["text after it", '{"action":"continue"}\ndone'],
    ["an array", '[{"action":"block"}]'],
    ["two objects", '{"action":"continue"}\n{"action":"block"}'],
    ["a field twice", '{"action":"block","action":"continue"}'],
    ["plain text", "ok"],
    ["a text in JSON", '"continue"'],
    ["null", "null"],
    ["no field", "{}"],
    ["an unknown action", '{"action":"Block"}'],
    ["an action that is a list", '{"action":["block"]}'],
    ["an unknown field", '{"acton":"block","reason":"no"}'],
    ["a reason that is no text", '{"action":"continue","reason":{"action":"block"}}'],
    ["an input, which no call takes", '{"action":"continue","input":{"path":"b.txt"}}'],
    ["Claude's field with a wrong type", '{"hookSpecificOutput":"deny"}'],
    ["Claude's unknown decision", '{"hookSpecificOutput":{"permissionDecision":"denied"}}'],
    ["`continue` as a text", '{"continue":"false"}'],
  ];
  test.each(NOT_AN_ANSWER)("an output with %s blocks the call", async (_name, output) => {
    writeFileSync(join(folder, "answer"), output);
    expect((await play([hook("before_tool", "cat answer")])).result).toMatch(FAILED_CLOSED);
  });

  test("an agent that is no exact answer blocks, and on_error: continue is the file's own word", async () => {
    writeFileSync(join(folder, "answer"), 'I think so.\n{"action":"continue"}');
    const judge = hook("before_tool", "", { run: { type: "agent", name: "teller" } });
    expect((await play([judge])).result).toMatch(FAILED_CLOSED);
    await runtime?.close();
    const lenient = hook("before_tool", "cat answer", { onError: "continue" });
    expect((await play([lenient])).result).toContain("alpha");
  });

  test("a block beside a contradiction blocks, and no output is no objection", async () => {
    const both = hook("before_tool", `echo '{"action":"continue","decision":"block","reason":"no"}'`);
    expect((await play([both])).result).toBe("Not carried out: a hook blocked it. no");
    await runtime?.close();
    expect((await play([hook("before_tool", "echo; exit 0")])).result).toContain("alpha");
  });

  test.each([
    ["plain text", "checked, fine", "alpha"],
    ["a log line", "[info] checked", "alpha"],
    ["a field that Holdfast does not know", '{"suppressOutput":true,"newField":1}', "alpha"],
    ["text before an answer", 'Shell ready\n{"decision":"block"}', "a hook blocked it"],
    ["an array", '[{"decision":"block"}]', "a hook blocked it"],
    ["half an object", '{"decision":"blo', "a hook blocked it"],
    ["an unknown decision", '{"hookSpecificOutput":{"permissionDecision":"defer"}}', "a hook blocked it"],
  ])("a guard of Claude Code that writes %s has its meaning or blocks", async (_name, output, says) => {
    writeFileSync(join(folder, "answer"), output);
    const guard = hook("before_tool", "cat answer", { onError: "continue", claudeEvent: "PreToolUse" });
    expect((await play([guard])).result).toContain(says);
  });

  test("a hook that wants another input blocks the call and says which", async () => {
    const { result } = await play([
      hook("before_tool", `echo '{"hookSpecificOutput": {"updatedInput": {"path": "b.txt"}}}'`),
    ]);
    expect(result).toContain('make the call with this input instead: {"path":"b.txt"}');
  });
});

test("a hook after a call sees its result and adds a text, and one after the run sees the output", async () => {
  const { result, outcome } = await play([
    hook("after_tool", `cat > after.json; echo '{"context": "Remember the licence."}'`),
    hook("on_run_finish", `cat > finish.json; exit 2`),
  ]);
  expect(result).toBe("alpha\n\nRemember the licence.");
  expect(outcome).toMatchObject({ status: "completed", output: "Done." });
  const seen = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), "utf8"));
  expect(seen("after.json")).toMatchObject({
    tool: "read_file",
    tool_input: { path: "a.txt" },
    tool_result: "alpha\n",
  });
  expect(seen("finish.json")).toMatchObject({ hook: "on_run_finish", output: "Done." });
});

test("a record's hooks of both forms are the same after they were written as a file", () => {
  const settings = {
    PreToolUse: [{ matcher: "Read|mcp__x__.*", hooks: [{ type: "command", command: "x" }] }],
  };
  const hooks = [
    ...claudeHooks(settings, ["hooks"], new FieldReport()),
    hook("before_tool", "y", { tools: ["shell", "mcp__*"] }),
    hook("on_run_finish", "", { run: { type: "agent", name: "judge" }, onError: "continue" }),
  ];
  const path = join(folder, "helper.md");
  writeFileSync(path, agentFileText({ ...RECORD, hooks }));
  const read = loadAgentFile(foundAt(path));
  expect(read.record?.hooks).toEqual([hooks[0], hooks[2], hooks[1]]);
});

test("a hook of Claude Code reads its names of tools and paths", async () => {
  const report = new FieldReport();
  const settings = {
    PreToolUse: [{ matcher: "Read|Edit", hooks: [{ type: "command", command: "cat > pre.json" }] }],
    UserPromptSubmit: [{ hooks: [{ type: "command", command: "echo Today is Friday." }] }],
    Notification: [{ hooks: [] }],
  };
  const { texts } = await play(claudeHooks(settings, ["hooks"], report));
  expect(texts[0]?.text).toBe("Read a.txt.\n\nToday is Friday.");
  expect(JSON.parse(readFileSync(join(folder, "pre.json"), "utf8"))).toMatchObject({
    hook_event_name: "PreToolUse",
    tool_name: "Read",
    tool_input: { path: "a.txt", file_path: "a.txt" },
  });
  expect(report.verdicts.map(({ field, verdict, text }) => `${field} ${verdict}: ${text}`)).toEqual([
    "hooks.PreToolUse mapped: holdfast.hooks.before_tool: read_file, edit_file: cat > pre.json",
    "hooks.UserPromptSubmit mapped: holdfast.hooks.on_run_start: echo Today is Friday.",
    "hooks.Notification ignored: Holdfast has no such event",
  ]);
});

describe("fields of a hook of Claude Code", () => {
  const read = (event: string, more: Readonly<Record<string, unknown>>) => {
    const report = new FieldReport();
    const member = { type: "command", command: "true", ...more };
    const hooks = claudeHooks({ [event]: [{ hooks: [member] }] }, ["hooks"], report);
    return { hooks, said: report.verdicts.map(({ field, verdict, text }) => `${field} ${verdict}: ${text}`) };
  };
  const refused = "hooks.PreToolUse refused:";

  test.each<readonly [string, Readonly<Record<string, unknown>>, string, number]>([
    ["if", { if: "Bash(git push:*)" }, "hooks.PreToolUse mapped: ", 1],
    ["if with a pattern that is no command", { if: "Bash(git push; rm)" }, `${refused} if: `, 0],
    ["if for a path outside of the project", { if: "Edit(//etc/**)" }, `${refused} if: `, 0],
    ["if for a tool that nobody has", { if: "Bsah(git push)" }, `${refused} if: `, 0],
    ["if that is no rule", { if: "git push" }, `${refused} if: `, 0],
    ["shell", { shell: "powershell" }, `${refused} shell: `, 0],
    ["env", { env: { A: "b" } }, "not with the field env", 0],
    ["a misspelt field", { agrs: ["x"] }, "not with the field agrs", 0],
    ["args of a wrong type", { args: "guard.mjs" }, "(field args)", 0],
    ["args with an unknown variable", { args: ["${CLAUDE_PLUGIN_ROOT}/x"] }, `${refused} args: `, 0],
    ["async", { async: true }, "hooks.PreToolUse.async ignored: ", 0],
    ["asyncRewake", { asyncRewake: true }, "hooks.PreToolUse.async ignored: ", 0],
    ["once", { once: true }, "hooks.PreToolUse.once ignored: ", 1],
    ["statusMessage", { statusMessage: "x" }, "hooks.PreToolUse.statusMessage ignored: ", 1],
    ["timeout", { timeout: 601 }, "hooks.PreToolUse.timeout ignored: ", 1],
    ["shell bash", { shell: "bash" }, "hooks.PreToolUse mapped: ", 1],
    [
      "type",
      { type: "http", url: "https://a.example" },
      `${refused} Holdfast runs hooks of the type command`,
      0,
    ],
  ])("%s has a verdict, and a guard that cannot be run with it is refused", (_name, more, says, count) => {
    const { hooks, said } = read("PreToolUse", more);
    expect(said.join("\n")).toContain(says);
    expect(hooks).toHaveLength(count);
  });

  test.each([
    ["ElicitationResult", "refused"],
    ["preToolUse", "refused"],
    ["PermissionRequests", "refused"],
    ["Notification", "ignored"],
    ["SessionEnd", "ignored"],
    ["SomethingNew", "ignored"],
  ])("a hook of the event %s, which no point has, is %s", (event, verdict) => {
    expect(read(event, {}).said).toEqual([
      expect.stringContaining(`hooks.${event} ${verdict}: Holdfast has no such event`),
    ]);
  });

  test.each([
    ["PermissionRequest", "a person is asked, and decides"],
    ["Elicitation", "a person is asked, and decides"],
    ["ConfigChange", "a session keeps the settings of its start"],
    ["TaskCreated", "there are no such tasks"],
    ["TaskCompleted", "there are no such tasks"],
  ])("a hook of %s, without which nothing more is permitted, is ignored with the reason", (event, why) => {
    expect(read(event, {})).toEqual({
      hooks: [],
      said: [expect.stringContaining(`hooks.${event} ignored: Holdfast has no such event; ${why}`)],
    });
  });

  test.each([
    ["PreToolUse", '"$CLAUDE_PROJECT_DIR"/not-there.sh', "a hook blocked it"],
    ["PreToolUse", "exit 126", "a hook blocked it"],
    ["PreToolUse", "exit 1", "alpha"],
    ["PostToolUse", "not-there-either", "alpha"],
  ] as const)("at %s a program that does not run (%s) permits nothing more", async (event, command, said) => {
    const { result } = await play(read(event, { command }).hooks);
    expect(result).toContain(said);
  });

  test("args reach the program as they are, without a shell between", async () => {
    writeFileSync(join(folder, "guard.sh"), 'printf "%s|" "$@" > args.txt; exit 2\n');
    const args = ["${CLAUDE_PROJECT_DIR}/guard.sh", "it's", "", "$HOME `x` *", "two words"];
    const { result } = await play(read("PreToolUse", { command: "sh", args }).hooks);
    expect(result).toContain("a hook blocked it");
    expect(readFileSync(join(folder, "args.txt"), "utf8")).toBe("it's||$HOME `x` *|two words|");
  });
});

describe("the condition of a hook of Claude Code", () => {
  // The hook writes down each call that it sees. It forbids none.
  const seenBy = async (condition: string, calls: readonly (readonly [string, object])[]) => {
    const settings = {
      PreToolUse: [
        {
          hooks: [
            { type: "command", if: condition, command: `printf '%s\\n' "$(cat)" >> ${join(folder, "seen")}` },
          ],
        },
      ],
    };
    const report = new FieldReport();
    const all: Play = (_request, number) => {
      const call = calls[number];
      return call === undefined ? { text: "Done." } : { calls: [call] };
    };
    const allow = ["shell", "edit_file", "write_file", "read_file"].map(
      (tool) => ({ decision: "allow", tool, pattern: null }) as const,
    );
    await play(claudeHooks(settings, ["hooks"], report), all, { permissions: allow });
    if (!existsSync(join(folder, "seen"))) return [];
    const lines = readFileSync(join(folder, "seen"), "utf8").trim().split("\n");
    return lines.map((line) => {
      const { tool_input: input } = JSON.parse(line) as { tool_input: { command?: string; path?: string } };
      return input.command ?? input.path;
    });
  };
  const shells = (...commands: readonly string[]) =>
    commands.map((command) => ["shell", { command }] as const);

  test.each(["Bash(git push:*)", "Bash(git push *)"])(
    "%s lets it see each spelling of these commands, and no other",
    async (condition) => {
      const seen = await seenBy(
        condition,
        shells(
          "git push origin",
          "true && git push",
          "timeout 5 git push",
          "git status",
          "ls",
          "echo git push",
        ),
      );
      expect(seen).toEqual(["git push origin", "true && git push", "timeout 5 git push"]);
    },
  );

  test("a command that the line does not show is seen as well", async () => {
    expect(await seenBy("Bash(git push:*)", shells("$(echo git) push", "ls -l"))).toEqual([
      "$(echo git) push",
    ]);
  });

  test("a rule for files lets it see these files in any folder, also behind a link", async () => {
    symlinkSync("a.ts", join(folder, "link"));
    const write = (path: string) => ["write_file", { path, content: "x" }] as const;
    const seen = await seenBy("Edit(*.ts)", [write("a.ts"), write("src/b.ts"), write("b.md"), write("link")]);
    expect(seen).toEqual(["a.ts", "src/b.ts", "link"]);
  });

  test("a rule for a whole tool lets it see the calls of this tool", async () => {
    const seen = await seenBy("Bash", [["read_file", { path: "a.txt" }], ...shells("ls")]);
    expect(seen).toEqual(["ls"]);
  });
});
