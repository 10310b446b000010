// A package of a repository: its agents, settings, skills, commands and servers count beside those of the folders
// above it.

import { chmodSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

let project: ModelProject;
const WEB = "repo/packages/web";

beforeEach(async () => {
  project = await ModelProject.open();
  project.write("repo/.git/HEAD", "ref: refs/heads/main\n");
  project.write("repo/AGENTS.md", "Rule R-ROOT.");
  project.write(`${WEB}/AGENTS.md`, "Rule R-WEB.");
  project.write("repo/.claude/agents/both.md", agent("both", "of the root"));
  project.write("repo/.claude/agents/top.md", agent("top", "of the root"));
  project.write(`${WEB}/.claude/agents/both.md`, agent("both", "of the package"));
  project.write(`${WEB}/.claude/agents/webber.md`, agent("webber", "of the package"));
  for (const [folder, name] of [
    ["repo", "root-skill"],
    [WEB, "web-skill"],
  ] as const)
    project.write(`${folder}/.claude/skills/${name}/SKILL.md`, "---\ndescription: d\n---\nText.\n");
  project.write("repo/.mcp.json", JSON.stringify({ mcpServers: { one: { command: "root" } } }));
  project.write(`${WEB}/.mcp.json`, JSON.stringify({ mcpServers: { one: { command: "web" } } }));
  settings("repo", {
    permissions: { deny: ["Read(./secret/**)", "Read(/packages/web/inner/**)", "Read(.env)"], allow: [] },
  });
  settings(WEB, { permissions: { deny: ["Read(./own/**)"], allow: ["Bash(echo:*)"] } });
  for (const path of ["secret/a", "inner/a", "own/a", "packages/api/.env", "open/a"])
    project.write(`${WEB}/${path}`, `canary of ${path}`);
});
afterEach(() => project.dispose());

function agent(name: string, description: string): string {
  return `---\nname: ${name}\ndescription: ${description}\ntools: Read, Bash\n---\nYou help.\n`;
}
function settings(folder: string, value: object): void {
  project.write(`${folder}/.claude/settings.json`, JSON.stringify(value));
}
const inWeb = (...args: string[]) => project.finish(args, { folder: WEB });

/** The whole conversation of a session in the package whose model reads these files. */
async function read(name: string, ...paths: readonly string[]): Promise<string> {
  let seen = "";
  project.script = (conversation) => {
    seen = JSON.stringify(conversation);
    const path = paths[repliesOf(conversation)];
    return path === undefined ? { text: "Done." } : { toolCalls: [{ name: "read_file", input: { path } }] };
  };
  const { code, stderr } = await inWeb("run", name, "Go.", "--park");
  expect(code, stderr).toBe(0);
  return seen;
}

test.each([["a package"], ["a package that is a project of its own"]])(
  "the files of %s count beside those of the root, and the nearest wins",
  async (what) => {
    const isOwn = what !== "a package";
    if (isOwn) project.write(`${WEB}/.holdfast/agents/.keep`, "");
    const trusted = await inWeb("agents", "trust");
    expect(trusted.stdout).toContain(`${WEB} ${isOwn ? "is" : "are"} trusted`);
    if (isOwn) {
      const advice = /`holdfast (agents trust [^`]+)`/.exec(trusted.stderr)?.[1];
      expect(trusted.stderr).toContain("repo above is not trusted");
      expect((await inWeb(...(advice ?? "").split(" "))).code).toBe(0);
    }
    const agents = (await inWeb("agents", "list")).stdout;
    expect(agents).toMatch(/^both +loaded +claude +\.claude\/agents\/both\.md +of the package/m);
    expect(agents).toMatch(/^webber +loaded/m);
    expect(agents).toMatch(/^top +loaded/m);
    const skills = (await inWeb("skill", "list")).stdout;
    expect(skills).toMatch(/^root-skill +loaded/m);
    expect(skills).toMatch(/^web-skill +loaded/m);
    expect((await inWeb("mcp", "show", "one")).stdout).toContain("web");
    for (const name of ["both", "top"]) {
      const seen = await read(name, "secret/a", "inner/a", "own/a", "packages/api/.env", "open/a");
      expect(seen.match(/canary of [\w/.]+/g)).toEqual(["canary of open/a"]);
      expect(seen).toMatch(/R-ROOT.*R-WEB/s);
    }
  },
);

test("a layer without trust restricts, and gives nothing", async () => {
  await project.finish(["agents", "trust"], { folder: "repo" });
  settings(WEB, { permissions: { deny: ["Read(./own/**)"], allow: ["Bash(touch:*)"] } });
  expect((await inWeb("agents", "list")).stdout).toMatch(/^webber +untrusted/m);
  expect((await inWeb("skill", "list")).stdout).toMatch(/^web-skill +untrusted/m);
  expect(await read("top", "own/a")).not.toContain("canary");
  const { stdout } = await inWeb("agents", "check", "top");
  expect(stdout).toContain("permissions.allow: ignored because you have not trusted");
  expect(stdout).not.toContain("allow shell(touch");
});

test("a denial of the root for an agent of OpenCode holds in a package that allows the call", async () => {
  const rules = (permission: object): string => JSON.stringify({ permission });
  project.write("repo/opencode.json", rules({ bash: "deny", edit: { "packages/web/inner/**": "deny" } }));
  project.write(`${WEB}/opencode.json`, rules({ bash: "allow", edit: { "*": "allow" } }));
  project.write(`${WEB}/.opencode/agents/oc.md`, "---\ndescription: Helps.\n---\nYou help.\n");
  await inWeb("agents", "trust");
  const shown = JSON.parse((await inWeb("agents", "show", "oc", "--json")).stdout) as {
    readonly permissions: readonly object[];
    readonly deniedTools: readonly string[];
  };
  expect(shown.deniedTools).toContain("shell");
  expect(shown.permissions).toContainEqual({ decision: "deny", tool: "edit_file", pattern: "inner/**" });
});

test("restricting settings and denials by answers of the root hold in a package that is a project of its own", async () => {
  project.write("repo/.holdfast/config.json", JSON.stringify({ strictBounds: true }));
  project.script = (conversation) =>
    repliesOf(conversation) === 0
      ? { toolCalls: [{ name: "shell", input: { command: "touch made" } }] }
      : { text: "Done." };
  const inRoot = (...args: string[]) => project.finish(args, { folder: "repo" });
  await inRoot("agents", "trust");
  const limit = ["--budget", "1000000tokens"];
  const first = await inRoot("run", "top", "Go.", "--park", "--session", "one", ...limit);
  expect(first.stdout + first.stderr).toContain("Allow shell: touch made?");
  expect((await inRoot("approve", "one", "--no", "--for", "project")).code).toBe(0);
  expect((await inRoot("resume", "one")).code).toBe(0);

  project.write(`${WEB}/.holdfast/config.json`, JSON.stringify({ strictBounds: false }));
  await inWeb("agents", "trust");
  expect((await inWeb("config", "get", "strictBounds")).stdout.trim()).toBe("true");
  const second = await inWeb("run", "both", "Go.", "--park", ...limit);
  expect([second.code, second.stdout + second.stderr]).toEqual([
    0,
    expect.not.stringContaining("Allow shell"),
  ]);
});

test("a session in the root has the files of the root alone, and the note names a way to those of a package", async () => {
  await project.finish(["agents", "trust"], { folder: "repo" });
  const { stdout } = await project.finish(["agents", "check"], { folder: "repo" });
  const [, advice = ""] = /packages\/web: .*\(`(cd [^`]+)`\)/.exec(stdout) ?? [];
  const listed = await project.shell(`${advice} && holdfast agents list`);
  expect(listed.stdout).toMatch(/^webber +untrusted/m);
  expect(listed.stdout).toMatch(/^top +loaded/m);
});

test("a hook finds its script by the folder of its settings, whichever folder the session works in", async () => {
  const guard = '"$CLAUDE_PROJECT_DIR"/.claude/guard.sh';
  const hooks = { PreToolUse: [{ matcher: "Read", hooks: [{ type: "command", command: guard }] }] };
  settings("repo", { hooks });
  settings(WEB, { hooks });
  for (const folder of ["repo", WEB]) {
    project.write(`${folder}/.claude/guard.sh`, '#!/bin/sh\necho "$CLAUDE_PROJECT_DIR" >> ../../said\n');
    chmodSync(project.path(`${folder}/.claude/guard.sh`), 0o755);
  }
  await inWeb("agents", "trust");
  expect((await inWeb("agents", "check")).stdout).not.toContain("cannot run");
  expect(await read("top", "open/a")).toContain("canary");
  const said = readFileSync(project.path("repo/said"), "utf8").trim().split("\n");
  expect(said.toSorted()).toEqual([project.path("repo"), project.path(WEB)]);
});
