// Agent files through the command: their list, the report on their fields, trust, and files that are wrong in
// every way.

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { expectError } from "../testing/expect-error.ts";
import { Project } from "../testing/holdfast-process.ts";

const agentFile = (name: string, fields = "", prompt = "Do it."): string =>
  `---\nname: ${name}\ndescription: Does it.\n${fields}---\n\n${prompt}\n`;

function write(project: Project, path: string, text: string | Buffer): void {
  mkdirSync(dirname(project.path(path)), { recursive: true });
  writeFileSync(project.path(path), text);
}

interface Checked {
  readonly name: string;
  readonly status: string;
  readonly problem: { readonly message: string } | null;
  readonly fields: readonly { readonly field: string; readonly verdict: string; readonly text: string }[];
}

describe("agent files of a project", () => {
  const project = new Project();
  beforeAll(() => {
    mkdirSync(project.path("work/.git"), { recursive: true });
    writeFileSync(project.path("work/.git/HEAD"), "ref: refs/heads/main\n");
    write(
      project,
      "work/.claude/agents/reviewer.md",
      agentFile("reviewer", "tools: Read, Bash(git diff:*)\ncolor: blue\n"),
    );
    write(
      project,
      "work/.codex/agents/explorer.toml",
      'name = "explorer"\ndescription = "d"\ndeveloper_instructions = "x"\n',
    );
    write(project, "work/.holdfast/agents/broken.md", "no front matter\n");
    write(project, "other/.claude/agents/reviewer.md", agentFile("reviewer"));
    write(project, "work/.agents/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: d\nlicense: MIT\n---\n");
    write(project, "work/.mcp.json", '{"mcpServers": {"x": {"command": "y", "trust": true}}}');
    write(project, ".claude/agents/mine.md", agentFile("mine"));
  });
  afterAll(() => project.dispose());
  const inWork = (line: string) => project.shell(`cd work && holdfast ${line}`);

  test("they are listed and not loaded, checked, trusted, and then loaded", ofCampaign, async () => {
    const before = await inWork("agents list");
    expect(before).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("2 files of this project are not loaded"),
    });
    expect(before.stdout).toMatch(/^reviewer +untrusted +claude /m);
    expect(before.stdout).toMatch(/^broken +refused +/m);
    expect(before.stdout).toMatch(/^mine +loaded +claude +~\/\.claude\/agents\/mine\.md /m);
    expectError(await inWork("agents show reviewer"), 12, "E_POLICY_DENIED", ["holdfast agents trust"]);
    expect((await inWork("agents list --trust")).stdout).toMatch(/^reviewer +loaded /m);

    const check = await inWork("agents check");
    expect(check.code).toBe(3);
    expect(check.stdout).toMatch(
      /reviewer \(claude\), untrusted\n {2}no session uses it: .*\(`holdfast agents trust`\)\n/,
    );
    expect(check.stdout).toContain("tools: mapped to read_file, shell(git diff:*) (line 4)");
    expect(check.stdout).toContain(
      "color: ignored because it only says how another tool shows the agent (line 5)",
    );
    expect(check.stdout).toContain("line 1: the file has no front matter");
    expect(check.stdout).toContain(".agents/skills/pdf/SKILL.md: pdf (skill), untrusted");
    expect(check.stdout).toContain("license: ignored because it is for people (line 4)");
    expect(check.stdout).toContain("mcpServers.x.trust: ignored because");
    expect(check.stdout).toContain("6 files, 1 refused");

    expect((await inWork("agents trust")).stdout).toContain(
      "is trusted: 2 agent files can be used, and 1 cannot (`holdfast agents check` says why)",
    );
    const shown = JSON.parse((await inWork("agents show reviewer --json")).stdout) as Record<string, unknown>;
    expect(shown).toMatchObject({
      name: "reviewer",
      tools: ["read_file", "shell"],
      source: { scope: "project" },
    });
    expectError(await inWork("agents show broken"), 3, "E_AGENT_INVALID", [
      "broken.md:1:1",
      "no front matter",
    ]);
    expectError(await inWork("agents show reviewr"), 3, "E_AGENT_NOT_FOUND", ["did you mean reviewer?"]);
    // Trust is of this folder alone, and is kept outside of it.
    expect((await project.shell("cd other && holdfast agents trust --remove")).stdout).toContain(
      "is not trusted",
    );
    expect(readFileSync(project.path(".local/share/holdfast/trusted-folders.json"), "utf8")).toContain(
      '/work"',
    );
    expect((await inWork("agents trust --remove")).stdout).toContain("is no longer trusted");
    expectError(await inWork("agents show reviewer"), 12, "E_POLICY_DENIED", ["reviewer.md"]);
  });

  test("a new file is valid, is kept in git, and is never written over another", ofCampaign, async () => {
    const made = await inWork("agents new planner");
    expect(made).toMatchObject({ code: 0, stdout: "wrote .holdfast/agents/planner.md\n" });
    expect((await inWork("agents check .holdfast/agents/planner.md")).code).toBe(0);
    expectError(await inWork("agents new planner"), 2, "E_USAGE", ["there is a file of that name already"]);
    for (const name of ["../x", "a b", "con", "ünï", ".hidden", "A".repeat(61), "x/y"])
      expectError(await project.run("agents", "new", name), 2, "E_USAGE", ["is no name of an agent"]);
    expect(existsSync(project.path("work/.holdfast/x.md"))).toBe(false);
    const user = await inWork("agents new everywhere --user");
    expect(user.stdout).toBe("wrote ~/.holdfast/agents/everywhere.md\n");
    expect((await inWork("agents show everywhere")).code).toBe(0);
    const imported = await inWork("agents import .codex/agents/explorer.toml");
    expect(imported).toMatchObject({ code: 0, stdout: "wrote .holdfast/agents/explorer.md\n" });
    expect(imported.stderr).toContain("two files have the agent explorer now");
    expect((await inWork("agents check .holdfast/agents/explorer.md")).code).toBe(0);
    expectError(await inWork("agents import .holdfast/agents/broken.md"), 3, "E_AGENT_INVALID", [
      "front matter",
    ]);
    expectError(await inWork("agents import none.md"), 2, "E_FILE_NOT_FOUND", ["none.md"]);
    // A repository below the home folder stays a project of its own.
    mkdirSync(project.path("repo/.git"), { recursive: true });
    writeFileSync(project.path("repo/.git/HEAD"), "ref: refs/heads/main\n");
    const trusted = await project.shell("cd repo && holdfast agents trust");
    expect(trusted.stdout).toContain("/repo is trusted: 0 agent files");
  });

  test("wrong calls are refused", ofCampaign, async () => {
    expectError(await inWork("agents"), 2, "E_USAGE", [
      "list, show, check, new, import, trust, push, history",
    ]);
    expectError(await inWork("agents lst"), 2, "E_USAGE", ["did you mean list?"]);
    expectError(await inWork("agents list --user"), 2, "E_USAGE", ["agents list has no option --user"]);
    expectError(await inWork("agents show"), 2, "E_USAGE", ["the name is missing"]);
    expectError(await inWork("agents check nothing.md"), 2, "E_FILE_NOT_FOUND", ["nothing.md"]);
    expectError(await inWork("agents trust nothing"), 2, "E_FILE_NOT_FOUND", ["nothing"]);
  });
});

test("check takes the name of an agent, and show prints the agents of a file as a text", async () => {
  const project = new Project();
  const lead =
    "tools: Read, Bash\nholdfast:\n  subAgents:\n    checker: { description: Checks., prompt: You check., tools: [Read], maxTurns: 5 }\n";
  write(project, ".holdfast/agents/lead.md", agentFile("lead", lead));
  write(project, ".holdfast/agents/other.md", agentFile("other"));
  const checked = await project.shell("holdfast agents check lead");
  expect(checked.stdout).toContain("holdfast.subAgents");
  expect(checked.stdout).not.toContain("other.md");
  const unknown = await project.shell("holdfast agents check laed");
  expect(unknown.stderr).toContain('no agent file of the name "laed"');
  expect(unknown.stderr).toContain("lead, other");
  const shown = (await project.shell("holdfast agents show lead --trust")).stdout;
  expect(shown).toMatch(/Agent of this file: checker\n {2}description +Checks\.\n {2}tools +read_file/);
  expect(shown).toMatch(/turns at most +5\n {2}You check\./);
  expect(shown).not.toContain("deniedTools");
  await project.dispose();
});

test(
  "agents show has the words and units of people, also for a profile of an external agent",
  ofCampaign,
  async () => {
    const project = new Project();
    const fields =
      "maxTurns: 5\nholdfast: { budget: { usd: 1.5, windows: [{ per: day, usd: 0.5 }] }, ttl: 90m, conversation: true }\n";
    write(project, ".holdfast/agents/lead.md", agentFile("lead", fields));
    const { stdout } = await project.run("agents", "show", "lead", "--trust");
    for (const row of [
      /^budget +cost \$1\.50, cost \$0\.50 per day$/m,
      /^time at most +1 h 30 min$/m,
      /^turns at most +5$/m,
      /^conversation +yes$/m,
    ])
      expect(stdout).toMatch(row);
    expect(stdout).not.toMatch(/microUsd|ttlMs|isConversation/i);
    const checked = await project.finish(["agents", "check"], { env: { HOME: undefined } });
    expect(checked.stdout).toContain("lead (holdfast), untrusted");
    expect((await project.run("agents", "check", ".holdfast/agents/lead.md")).stdout).toContain("loaded");

    write(project, ".holdfast/profiles/fast.yaml", "model: haiku\nallowedTools: [shell(git diff:*)]\n");
    chmodSync(project.path(".holdfast/profiles/fast.yaml"), 0o600);
    const profile = await project.run("agents", "show", "fast");
    expect(profile.stdout, profile.stderr).toMatch(/^allowed tools +shell\(git diff:\*\)$/m);
    expect(profile.stdout).toMatch(/^model +haiku$/m);
    await project.dispose();
  },
);

test("FILE#NAME chooses an agent of a file of code", ofCampaign, async () => {
  const project = new Project();
  const two = ["one", "two"]
    .map(
      (name) =>
        `export const ${name} = defineAgent({ name: "${name}", run: async () => "this is ${name}" });\n`,
    )
    .join("");
  write(project, "agents.ts", `import { defineAgent } from "holdfast";\n${two}`);
  const unclear = await project.shell("holdfast run agents.ts");
  expect(unclear.stderr).toContain("agents.ts#one");
  const chosen = await project.shell("holdfast run agents.ts#two --session t");
  expect(chosen.stdout, chosen.stderr).toBe("this is two\n");
  const wrong = await project.shell("holdfast run agents.ts#three");
  expect(wrong.stderr).toContain('the file has no agent named "three"');
  expect(wrong.stderr).toContain('"one" and "two"');
  await project.dispose();
});

describe("agent files that are wrong", () => {
  const project = new Project();
  afterAll(() => project.dispose());
  let checked: ReadonlyMap<string, Checked>;

  const HEAD = "---\nname: NAME\ndescription: d\n";
  /** The name of each file, its text, and the report on it. */
  const FILES: readonly (readonly [name: string, text: string | Buffer, says: string])[] = [
    ["empty", "", "has no front matter"],
    ["no-end", "---\nname: no-end\n", "has no end"],
    ["no-yaml", "---\nname: {one\n---\nx\n", "is not YAML"],
    ["tab-yaml", "---\nname: tab-yaml\nholdfast:\n\tttl: 1h\n---\nx\n", "is not YAML"],
    ["list", "---\n- a\n---\nx\n", "is not a list of fields"],
    ["double", `${HEAD}model: a\nmodel: b\n---\nx\n`, "a field stands twice"],
    ["laughs", `${HEAD}a: &a [x,x]\nb: [*a,*a,*a]\n---\nx\n`, "uses the alias *a"],
    ["merge", `${HEAD}a: &a { tools: Read }\n<<: *a\n---\nx\n`, "uses the alias *a"],
    [
      "latin",
      Buffer.concat([Buffer.from(HEAD), Buffer.from([0xe9, 0x0a]), Buffer.from("---\nx\n")]),
      "is not UTF-8",
    ],
    ["unknown", agentFile("unknown", "licence: MIT\n"), 'licence ignored Holdfast knows no field "licence"'],
    ["misspelt", agentFile("misspelt", "disalowedTools: Bash\n"), "disalowedTools refused"],
    ["own-unknown", agentFile("own-unknown", "holdfast: { budgets: {} }\n"), "holdfast.budgets refused"],
    [
      "no-schema",
      agentFile("no-schema", "holdfast: { input: { type: strnig } }\n"),
      "holdfast.input refused it is no JSON Schema",
    ],
    [
      "endless",
      agentFile("endless", 'holdfast: { output: { pattern: "(a+)+$" } }\n'),
      "holdfast.output refused",
    ],
    ["up", agentFile("../up"), 'name refused "../up" is no name'],
    ["proto", agentFile("__proto__"), "name refused"],
    ["proto-field", agentFile("proto-field", "__proto__: { tools: [] }\n"), "__proto__ ignored"],
    ["bypass", agentFile("bypass", "permissionMode: bypassPermissions\n"), "permissionMode refused"],
    ["negative", agentFile("negative", "maxTurns: -1\n"), "maxTurns refused"],
    ["huge-number", agentFile("huge-number", "maxTurns: 1e400\n"), "maxTurns refused"],
    ["tool-object", agentFile("tool-object", "tools: { Bash: true }\n"), "tools refused"],
    [
      "tagged",
      agentFile("tagged", "skills: [house-style@]\n"),
      'skills refused "house-style@" names no version',
    ],
    ["no-prompt", "---\nname: no-prompt\ndescription: d\n---\n", "prompt refused"],
    ["cycle-a", agentFile("cycle-a", "holdfast: { agents: [cycle-b] }\n"), "cycle-a → cycle-b → cycle-a"],
    ["cycle-b", agentFile("cycle-b", "holdfast: { agents: [cycle-a] }\n"), "cycle-b → cycle-a → cycle-b"],
    ["terminal", agentFile("terminal", 'color: "\\e[2J"\n"\\e]0;x\\a": 1\n'), "ignored"],
  ];

  beforeAll(async () => {
    mkdirSync(project.path(".holdfast/agents"), { recursive: true });
    for (const [name, text] of FILES)
      write(
        project,
        `.holdfast/agents/${name}.md`,
        typeof text === "string" ? text.replace("NAME", name) : text,
      );
    write(project, ".holdfast/agents/good.md", `\uFEFF${agentFile("good").replaceAll("\n", "\r\n")}`);
    write(project, ".holdfast/agents/large.md", agentFile("large"));
    truncateSync(project.path(".holdfast/agents/large.md"), 10_000_000);
    write(project, ".holdfast/agents/writable.md", agentFile("writable"));
    chmodSync(project.path(".holdfast/agents/writable.md"), 0o666);
    write(project, ".claude/agents/twice.md", agentFile("twice"));
    write(project, ".claude/agents/old/twice.md", agentFile("twice"));
    symlinkSync("/etc/passwd", project.path(".holdfast/agents/link.md"));
    symlinkSync("circle.md", project.path(".holdfast/agents/circle.md"));
    symlinkSync("/", project.path(".holdfast/agents/root"));
    spawnSync("mkfifo", [project.path(".holdfast/agents/pipe.md")]);
    const list = await project.finish(["agents", "check", "--json"], { stdin: "", env: { HOME: undefined } });
    checked = new Map(
      (JSON.parse(list.stdout) as { agents: Checked[] }).agents.map((file) => [file.name, file]),
    );
    expect(list.code).toBe(3);
  });

  const saidOf = ({ problem, fields }: Checked): string =>
    [problem?.message, ...fields.map(({ field, verdict, text }) => `${field} ${verdict} ${text}`)].join("\n");

  test.each(FILES.map(([name, , says]) => [name, says] as const))(
    "the report on %s says: %s",
    (name, says) => {
      const file = checked.get(name);
      expect(file === undefined ? "it is not listed" : saidOf(file)).toContain(says);
      if (!says.includes("ignored")) expect(file?.status).toBe("refused");
    },
  );

  test.each([
    ["large", "the file has 10000000 bytes"],
    ["link", "leads out of the project"],
    ["circle", "cannot be read"],
    ["pipe", "it is not a file"],
    ["writable", "other users may write it"],
  ])("the report on %s says: %s", (name, says) => {
    const file = checked.get(name);
    expect(file).toMatchObject({ status: "refused", problem: { message: expect.stringContaining(says) } });
  });

  test(
    "the good file among them waits for trust, and two files of one name are both listed",
    ofCampaign,
    async () => {
      expect(checked.get("good")).toMatchObject({ status: "untrusted", problem: null });
      expect(checked.get("twice")).toMatchObject({ status: "doubled" });
      expect((await project.run("agents", "show", "good", "--trust")).code).toBe(0);
      const twice = await project.run("agents", "show", "twice", "--trust");
      expectError(twice, 3, "E_AGENT_INVALID", [
        "2 files have the agent twice",
        ".claude/agents",
        ".claude/agents/old",
      ]);
    },
  );

  test("text of a file cannot steer the terminal", async () => {
    const { stdout } = await project.run("agents", "check");
    expect(stdout).toContain("terminal.md: terminal");
    // oxlint-disable-next-line no-control-regex -- it is what is looked for.
    expect(stdout).not.toMatch(/[\u001b\u0007]/);
  });
});
