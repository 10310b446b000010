// The rules of an agent and of the tool whose file it is, by the real command against a scripted model
// server.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

let project: ModelProject;

beforeEach(async () => {
  project = await ModelProject.open();
});

afterEach(() => project.dispose());

const run = (...args: string[]) => project.run(...args);

function put(path: string, content: string | object): void {
  const at = project.path(path);
  mkdirSync(dirname(at), { recursive: true });
  writeFileSync(at, typeof content === "string" ? content : JSON.stringify(content));
}

/** An agent of Claude Code. */
function agent(frontMatter: string): void {
  put(".claude/agents/doer.md", `---\nname: doer\ndescription: Does.\n${frontMatter}---\nYou help.\n`);
}

interface Call {
  readonly name: string;
  readonly input: object;
}

const shell = (command: string): Call => ({ name: "shell", input: { command } });

/** Runs an agent whose model makes the calls one after the other. @returns the texts of the conversation. */
async function carryOut(name: string, ...calls: readonly Call[]): Promise<string> {
  project.script = (conversation) => {
    const call = calls[repliesOf(conversation)];
    return call === undefined ? { text: "Done." } : { toolCalls: [call] };
  };
  const { code, stdout, stderr } = await run("run", name, "Go.", "--park");
  expect(code, stderr).toBe(0);
  return stdout + stderr;
}

test("a denied command runs in no spelling, and another one runs without a question", async () => {
  agent("disallowedTools: Bash(touch:*)\nholdfast: { approvals: { allow: [Bash] } }\n");
  await run("agents", "trust");
  const spellings = [
    "X=1 touch f",
    "timeout 5 touch f",
    "if true; then touch f; fi",
    '"touch" f',
    "\\touch f",
  ];
  const said = await carryOut(
    "doer",
    ...[...spellings, "echo f | xargs -n 1 touch f", "sh -c 'touch f'", "/usr/bin/touch f"].map(shell),
    shell("echo ran > other"),
  );
  expect(said).toContain("Done.");
  expect(said).toContain("A rule forbids it");
  expect(existsSync(project.path("f"))).toBe(false);
  expect(existsSync(project.path("other"))).toBe(true);
  const asked = await carryOut("doer", shell("$(echo touch) f"));
  expect(asked).toContain("Allow shell: $(echo touch) f?");
  expect(existsSync(project.path("f"))).toBe(false);
});

const read = (path: string): Call => ({ name: "read_file", input: { path } });
const writeTo = (path: string): Call => ({ name: "write_file", input: { path, content: "x" } });

test("deny rules of the project's settings hold for every file tool of an agent of Claude Code", async () => {
  put(".env", "SECRET=hunter2\n");
  put("secrets/a.pem", "hunter2 key\n");
  put(".claude/settings.json", {
    permissions: { deny: ["Read(./.env)", "Read(./secrets/**)"], ask: ["Edit(/docs/**)"] },
  });
  put(".claude/settings.local.json", { permissions: { deny: ["Edit(./infra/**)"], allow: ["Bash(cat:*)"] } });
  agent("tools: Read, Grep, Glob, Edit, Write, Bash\npermissionMode: acceptEdits\n");
  await run("agents", "trust");
  const said = await carryOut(
    "doer",
    read(".env"),
    read("secrets/a.pem"),
    { name: "search", input: { pattern: "hunter2" } },
    { name: "list_files", input: { path: "secrets" } },
    writeTo("infra/x.tf"),
    shell("cat .env"),
    shell("cat < ./secrets/a.pem"),
    writeTo("src/x.ts"),
  );
  expect(said.replace("▸ Search hunter2", "")).not.toContain("hunter2\n");
  expect(said).not.toContain("hunter2 key");
  expect(existsSync(project.path("infra/x.tf"))).toBe(false);
  expect(existsSync(project.path("src/x.ts"))).toBe(true);
  expect(await carryOut("doer", writeTo("docs/x.md"))).toContain("Allow write_file: docs/x.md?");
  const checked = await run("agents", "check", "doer");
  expect(checked.stdout).toContain(".claude/settings.json: permissions.deny: mapped to deny read_file(.env)");
});

test("rules and hooks of the user's settings hold for an agent of Claude Code", async () => {
  const home = (path: string): string => join(project.home, path);
  mkdirSync(home(".claude"));
  const hook = { matcher: "Bash", hooks: [{ type: "command", command: "echo no >&2; exit 2" }] };
  writeFileSync(
    home(".claude/settings.json"),
    JSON.stringify({
      permissions: { deny: ["Read(./.env)", "Bash(touch:*)"] },
      hooks: { PreToolUse: [hook] },
    }),
  );
  put(".env", "KEY=hunter2\n");
  agent("tools: Read, Bash\nholdfast: { approvals: { allow: ['Bash(echo:*)', 'Bash(touch:*)'] } }\n");
  await run("agents", "trust");
  const said = await carryOut("doer", read(".env"), shell("touch ran"), shell("echo ran"));
  expect(said).not.toContain("hunter2");
  expect(said).toContain("a hook blocked it");
  expect(existsSync(project.path("ran"))).toBe(false);
});

const FREE_SHELL = (sandbox = ""): string =>
  `tools: Read, Bash\nholdfast: { ${sandbox}approvals: { allow: [Bash] } }\n`;

test.each([
  ["names no sandbox", ""],
  ["names the sandbox filesystem", "sandbox: filesystem, "],
])(
  "an agent with a denied path and every command allowed that %s is refused, and check says why",
  async (_which, sandbox) => {
    put(".claude/settings.json", { permissions: { deny: ["Read(./.env)"] } });
    agent(FREE_SHELL(sandbox));
    await run("agents", "trust");
    const refused = await run("run", "doer", "Go.");
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining("E_AGENT_INVALID")]);
    for (const text of [(await run("agents", "check", "doer")).stdout, refused.stderr]) {
      expect(text).toContain("its rules forbid read_file(.env) and allow every command");
      expect(text).toContain("virtual, bubblewrap or docker");
    }
  },
);

test("in a sandbox that keeps paths the same agent runs, and its commands do not reach the denied file", async () => {
  put(".env", "KEY=hunter2\n");
  put("plain.txt", "hello\n");
  put(".claude/settings.json", { permissions: { deny: ["Read(./.env)", "Edit(./infra/**)"] } });
  put("infra/main.tf", "mine\n");
  agent(FREE_SHELL("sandbox: virtual, "));
  await run("agents", "trust");
  const checked = await run("agents", "check", "doer");
  expect(checked.stdout).toContain("the sandbox virtual keeps the paths that its rules deny from commands");
  await carryOut(
    "doer",
    shell("cat .env > denied"),
    shell("cat .e* > seen; grep -r hunter . > found; cat plain.txt > plain"),
    shell("cd infra && echo evil > main.tf"),
  );
  expect(readFileSync(project.path("plain"), "utf8")).toBe("hello\n");
  expect(existsSync(project.path("denied"))).toBe(false);
  for (const path of ["seen", "found"]) expect(readFileSync(project.path(path), "utf8")).toBe("");
  expect(readFileSync(project.path("infra/main.tf"), "utf8")).toBe("mine\n");

  agent(FREE_SHELL());
  await run("agents", "trust");
  const chosen = await run("run", "doer", "Go.", "--sandbox", "virtual");
  expect(chosen.code, chosen.stderr).toBe(0);
});

test("settings that cannot be read refuse the agents of their tool", async () => {
  put(".claude/settings.json", '{ "permissions": { "deny": "Read" } }');
  agent("tools: Read\n");
  await run("agents", "trust");
  const { code, stderr } = await run("run", "doer", "Go.");
  expect(code).not.toBe(0);
  expect(stderr).toContain("settings.json: permissions");
});

test("the user's agent gets the restrictions of a project without trust, and none of its permissions", async () => {
  mkdirSync(join(project.home, ".claude/agents"), { recursive: true });
  const file = "---\nname: own\ndescription: Does.\ntools: Read, Write, Bash\n---\nYou help.\n";
  writeFileSync(join(project.home, ".claude/agents/own.md"), file);
  put(".env", "hunter2\n");
  put(".claude/settings.json", { permissions: { deny: ["Read(.env)"], allow: ["Bash(touch:*)"] } });
  expect(await carryOut("own", read(".env"))).not.toContain("hunter2");
  expect(await carryOut("own", shell("touch f"))).toContain("Allow shell: touch f?");
});

test("an agent of OpenCode has the rules of opencode.json, and one that is switched off there is refused", async () => {
  put(".env", "hunter2\n");
  put(
    "opencode.jsonc",
    `{ // rules
      "permission": { "edit": "deny", "bash": { "*": "ask", "ls *": "allow", "rm *": "deny" }, "read": { "*.env": "deny" } },
      "agent": { "writer": { "permission": { "edit": "allow" } }, "off": { "disable": true } } }`,
  );
  for (const name of ["reader", "writer", "off"])
    put(`.opencode/agents/${name}.md`, "---\ndescription: Does.\n---\nYou help.\n");
  await run("agents", "trust");
  const said = await carryOut("reader", writeTo("a.txt"), read(".env"), shell("rm a"), shell("ls ."));
  expect(said).not.toContain("hunter2\n");
  expect(existsSync(project.path("a.txt"))).toBe(false);
  await carryOut("writer", writeTo("b.txt"));
  expect(existsSync(project.path("b.txt"))).toBe(true);
  const refused = await run("run", "off", "Go.");
  expect(refused.stderr).toContain("switched off");
});

test("rules of Codex, Gemini CLI and VS Code hold for agents of these tools", async () => {
  put(".codex/agents/cx.toml", 'name = "cx"\ndescription = "Does."\ndeveloper_instructions = "You help."\n');
  put(
    ".codex/rules/git.rules",
    'prefix_rule(\n  pattern = ["git", ["push", "fetch"]],\n  decision = "forbidden", # no\n)\n',
  );
  put(".gemini/agents/gm.md", "---\nname: gm\ndescription: Does.\n---\nYou help.\n");
  put(".gemini/settings.json", { tools: { exclude: ["write_file", "run_shell_command(rm)"] } });
  put(".github/agents/cp.agent.md", "---\nname: cp\ndescription: Does.\n---\nYou help.\n");
  put(".vscode/settings.json", { "chat.tools.edits.autoApprove": { "**/.env": false } });
  await run("agents", "trust");
  const checked = (await run("agents", "check")).stdout;
  expect(checked).toContain("deny shell(git push:*); deny shell(git fetch:*)");
  expect(checked).toContain("deny write_file; deny shell(rm:*)");
  expect(checked).toContain("ask edit_file(**/.env)");
  expect(await carryOut("cx", shell("git -C . push"), shell("git push"))).toContain(
    "Allow shell: git -C . push?",
  );
  put(".codex/rules/git.rules", "for x in y: pass\n");
  expect((await run("run", "cx", "Go.")).stderr).toContain("it is not read");
});

test("an agent that names an agent which comes with its tool is checked and run alike", async () => {
  agent("tools: Task(Explore), Read\n");
  put(
    ".opencode/agents/oc.md",
    '---\ndescription: Does.\npermission:\n  task: { "*": deny, explore: allow }\n---\nYou lead.\n',
  );
  await run("agents", "trust");
  const { code, stdout } = await run("agents", "check");
  expect(code, stdout).toBe(0);
  expect(stdout).toContain("Explore comes with the other tool");
  for (const name of ["doer", "oc"]) expect(await carryOut(name)).toContain("Done.");
});
