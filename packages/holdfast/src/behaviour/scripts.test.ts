// The library of scripts through the real command: new, push, list, show, run, history, rollback, and bad
// input.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  startScriptedModelServer,
  type Conversation,
  type Reply,
  type ScriptedModelServer,
} from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PublicCode } from "@holdfast/terminal/frame/command-error";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { expectError } from "../testing/expect-error.ts";
import { Project } from "../testing/holdfast-process.ts";
import { writeScript } from "../testing/script-files.ts";

let project: Project;
let home: string;

beforeEach(() => {
  project = new Project();
  home = mkdtempSync(join(tmpdir(), "holdfast-home-"));
  writeScript(project, "count", 'wc -w < "$2"');
});

afterEach(async () => {
  await project.dispose();
  rmSync(home, { recursive: true, force: true });
});

const run = (...args: string[]) =>
  project.finish(args, { stdin: "", env: { HOME: home, XDG_DATA_HOME: undefined } });

test(
  "a pushed script runs with its version, whatever happens to its folder, until it is pushed or rolled back",
  ofCampaign,
  async () => {
    expectError(await run("script", "push"), 12, "E_POLICY_DENIED", ["have not trusted this project"]);
    expect((await run("script", "list")).stdout).toMatch(/count +untrusted/);
    expect((await run("agents", "trust")).stdout).toContain("its 1 script with their present content");
    project.write("notes.txt", "one two\n");
    const call = ["script", "run", "count", '{"file": "notes.txt"}'] as const;
    expect((await run(...call)).stdout.trim()).toBe("2");

    writeScript(project, "count", 'wc -c < "$2"');
    expect((await run("script", "list")).stdout).toContain("push it to use it");
    const before = await run(...call);
    expect(before.stdout.trim()).toBe("2");
    expect(before.stderr).toContain("the folder has another content than this version");

    expect((await run("script", "push", "count")).stdout).toMatch(
      /^count has version [0-9a-f]{12} now: changed [\w., ]+\n$/,
    );
    expect((await run(...call)).stdout.trim()).toBe("8");
    const history = await run("script", "history", "count");
    expect(history.stdout.match(/current/g)).toHaveLength(1);
    const oldest = /^([0-9a-f]{12}) .*(?<!current)$/m.exec(history.stdout)?.[1] ?? "";
    expect((await run("script", "tag", "count", "old", oldest)).stdout).toContain("as count@old");
    expect((await run("script", "history", "count")).stdout).toMatch(new RegExp(`^${oldest} .* old$`, "m"));
    expect((await run("script", "rollback", "count", "old")).stdout).toBe(
      `count has version ${oldest} again\n`,
    );
    expect((await run(...call, "--json")).stdout).toContain(String.raw`"stdout":"2\n"`);
  },
);

test("a script that is named like a program of the machine is pushed with a warning, which lists and checks repeat", async () => {
  writeScript(project, "sort", "echo sorted");
  project.write(
    ".holdfast/agents/sorts.md",
    "---\nname: sorts\ndescription: S.\nholdfast:\n  scripts: [sort]\n---\nSort.\n",
  );
  await run("agents", "trust");
  const says =
    /a shell runs \/\S+\/sort by (?:this name|the name sort); (?:the agent calls|agents call) the script by \.agent-orchestrator\/bin\/sort/;
  const pushed = await run("script", "push", "sort");
  expect(pushed.code).toBe(0);
  expect(pushed.stderr).toMatch(says);
  expect((await run("script", "show", "sort")).stdout).toMatch(says);
  expect((await run("script", "list", "--json")).code).toBe(0);
  expect((await run("agents", "check", "sorts")).stdout).toMatch(says);
  expect((await run("script", "push", "count")).stderr).not.toContain("a shell runs");
});

test(
  "a script keeps the folder, the exit code and the streams of its call, and knows its own folder",
  ofCampaign,
  async () => {
    writeScript(project, "where", 'pwd; cat "$SCRIPT_DIR/data.txt"; echo no >&2; exit 7', {
      parameters_schema: {},
    });
    project.write(".holdfast/scripts/where/data.txt", "beside");
    await run("agents", "trust");
    const { code, stdout, stderr } = await run("script", "run", "where");
    expect({ code, stdout, stderr }).toEqual({
      code: 7,
      stdout: `${project.folder}\nbeside\n`,
      stderr: "no\n",
    });
  },
);

test("script new writes a script that can be pushed and run", async () => {
  await run("script", "new", "words", "--user");
  expect((await run("script", "push", "words")).code).toBe(0);
  project.write("notes.txt", "one two\n");
  expect((await run("script", "run", "words", '{"file": "notes.txt"}')).stdout.trim()).toBe("2");
  expectError(await run("script", "new", "words", "--user"), 2, "E_USAGE", ["of that name already"]);
});

describe("in a session", () => {
  let server: ScriptedModelServer;
  let script: (conversation: Conversation) => Reply;
  beforeEach(async () => {
    server = await startScriptedModelServer({ script: (conversation) => script(conversation) });
  });
  afterEach(() => server.close());

  const repliesOf = ({ messages }: Conversation): number =>
    messages.filter(({ role }) => role === "assistant").length;
  const until = async (isTrue: () => boolean): Promise<void> => {
    while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  const resultsOf = ({ messages }: Conversation): string => JSON.stringify(messages);
  const start = (...args: string[]) =>
    project.start(args, {
      stdin: "",
      env: { HOME: home, XDG_DATA_HOME: undefined, HOLDFAST_SCRIPTED_MODEL_URL: server.url },
    });
  const writeAgent = (names: string): void =>
    project.write(
      ".holdfast/agents/helper.md",
      `---\nname: helper\ndescription: Helps.\ntools: Read\nholdfast:\n  scripts: [${names}]\n  approvals: { allow: [script__*] }\n---\nYou help.\n`,
    );

  test("an agent file that names a script calls it, and logs show the call as a pair", async () => {
    writeAgent("count");
    project.write("notes.txt", "one two three\n");
    await run("agents", "trust");
    let results = "";
    script = (conversation) => {
      results = resultsOf(conversation);
      return repliesOf(conversation) === 0
        ? { toolCalls: [{ name: "script__count", input: { file: "notes.txt" } }] }
        : { text: "Done." };
    };
    const done = await start("run", "helper", "Count.", "--session", "s").finished;
    expect(done.code, done.stderr).toBe(0);
    expect(results).toContain("3");
    const logs = await run("logs", "s");
    expect(logs.stdout).toMatch(/event:.*script_started[^]*event:.*script_finished/);
  });

  test(
    "a killed call of a script that happens once is uncertain and never run again, one that may be repeated is",
    ofCampaign,
    async () => {
      const wait = 'echo x >> "$2"; while [ ! -e go ]; do sleep 0.05; done';
      writeScript(project, "once", wait);
      writeScript(project, "again", wait, { effect: "repeatable" });
      writeAgent("once, again");
      await run("agents", "trust");
      let results = "";
      script = (conversation) => {
        results = resultsOf(conversation);
        const [next] = ["once", "again"].slice(repliesOf(conversation));
        return next === undefined
          ? { text: "Done." }
          : { toolCalls: [{ name: `script__${next}`, input: { file: `${next}.txt` } }] };
      };
      let running = start("run", "helper", "Go.", "--session", "k");
      for (const name of ["once", "again"]) {
        await until(() => existsSync(project.path(`${name}.txt`)));
        running.kill("SIGKILL");
        await running.finished;
        running = start("resume", "k");
      }
      await until(() => readFileSync(project.path("again.txt"), "utf8") === "x\nx\n");
      project.write("go", "");
      const { code, stderr } = await running.finished;
      expect(code, stderr).toBe(0);
      expect(readFileSync(project.path("once.txt"), "utf8")).toBe("x\n");
      expect(results).toContain("nobody knows whether it took effect");
    },
  );

  test(
    "a script that an agent cannot use refuses the run before a session or a model call",
    ofCampaign,
    async () => {
      script = () => ({ text: "no" });
      for (const [names, says] of [
        ["cuont", "which is not there; did you mean count"],
        ["fresh", "you have not pushed it"],
      ] as const) {
        writeAgent(names);
        if (names === "cuont") await run("agents", "trust");
        writeScript(project, "fresh", "");
        expectError(await start("run", "helper", "x").finished, 3, "E_AGENT_INVALID", [says]);
      }
      expect(server.requests).toHaveLength(0);
      expect(existsSync(project.path(".holdfast/holdfast.db"))).toBe(false);
    },
  );
});

test("a wrong call is refused with its reason, and nothing runs", ofCampaign, async () => {
  await run("agents", "trust");
  const cases: readonly (readonly [readonly string[], number, PublicCode, readonly string[]])[] = [
    [["script", "run", "count", "{}"], 2, "E_INVALID_INPUT", ["file", "a right call"]],
    [["script", "run", "count", '{"file": 7}'], 2, "E_INVALID_INPUT", ["/file: must be string"]],
    [["script", "run", "count", "file"], 2, "E_NOT_JSON", ["not JSON"]],
    [["script", "run", "cuont"], 2, "E_FILE_NOT_FOUND", ["did you mean count"]],
    [["script", "rollback", "count", "abcdef"], 2, "E_FILE_NOT_FOUND", ["no version abcdef"]],
    [["script", "new", "../x"], 2, "E_USAGE", ["small letters"]],
    [["script", "pull"], 2, "E_USAGE", ["push"]],
    [["script", "list", "--user"], 2, "E_USAGE", ["--user"]],
  ];
  const checks = cases.map(async ([args, exit, code, says]) =>
    expectError(await run(...args), exit, code, says),
  );
  await Promise.all(checks);
});

test("a runner that lacks what an agent or its scripts demand does not offer the agent, and a run without a runner says so", async () => {
  writeScript(project, "count", 'wc -w < "$2"', { demands: { tags: ["uv"], hostname: "build-1" } });
  project.write(
    "counter.md",
    "---\nname: counter\ndescription: Counts.\nholdfast: { script: count, demands: { zone: eu } }\n---\n",
  );
  project.write("notes.txt", "one two\n");
  await run("agents", "trust");
  expect((await run("script", "show", "count")).stdout).toMatch(/^ +demands +hostname=build-1, uv$/m);
  const runner = (...labels: string[]) => {
    const args = ["runner", "-c", "http://127.0.0.1:1", "--agents", "counter.md"];
    return run(...args, ...labels.flatMap((label) => ["--label", label]));
  };
  expectError(await runner(), 3, "E_AGENT_INVALID", [
    'agent "counter" demands zone=eu, which this runner lacks',
    "--label zone=eu",
  ]);
  expectError(await runner("zone=eu", "uv=false"), 3, "E_AGENT_INVALID", [
    'the script "count" of agent "counter" demands hostname=build-1, uv, which this runner lacks',
  ]);
  const met = await runner("zone=eu", "uv=yes", "hostname=build-1");
  expect(met.stderr).not.toContain("demands");
  expect(met.stderr).toMatch(/E_UNAUTHENTICATED|E_UNAVAILABLE|token/);
  const here = await run("run", "./counter.md", "--input", '{"file":"notes.txt"}');
  expect(here.code, here.stderr).toBe(0);
  expect(here.stderr).toContain(
    'agent "counter" demands zone=eu of a runner, and runs in this process all the same',
  );
  expect(here.stderr).toContain(
    'the script "count" of agent "counter" demands hostname=build-1, uv of a runner',
  );
});
