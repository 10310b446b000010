// Scripts in sessions: the tool and the command of a script, its events, and the version that a session began
// with.

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { decodeJson, type AgentTracer } from "@holdfast/core";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { z } from "zod";

import type { AgentPlaces } from "../places/agent-places.ts";
import type { AgentRecord } from "../record/agent-record.ts";
import { ModelLoop } from "../model-loop/model-loop.ts";
import { defineTool } from "../model-loop/tools/tool.ts";
import { findScripts, pushScript, tagScript } from "./find-scripts.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel, type Play } from "../testing/fake-model.ts";
import { scriptsCapability, scriptsOf } from "./scripts-capability.ts";

let folder: string;
let places: AgentPlaces;
let runtime: Runtime | undefined;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-scripts-")));
  mkdirSync(join(folder, "work"));
  places = {
    project: join(folder, "work"),
    home: join(folder, "home"),
    env: {},
    trustFile: join(folder, "data/trusted-folders.json"),
  };
  writeScript("count", 'wc -w < "$2"');
  push();
  write("work/notes.txt", "one two\n");
});

afterEach(async () => {
  await runtime?.close();
  runtime = undefined;
  rmSync(folder, { recursive: true, force: true });
});

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}
function writeScript(name: string, code: string, fields: object = {}): void {
  const parameters_schema = { properties: { file: { type: "string" } }, required: ["file"] };
  const manifest = {
    name,
    description: "Counts words.",
    script_file: "main.sh",
    parameters_schema,
    ...fields,
  };
  write(`home/.holdfast/scripts/${name}/script.json`, JSON.stringify(manifest));
  write(`home/.holdfast/scripts/${name}/main.sh`, `${code}\n`);
}
function push(): void {
  for (const script of findScripts(places)) pushScript(script, places, 0);
}

const ALLOW = ["shell", "script__*"].map((tool) => ({ decision: "allow", tool, pattern: null }) as const);
const COUNTS: AgentRecord = { ...RECORD, scripts: ["count"], permissions: ALLOW };

async function run(play: Play, record: AgentRecord = COUNTS, tools: ModelLoopTools = []) {
  const model = fakeModel(play);
  const workspace = workspacesByRoot();
  const capabilities = [scriptsCapability({ places, workspace })];
  const loop = new ModelLoop({ model, workspace, root: places.project, capabilities, tools });
  const storage = new MemoryStorage();
  const questions: string[] = [];
  const tracer: AgentTracer = {
    trace: (event) => {
      if (event.type !== "waiting") return;
      for (const wait of event.waits) {
        if (wait.type !== "input" || questions.includes(wait.prompt)) continue;
        questions.push(wait.prompt);
        void runtime?.answer(event.sessionId, { approved: false }, { question: wait.id });
      }
    },
  };
  runtime = createRuntime({ storage, tracer });
  const handle = await runtime.start(loop.agent(record), "hi");
  const outcome = await handle.settled();
  const entries = await storage.reader.entries(handle.sessionId, 0, 1_000);
  const events = entries.filter(({ role }) => role === "event").map(({ content }) => decodeJson(content));
  return { model, outcome, events, questions };
}
type ModelLoopTools = NonNullable<ConstructorParameters<typeof ModelLoop>[0]["tools"]>;

/** Makes one call of each tool, and returns the results. */
async function call(calls: readonly (readonly [string, object])[], record = COUNTS) {
  const { model, events } = await run(
    (_request, number) => (number === 0 ? { calls } : { text: "Done." }),
    record,
  );
  const results = (model.requests[1]?.messages ?? []).flatMap(({ role, content }) =>
    role === "tool" ? [content as { text: string; isError: boolean }] : [],
  );
  return { results, events, model };
}

test(
  "a script is a tool and a command, both calls are recorded as pairs, and no model reads the events",
  ofCampaign,
  async () => {
    const { results, events, model } = await call([
      ["script__count", { file: "notes.txt" }],
      ["shell", { command: "count --file notes.txt && count --fil x; count --file none.txt" }],
    ]);
    expect(results[0]).toMatchObject({ isError: false, text: expect.stringContaining("2") });
    expect(results[1]?.text).toContain("there is no parameter --fil");
    const version = findScripts(places)[0]?.current;
    const [first, second] = (model.requests[1]?.messages ?? []).flatMap(({ role, content }) =>
      role === "assistant" ? (content as { toolCalls: readonly { id: string }[] }).toolCalls : [],
    );
    expect(events).toEqual([
      { type: "script_started", call: first?.id, script: "count", version, arguments: { file: "notes.txt" } },
      { type: "script_finished", call: first?.id, script: "count", version, exitCode: 0 },
      { type: "script_started", call: second?.id, script: "count", version },
      { type: "script_finished", call: second?.id, script: "count", version, exitCode: 0 },
      { type: "script_started", call: second?.id, script: "count", version },
      { type: "script_finished", call: second?.id, script: "count", version, exitCode: expect.any(Number) },
    ]);
    expect(JSON.stringify(model.requests)).not.toContain("script_started");
    expect(model.requests[0]?.system).toContain(
      "- script__count: Counts words. In the shell: `count --file TEXT`",
    );
  },
);

test(
  "the files are read-only, git ignores them, and a changed one is written again before a call",
  ofCampaign,
  async () => {
    const play: Play = (_request, number) => {
      if (number === 0) return { calls: [["script__count", { file: "notes.txt" }]] };
      return { text: "Done." };
    };
    await run(play);
    const version = findScripts(places)[0]?.current?.slice(0, 12) ?? "";
    const at = join(places.project, ".agent-orchestrator/scripts/count", version, "main.sh");
    expect(statSync(at).mode & 0o777).toBe(0o444);
    expect(statSync(join(places.project, ".agent-orchestrator/bin/count")).mode & 0o777).toBe(0o555);
    expect(readFileSync(join(places.project, ".agent-orchestrator/bin/.gitignore"), "utf8")).toBe("*\n");
    await runtime?.close();
    rmSync(at);
    writeFileSync(at, "echo evil\n");
    const { results } = await call([["script__count", { file: "notes.txt" }]]);
    expect(results[0]?.text).not.toContain("evil");
    expect(readFileSync(at, "utf8")).toBe('wc -w < "$2"\n');
  },
);

test(
  "a wrong call is answered before anything runs, and a failing script keeps its code and its words",
  ofCampaign,
  async () => {
    writeScript("fail", "echo no disk >&2; exit 9", { parameters_schema: {} });
    push();
    const record = { ...COUNTS, scripts: ["count", "fail"] };
    const { results, events } = await call(
      [
        ["script__count", { fil: "notes.txt" }],
        ["script__fail", {}],
      ],
      record,
    );
    expect(results[0]).toMatchObject({ isError: true });
    expect(results[0]?.text).toMatch(/must have required property 'file'[^]*a right call: count --file TEXT/);
    expect(results[1]).toMatchObject({ isError: true, text: expect.stringMatching(/9[^]*no disk/) });
    expect(events.map((event) => (event as { type: string }).type)).toEqual([
      "script_started",
      "script_finished",
    ]);
  },
);

test("a session keeps the version of its start after a push of another one", ofCampaign, async () => {
  const { model } = await run((_request, number) => {
    if (number === 0) {
      writeScript("count", "echo changed");
      push();
    }
    return number === 0 ? { calls: [["script__count", { file: "notes.txt" }]] } : { text: "Done." };
  });
  expect(JSON.stringify(model.requests[1]?.messages)).not.toContain("changed");
});

test("a script that is named like another command is called by its path, and the prompt says so", async () => {
  for (const name of ["sort", "test"]) writeScript(name, `echo "mine $2"`);
  push();
  const record = { ...COUNTS, scripts: ["count", "sort", "test"] };
  const command =
    "sort --file x; .agent-orchestrator/bin/sort --file x; .agent-orchestrator/bin/test --file y";
  const { results, model } = await call([["shell", { command }]], record);
  expect(results[0]?.text).toMatch(/mine x[^]*mine y/);
  expect(results[0]?.text).not.toMatch(/mine x[^]*mine x/);
  const system = model.requests[0]?.system ?? "";
  for (const name of ["sort", "test"])
    expect(system).toContain(`In the shell: \`.agent-orchestrator/bin/${name} --file TEXT\``);
  expect(system).toContain("In the shell: `count --file TEXT`");
});

test("a person is asked without a rule, whatever the script says of its effect, and a refused call starts nothing", async () => {
  writeScript("count", "touch ran", { effect: "read" });
  push();
  const { events, questions } = await run(
    (_request, number) => (number === 0 ? { calls: [["script__count", { file: "x" }]] } : { text: "Done." }),
    { ...COUNTS, permissions: [] },
  );
  expect(questions).toEqual(["Allow script__count?"]);
  expect(events).toEqual([]);
});

test("a script and another tool of one name refuse the session, and the error names both", async () => {
  const other = defineTool({
    name: "script__count",
    description: "Another one.",
    input: z.strictObject({}),
    isReading: true,
    run: async () => "x",
  });
  const { outcome, model } = await run(() => ({ text: "Done." }), COUNTS, [other]);
  expect(JSON.stringify(outcome)).toContain(
    'two tools \\"script__count\\", one from a built-in tool and one from scripts',
  );
  expect(model.requests).toEqual([]);
});

test("an agent that names a version of a script gets its content and its parameters, whatever is current", () => {
  const [before] = findScripts(places);
  tagScript(before!, "old", before!.current ?? "", places);
  writeScript("count", "", { parameters_schema: { properties: { other: { type: "string" } } } });
  push();
  const chosen = (version: string) =>
    scriptsOf({ ...COUNTS, scripts: [`count${version}`] }, places, () => findScripts(places))[0];
  expect(chosen("")?.current).not.toBe(before?.current);
  for (const version of ["@old", `@${before?.current?.slice(0, 8)}`])
    expect(chosen(version)).toMatchObject({ current: before?.current, manifest: before?.manifest });
});

test.each<readonly [string, Partial<AgentRecord>, RegExp]>([
  ["in a version that is not there", { scripts: ["count@new"] }, /the script count has no version new/],
  [
    "that is not there",
    { scripts: ["cuont"] },
    /asks for the script "cuont", which is not there; did you mean count/,
  ],
  ["that is a path", { scripts: ["../count"] }, /asks for the script "\.\.\/count", which is not there/],
  ["that was not pushed", { scripts: ["fresh"] }, /"fresh", and you have not pushed it/],
  ["that is refused", { scripts: ["broken"] }, /"broken", which is refused/],
  ["while it denies its tool", { deniedTools: ["script__*"] }, /names the script count, and denies its tool/],
])("an agent that names a script %s is refused", (_name, change, message) => {
  writeScript("fresh", "");
  write("home/.holdfast/scripts/broken/script.json", "{");
  expect(() => scriptsOf({ ...COUNTS, ...change }, places, () => findScripts(places))).toThrow(message);
});
