// The cases of the list of bad inputs that concern agent files, seen through `holdfast agents check`,
// `agents push` and `run`. Each refusal names the file, the field, what is wrong and what is expected.

import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectError } from "../testing/expect-error.ts";
import { Project } from "../testing/holdfast-process.ts";

const CHECK_MS_MAX = 5_000;
let project: Project;
beforeAll(() => void (project = new Project()));
afterAll(() => project.dispose());

const agentFile = (name: string, fields = "", prompt = "Do it."): string =>
  `---\nname: ${JSON.stringify(name)}\ndescription: Does it.\n${fields}---\n\n${prompt}\n`;

function write(path: string, text: string): string {
  mkdirSync(dirname(project.path(path)), { recursive: true });
  writeFileSync(project.path(path), text);
  return path;
}

interface Checked {
  readonly path: string;
  readonly status: string;
  readonly warnings: readonly string[];
  readonly problem: { readonly message: string; readonly fix: string } | null;
  readonly fields: readonly { readonly field: string; readonly verdict: string; readonly text: string }[];
}

async function check(
  ...paths: readonly string[]
): Promise<{ code: number | null; files: readonly Checked[] }> {
  const { code, stdout } = await project.finish(["agents", "check", ...paths, "--json"], { stdin: "" });
  return { code, files: (JSON.parse(stdout) as { agents: Checked[] }).agents };
}

interface Case {
  readonly id: string;
  readonly what: string;
  /** Writes the file. @returns its path. */
  readonly make: () => string;
  /** `null` where the file as a whole is the problem. */
  readonly field: string | null;
  readonly says: readonly string[];
}

const refusedField = (
  id: string,
  what: string,
  make: () => string,
  field: string | null,
  ...says: string[]
) => ({ id, what, make, field, says }) satisfies Case;

const folderOf = (name: string, files: Readonly<Record<string, object>>) => (): string => {
  write(`folders/agents/${name}/agent.system-prompt.md`, "Do it.");
  const json = { "agent.json": { name, description: "d" }, ...files };
  for (const [file, value] of Object.entries(json))
    write(`folders/agents/${name}/${file}`, JSON.stringify(value));
  return `folders/agents/${name}`;
};

const NAMES = ["", "a b", "../x", "A".repeat(61), "con", "\u00fcn\u00ef", ".hidden"];

const CASES: readonly Case[] = [
  ...NAMES.map((name, at) =>
    refusedField(
      "B01",
      `the name ${JSON.stringify(name.slice(0, 10))}`,
      () => write(`b01/${at}.md`, agentFile(name)),
      "name",
      "is no name of an agent",
      'it has 1 to 60 letters (a to z), digits, "-" and "_", and begins with a letter or a digit',
    ),
  ),
  refusedField(
    "B03",
    "a schema that is none, in a folder",
    folderOf("b03", {
      "agent.json": { name: "b03", description: "d", parameters_schema: { type: "strnig" } },
    }),
    "parameters_schema",
    "it is no JSON Schema: /type",
  ),
  refusedField(
    "B03",
    "a schema that is none, in a file",
    () =>
      write("b03.md", agentFile("b03", "holdfast: { output: { properties: { a: { type: strnig } } } }\n")),
    "holdfast.output",
    "it is no JSON Schema: /properties/a/type",
  ),
  refusedField(
    "B05",
    "a pattern without end",
    () =>
      write(
        "b05.md",
        agentFile("b05", 'holdfast: { input: { properties: { a: { pattern: "(a+)+$" } } } }\n'),
      ),
    "holdfast.input",
    'matching the pattern "(a+)+$" may never end',
  ),
  refusedField(
    "B09",
    "an unknown placeholder",
    () =>
      write(
        "b09.md",
        agentFile("b09", 'mcpServers: [{ a: { command: x, args: ["-s", "in ${runtimee.session_id}"] } }]\n'),
      ),
    "mcpServers.a.args.1",
    "${runtimee.session_id} (character 4)",
    "a placeholder is ${NAME}",
    "did you mean runtime.session_id?",
  ),
  refusedField(
    "B09",
    "an unknown placeholder of a reference, in a folder",
    folderOf("b09", {
      "agent.mcp.json": { mcpServers: { a: { ref: "tickets", config: { Tenant: "${scope.tenant}" } } } },
    }),
    "mcpServers.a.config.Tenant",
    "${scope.tenant} (character 1): a session has no scope; write ${NAME}",
  ),
  refusedField(
    "B13",
    "a system prompt of 10 MB",
    () => write("b13.md", agentFile("b13", "", "x".repeat(10_000_000))),
    null,
    "bytes, and 1048576 is the limit",
    "move what is long into files that the agent reads",
  ),
];

describe("a case of the list is refused by agents check, agents push and run", () => {
  test.each(CASES.map((one) => [one.id, one.what, one] as const))(
    "case %s: %s",
    { timeout: 60_000 },
    async (_id, _what, { make, field, says }) => {
      const path = make();
      const startedAt = performance.now();
      const { code, files } = await check(path);
      expect(performance.now() - startedAt).toBeLessThan(CHECK_MS_MAX);
      const [file] = files;
      expect([code, file?.status]).toEqual([3, "refused"]);
      const said =
        field === null
          ? `${file?.problem?.message}; ${file?.problem?.fix}`
          : file?.fields.find((one) => one.field === field && one.verdict === "refused")?.text;
      for (const text of says) expect(said).toContain(text);
      expectError(await project.finish(["agents", "push", path], { stdin: "" }), 3, "E_AGENT_INVALID", [
        project.path(path),
        ...(field === null ? says.slice(0, 1) : [`${field}: `, ...says]),
      ]);
      expectError(await project.finish(["run", `./${path}`, "x"], { stdin: "" }), 3, "E_AGENT_INVALID", [
        project.path(path),
      ]);
      expect(existsSync(project.path(".holdfast/holdfast.db"))).toBe(false);
    },
  );
});

test("case B07: a skill, a script and a server that are not there are named with what is meant, and start no session", async () => {
  write(".agents/skills/notes/SKILL.md", "---\nname: notes\ndescription: d\n---\n");
  write(
    ".holdfast/scripts/report/script.json",
    JSON.stringify({ name: "report", description: "d", script_file: "a.sh" }),
  );
  write(".holdfast/scripts/report/a.sh", "#!/bin/sh\n");
  write(".mcp.json", JSON.stringify({ mcpServers: { tickets: { command: "x" } } }));
  await project.finish(["agents", "trust"], { stdin: "" });
  const refer = (name: string, fields: string): string => write(`${name}.md`, agentFile(name, fields));
  const cases = [
    [refer("skilled", "skills: [note]\n"), "skills.0: there is no skill note here", "did you mean notes?"],
    [
      refer("scripted", "holdfast: { scripts: [reprot] }\n"),
      "scripts.0: there is no script reprot here",
      "did you mean report?",
    ],
    [
      refer("served", "mcpServers: [tickts]\n"),
      "mcpServers.0: there is no MCP server tickts here",
      "did you mean tickets?",
    ],
    [
      refer("boxed", "holdfast: { sandbox: virtuel }\n"),
      "sandbox.0: there is no sandbox virtuel here",
      "did you mean virtual?",
    ],
    [
      refer("guarded", "holdfast: { hooks: { before_tool: { script: reprot } } }\n"),
      "hooks.before_tool: there is no script reprot here",
      "did you mean report?",
    ],
    [
      refer("watched", "holdfast: { hooks: { on_run_start: { agent: watcher } } }\n"),
      "hooks.on_run_start: there is no agent watcher here",
      "watcher",
    ],
    [
      refer("leading", "holdfast: { agents: [codexx] }\n"),
      "agents.0: there is no agent codexx here",
      "codexx",
    ],
    [
      refer("modelled", "model: foo/bar\nholdfast: { agents: [codex] }\n"),
      'model: "foo/bar" names no known model',
      "expected",
    ],
  ] as const;
  const misspelt = (await check(refer("reading", "tools: Raed, Grep\n"))).files[0];
  expect(misspelt?.warnings).toEqual(["tools: there is no tool Raed; did you mean Read?"]);
  for (const [path, what, meant] of cases) {
    const { code, files } = await check(path);
    expect([code, files[0]?.warnings.length]).toEqual([0, 1]);
    expect(files[0]?.warnings[0]).toContain(what);
    expect(files[0]?.warnings[0]).toContain(meant);
    expectError(await project.finish(["run", `./${path}`, "x"], { stdin: "" }), 3, "E_AGENT_INVALID", [
      meant,
    ]);
  }
  expect(existsSync(project.path(".holdfast/holdfast.db"))).toBe(false);
});

test("case B11: agents that start each other without end, also as hooks, are refused with the way round", async () => {
  const HOOK = "hooks: { on_run_start: [{ agent: NAME }] }";
  const own = (name: string, fields: string): string =>
    write(`.holdfast/agents/${name}.md`, agentFile(name, `holdfast: { ${fields} }\n`));
  own("a", "agents: [b]");
  own("b", "agents: [a]");
  own("self", HOOK.replace("NAME", "self"));
  own("first", HOOK.replace("NAME", "second"));
  own("second", "agents: [first]");
  const { code, files } = await check("a", "b", "self", "first", "second");
  expect([code, files.map(({ status }) => status)]).toEqual([3, Array.from(files, () => "refused")]);
  const said = files.map(({ fields }) => fields.find(({ verdict }) => verdict === "refused")?.text);
  expect(said).toEqual(
    ["a → b → a", "b → a → b", "self → self", "first → second → first", "second → first → second"].map(
      (way) => `agents start each other without end: ${way}`,
    ),
  );
});

test("the list of agents shows their tags, and --tag chooses those that have all of them", async () => {
  write("tags/.holdfast/agents/one.md", agentFile("one", "holdfast: { tags: [review, team/core] }\n"));
  write("tags/.holdfast/agents/two.md", agentFile("two", "holdfast: { tags: [review] }\n"));
  write("tags/.holdfast/agents/bad.md", agentFile("bad", 'holdfast: { tags: ["a,b"] }\n'));
  write(
    "tags/agents/three/agent.json",
    JSON.stringify({ name: "three", description: "d", tags: ["review"] }),
  );
  write("tags/agents/three/agent.system-prompt.md", "Do it.");
  const list = async (...args: readonly string[]) =>
    await project.shell(`cd tags && holdfast agents list --trust ${args.join(" ")}`);
  const all = await list();
  expect(all.stdout).toMatch(/^NAME +STATUS +FORMAT +FILE +TAGS/m);
  expect(all.stdout).toMatch(/^one +loaded .* review, team\/core +Does it\.$/m);
  expect(all.stdout).toMatch(/^bad +refused .* holdfast\.tags: wrong value/m);
  const names = async (tags: string) =>
    (JSON.parse((await list("--json", "--tag", tags)).stdout) as { name: string }[]).map(({ name }) => name);
  expect((await names("review")).toSorted()).toEqual(["one", "three", "two"]);
  expect(await names("review,team/core")).toEqual(["one"]);
  expect((await list("--tag", "reviw")).stdout).toBe(
    "no agent has the tag reviw; tags here: review, team/core\n",
  );
});

test("an agent with private data, texts of strangers and a way out is warned of by check, show and trust", async () => {
  const path = write(
    "open/.holdfast/agents/open.md",
    agentFile("open", "holdfast: { approvals: { allow: [WebFetch] } }\n"),
  );
  const says =
    "a text of a stranger (web_fetch) could make it send private data (read_file, search, shell, git_diff) away: web_fetch runs without asking";
  expect((await check(path)).files[0]?.warnings[0]).toContain(says);
  const checked = await project.finish(["agents", "check", path], { stdin: "" });
  expect([checked.code, checked.stdout]).toEqual([0, expect.stringContaining(`warning: ${says}`)]);
  const shown = await project.finish(["agents", "show", path], { stdin: "" });
  expect([shown.code, shown.stderr]).toEqual([0, expect.stringContaining(says)]);
  const trusted = await project.finish(["agents", "trust", "open"], { stdin: "" });
  expect([trusted.code, trusted.stderr]).toEqual([0, expect.stringContaining(`open: ${says}`)]);
});

test("trust names each program and file of code that the agents of a project start from then on", async () => {
  const tools = "mcpServers: { box: { command: node, args: [box.mjs] } }\nholdfast:\n  tasks: [tasks.ts]\n";
  const hooks = "  hooks: { before_tool: [{ command: ./check.sh }] }\n";
  write("rights/.holdfast/agents/starter.md", agentFile("starter", `${tools}${hooks}`));
  write("rights/tasks.ts", "export default {};\n");
  const settings = { hooks: { PreToolUse: [{ hooks: [{ type: "command", command: "sh out.sh" }] }] } };
  write("rights/.claude/settings.json", JSON.stringify(settings));
  const { code, stderr } = await project.finish(["agents", "trust", "rights"], { stdin: "" });
  expect(code, stderr).toBe(0);
  for (const said of [
    "starter: its hook at before_tool runs ./check.sh",
    "starter: its MCP server box runs node box.mjs",
    "starter: its tools run the code of tasks.ts",
    "settings.json: its hook at before_tool runs sh out.sh",
  ])
    expect(stderr).toContain(said);
});

test("agents import writes each agent of a file of another tool, with a report on every field, all of them or none", async () => {
  cpSync(
    fileURLToPath(new URL("../../../agents/src/files/fixtures/docker/agent.yaml", import.meta.url)),
    project.path("team.yaml"),
  );
  const call = (...args: readonly string[]) => project.finish(["agents", ...args], { stdin: "" });
  expectError(await project.finish(["run", "./team.yaml", "x"], { stdin: "" }), 3, "E_AGENT_INVALID", [
    "holdfast agents import",
  ]);
  const imported = await call("import", "team.yaml");
  expect([imported.code, imported.stdout]).toEqual([
    0,
    expect.stringContaining("wrote .holdfast/agents/root.md"),
  ]);
  expect(imported.stdout).toContain("agents.root.add_date: ignored because");
  expect(imported.stdout).toContain("permissions: mapped to deny web_fetch");
  expect(readFileSync(project.path(".holdfast/agents/reviewer.md"), "utf8")).toContain("openai/gpt-5-mini");
  expect((await call("check", "root", "reviewer")).code).toBe(0);
  expectError(await call("import", "team.yaml"), 2, "E_USAGE", ["a file of that name already", "root.md"]);
  write("bad.yaml", "agents: { a: { description: d, instruction: x, safety: autonomous } }\n");
  expectError(await call("import", "bad.yaml"), 3, "E_AGENT_INVALID", [
    "agents.a.safety",
    "permissions.allow",
  ]);
  expectError(await call("import", "none.yaml"), 2, "E_FILE_NOT_FOUND", ["none.yaml"]);
});
