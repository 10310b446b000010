import { HoldfastError, type Session } from "@holdfast/core";
import type { AgentRecord } from "@holdfast/agents";
import { defineAgent } from "@holdfast/runtime";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Arguments } from "@holdfast/terminal/frame/command";
import type { CoordinatorAccess } from "@holdfast/place/coordinator-access";
import type { Database, StackDatabase } from "@holdfast/place/project";
import type { LoadedAgent } from "../load-agent.ts";
import { planStart, wishOf, type StartFacts, type StartPlan } from "./start-plan.ts";

const agent = defineAgent({ name: "writer", input: z.unknown(), run: () => Promise.resolve(1) });
const code: LoadedAgent = { agent, source: { kind: "code", path: "/p/writer.ts" } };
const program: LoadedAgent = { agent, source: { kind: "program", name: "codex" } };
const fileOf = (fields: Partial<AgentRecord> = {}): LoadedAgent => ({
  agent,
  source: { kind: "file", path: "/p/writer.md" },
  record: {
    budget: { maxTurns: 3 },
    ttlMs: 60_000,
    isConversation: false,
    inputSchema: null,
    workspace: "shared",
    ...fields,
  } as AgentRecord,
});

const project: Database = { path: "/p/holdfast.db", origin: "default", projectFolder: "/p/.holdfast" };
const coordinator = { url: "http://c", token: "t", tokenFrom: "f" };
const remote: Database & { readonly coordinator: CoordinatorAccess } = {
  ...project,
  path: "http://c",
  coordinator,
};
const sources = ["/p/writer.ts", "/p/writer.md", "external:codex"];
const stack: StackDatabase = { ...remote, project: "/p", agents: ["writer"], sources };
const besideStack: Database = { ...project, stack };
const besideOther: Database = { ...project, stack: { ...stack, agents: [], sources: [] } };

const session = (status: Session["status"]): Session =>
  ({ sessionId: "s", status, agent: { name: "writer" } }) as Session;

/** Options of a command line, `true` for a switch. */
function argumentsOf(options: Readonly<Record<string, string | true>>): Arguments {
  const text = (name: string): string | undefined => {
    const value = options[name];
    return value === true ? undefined : value;
  };
  const texts = (name: string) => [text(name) ?? []].flat();
  return {
    action: undefined,
    positionals: [],
    usage: "run",
    has: (name) => options[name] !== undefined,
    text,
    texts,
  };
}

function planned(
  options: Readonly<Record<string, string | true>>,
  facts: Partial<StartFacts> = {},
  env = {},
): StartPlan {
  const args = argumentsOf(options);
  return planStart(args, {
    command: "run",
    wish: wishOf(args, env),
    loaded: code,
    input: undefined,
    sessionId: "s",
    cwd: "/p",
    database: project,
    found: null,
    isStrict: false,
    ...facts,
  });
}

describe("a session runs", () => {
  test.each<[where: string, type: string, path: string | undefined, plan: StartPlan]>([
    ["here over the database", "here", project.path, planned({})],
    ["here in memory", "here", undefined, planned({ ephemeral: true }, { database: undefined })],
    [
      "here over the storage of a coordinator that is named",
      "here",
      "http://c",
      planned({}, { database: remote }),
    ],
    ["in the stack that has loaded its agent", "runners", "http://c", planned({}, { database: besideStack })],
    ["here beside a stack without its agent", "here", project.path, planned({}, { database: besideOther })],
    ["here with --local", "here", project.path, planned({ local: true }, { database: besideStack })],
    ["here with --trace", "here", project.path, planned({ trace: "stdout" }, { database: besideStack })],
    [
      "here as a chat",
      "here",
      project.path,
      planned({}, { loaded: fileOf(), database: besideStack, command: "chat" }),
    ],
    [
      "here in the place of the session whose conversation it goes on with",
      "here",
      project.path,
      planned({}, { database: besideStack, command: "fork" }),
    ],
    [
      "at the coordinator whose runners have its agent",
      "runners",
      "http://c",
      planned({ agent: "writer" }, { loaded: undefined, database: remote }),
    ],
    [
      "in the stack whose runner has the agent of that name",
      "runners",
      "http://c",
      planned({ agent: "writer" }, { loaded: undefined, database: besideStack }),
    ],
    [
      "where the stack has it",
      "followed",
      "http://c",
      planned({}, { database: stack, found: session("waiting") }),
    ],
    [
      "here when it is paused in the stack",
      "here",
      "http://c",
      planned({}, { database: stack, found: session("paused") }),
    ],
    ["here again", "here", project.path, planned({}, { found: session("working") })],
    [
      "here again beside the stack",
      "here",
      project.path,
      planned({}, { database: besideStack, found: session("working") }),
    ],
  ])("%s", (_where, type, path, { place }) => {
    expect([place.type, "database" in place ? place.database?.path : "none"]).toEqual([type, path]);
  });

  test("nowhere when it has ended", () => {
    expect(planned({}, { found: session("completed") }).place.type).toBe("ended");
  });

  test("a person is told of a stack without the agent, unless the call asks for this process", () => {
    const missed = "the local stack has not loaded this agent";
    expect(planned({}, { database: besideOther }).missedByStack).toBe(missed);
    for (const plan of [
      planned({}),
      planned({}, { database: besideStack }),
      planned({ local: true }, { database: besideOther }),
      planned({}, { loaded: fileOf(), database: besideOther, command: "chat" }),
      planned({}, { database: besideOther, found: session("working") }),
    ])
      expect(plan.missedByStack).toBeUndefined();
  });

  test.each<[where: string, what: string, cwd: string, loaded: LoadedAgent]>([
    ["in the stack", "a coding agent", "/p", program],
    ["here", "a coding agent", "/p/sub", program],
    ["here", "a coding agent", "/other", program],
    ["in the stack", "an agent file", "/p", fileOf()],
    ["here", "an agent file", "/other", fileOf()],
    ["in the stack", "code, which chooses its folders,", "/other", code],
  ])("%s for %s that is called in %s, where the stack works in /p", (where, _what, cwd, loaded) => {
    const { place, missedByStack } = planned({}, { loaded, cwd, database: besideStack });
    expect(place.type).toBe(where === "here" ? "here" : "runners");
    expect(missedByStack).toBe(where === "here" ? "the local stack works in /p and not here" : undefined);
  });
});

describe("a start has", () => {
  test.each<[what: string, options: object, plan: StartPlan]>([
    [
      "the limits of its agent file",
      { budget: { maxTurns: 3 }, timeoutMs: 60_000 },
      planned({}, { loaded: fileOf() }),
    ],
    [
      "the limits of the call before those of the file",
      { budget: { maxSteps: 9 }, timeoutMs: 1_000 },
      planned({ budget: "9steps", ttl: "1s" }, { loaded: fileOf() }),
    ],
    [
      "no time to live as a conversation, each request of which has that time",
      { budget: { maxTurns: 3 } },
      planned({}, { loaded: fileOf({ isConversation: true }) }),
    ],
    [
      "no time to live as a chat",
      { budget: { maxTurns: 3 } },
      planned({}, { loaded: fileOf(), input: "hi", command: "chat" }),
    ],
    [
      "no time to live with --conversation",
      { budget: { maxTurns: 3 } },
      planned({ conversation: true }, { loaded: fileOf(), input: "hi" }),
    ],
    ["no limits of its own as code", {}, planned({})],
    [
      "its persistence and the demands",
      { persistence: "minimal", demands: { zone: "eu" } },
      planned(
        { agent: "a", persistence: "minimal", demand: "zone=eu" },
        { loaded: undefined, database: remote },
      ),
    ],
    [
      "the trace of its caller",
      { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` },
      planned({}, {}, { TRACEPARENT: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` }),
    ],
    ["no trace that is none", {}, planned({}, {}, { TRACEPARENT: "x" })],
  ])("%s", (_what, options, { start }) => {
    expect(start.options).toEqual(options);
  });

  test.each<[what: string, input: unknown, plan: StartPlan]>([
    ["the input as it is", { a: 1 }, planned({}, { input: { a: 1 } })],
    [
      "options as fields for a program",
      {
        text: "go",
        sandbox: "docker",
        worktree: true,
        resumeAtReset: true,
        profile: "p",
        conversation: true,
      },
      planned(
        { sandbox: "docker", worktree: true, "resume-at-reset": true, profile: "p", conversation: true },
        { loaded: program, input: "go" },
      ),
    ],
    [
      "no such fields for an agent file",
      "go",
      planned({ worktree: true }, { loaded: fileOf(), input: "go" }),
    ],
    [
      "the wish for a next request",
      { text: "go", conversation: true },
      planned({ conversation: true }, { loaded: fileOf(), input: "go" }),
    ],
    [
      "no such wish where the agent file has it",
      "go",
      planned({ conversation: true }, { loaded: fileOf({ isConversation: true }), input: "go" }),
    ],
    [
      "the resume at the reset, which the stack gets as a field",
      { text: "go", resumeAtReset: true },
      planned({ "resume-at-reset": true }, { loaded: fileOf(), input: "go", database: besideStack }),
    ],
  ])("%s", (_what, input, { start }) => {
    expect(start.input).toEqual(input);
  });

  test("the id of the session that it continues, and else the given one", () => {
    expect(planned({}, { sessionId: "new" }).start.sessionId).toBe("new");
    expect(planned({ continue: true }, { sessionId: "new", found: session("working") }).start.sessionId).toBe(
      "s",
    );
  });

  test("the source of its agent, which the session stores", () => {
    expect(planned({}).start.file).toBe("/p/writer.ts");
    expect(planned({}, { loaded: program }).start.file).toBe("external:codex");
  });
});

test.each<[folder: string, of: string, plan: StartPlan]>([
  ["shared", "code", planned({})],
  ["shared", "an agent file", planned({}, { loaded: fileOf() })],
  ["worktree", "an agent file that says so", planned({}, { loaded: fileOf({ workspace: "worktree" }) })],
  ["own", "an agent file with an empty folder", planned({}, { loaded: fileOf({ workspace: "empty" }) })],
  ["shared", "a program", planned({}, { loaded: program, input: "go" })],
  ["worktree", "a program with --worktree", planned({ worktree: true }, { loaded: program, input: "go" })],
  ["own", "a program whose input says so", planned({}, { loaded: program, input: { workspace: "empty" } })],
])("the folder is %s for %s", (folder, _of, plan) => {
  expect(plan.folder).toBe(folder);
});

describe("a start is refused", () => {
  const refusal = (plan: () => StartPlan): string | undefined => {
    try {
      plan();
      return undefined;
    } catch (error) {
      if (!HoldfastError.is(error)) throw error;
      return error.message;
    }
  };

  test("by the name of the agent alone, where no coordinator is named", () => {
    expect(refusal(() => planned({ agent: "writer" }, { loaded: undefined }))).toBe(
      "no coordinator is named for the agent's runners",
    );
  });

  test("without a bound, where bounds are strict and its agent may take turns", () => {
    const turns = { ...code, agent: { ...agent, turns: true } };
    const unbounded = 'agent "writer" may take turns for ever: its session has no limit of time or budget';
    expect(refusal(() => planned({}, { loaded: turns, isStrict: true }))).toBe(unbounded);
    expect(
      refusal(() => planned({}, { loaded: turns, isStrict: true, found: session("working") })),
    ).toBeUndefined();
    expect(refusal(() => planned({ ttl: "1m" }, { loaded: turns, isStrict: true }))).toBeUndefined();
    expect(refusal(() => planned({}, { loaded: turns }))).toBeUndefined();
    const named = { loaded: undefined, database: remote, isStrict: true };
    expect(refusal(() => planned({ agent: "writer" }, named))).toBe(unbounded);
    expect(refusal(() => planned({ agent: "writer", budget: "1steps" }, named))).toBeUndefined();
  });

  test("with a persistence that is none", () => {
    expect(refusal(() => planned({ persistence: "some" }))).toBe("--persistence is neither full nor minimal");
  });
});
