// Skills and MCP files are found where other tools keep them, and read only when the project is trusted.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentPlaces } from "./agent-places.ts";
import { readMcpFiles } from "./mcp-files.ts";
import { findSkills } from "./skills.ts";

let folder: string;
let places: AgentPlaces;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-skills-")));
  const [project, home] = [join(folder, "project"), join(folder, "home")];
  mkdirSync(project);
  mkdirSync(home);
  places = { project, home, env: {}, trustFile: join(home, "trusted-folders.json"), trustsProject: true };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text: string): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}
const skill = (path: string, fields = ""): string =>
  write(
    `${path}/SKILL.md`,
    `---\nname: ${path.split("/").at(-1)}\ndescription: Fills in forms: PDF and others.\n${fields}---\nText.\n`,
  );

describe("skills", () => {
  test("the project's go before the user's, and .agents before .claude", () => {
    skill("home/.claude/skills/pdf");
    skill("home/.agents/skills/own", "license: MIT\nallowed-tools: Bash(git:*) Read\n");
    skill("project/.claude/skills/pdf");
    const first = skill("project/.agents/skills/pdf");
    const found = findSkills(places);
    expect(found.map(({ name, scope, status }) => `${scope} ${name} ${status}`)).toEqual([
      "project pdf loaded",
      "project pdf hidden",
      "user own loaded",
      "user pdf hidden",
    ]);
    expect(found[0]).toMatchObject({ path: first, description: "Fills in forms: PDF and others." });
    expect(found[2]?.verdicts.map(({ field, verdict }) => `${field} ${verdict}`)).toEqual([
      "name honoured",
      "description honoured",
      "license ignored",
      "allowed-tools ignored",
    ]);
  });

  test("skills of a project that is not trusted are listed and not read", () => {
    skill("project/.agents/skills/pdf");
    expect(findSkills({ ...places, trustsProject: false })).toMatchObject([
      { status: "untrusted", description: "" },
    ]);
  });

  test("a broken skill never breaks the list", () => {
    skill("project/.agents/skills/good");
    write("project/.agents/skills/broken/SKILL.md", "no front matter");
    write("project/.agents/skills/other/SKILL.md", "---\nname: another\ndescription: d\n---\n");
    write("project/.agents/skills/silent/SKILL.md", "---\nname: silent\n---\n");
    skill("project/.agents/skills/by-hand", "disable-model-invocation: true\n");
    mkdirSync(join(folder, "project/.agents/skills/empty"));
    symlinkSync(skill("outside").replace("/SKILL.md", ""), join(folder, "project/.agents/skills/outside"));
    const found = findSkills(places).map(({ name, status }) => `${name} ${status}`);
    expect(found).toEqual([
      "broken refused",
      "by-hand refused",
      "good loaded",
      "other refused",
      "outside refused",
      "silent refused",
    ]);
  });
});

describe("MCP files", () => {
  const servers = {
    good: { command: "node", args: ["x.js"] },
    web: { type: "http", url: "https://x.example/mcp" },
    off: { command: "x", disabled: true },
    limited: { command: "x", includeTools: ["a"] },
    text: "x",
  };

  test("each server has a verdict, and one that is refused leaves the others usable", () => {
    write("project/.mcp.json", JSON.stringify({ mcpServers: servers, version: 1 }));
    write("project/.vscode/mcp.json", JSON.stringify({ servers: { code: { command: "y" } }, inputs: [] }));
    const [first, second] = readMcpFiles(places);
    expect(Object.keys(first?.servers ?? {})).toEqual(["good", "web"]);
    expect(first?.verdicts.map(({ field, verdict }) => `${field} ${verdict}`)).toEqual([
      "version ignored",
      "mcpServers.good honoured",
      "mcpServers.web honoured",
      "mcpServers.off ignored",
      "mcpServers.limited refused",
      "mcpServers.text refused",
    ]);
    expect(second).toMatchObject({ servers: { code: { type: "stdio", command: "y" } } });
  });

  test("a file that is no JSON is a problem, and one of a project that is not trusted is not read", () => {
    write("project/.mcp.json", "{");
    expect(readMcpFiles(places)).toMatchObject([
      { status: "refused", problem: expect.stringContaining("is not JSON") },
    ]);
    expect(readMcpFiles({ ...places, trustsProject: false })).toMatchObject([
      { status: "untrusted", problem: null },
    ]);
  });
});
