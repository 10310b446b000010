// Each file of another tool that no session uses is named with its reason.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { PROJECT_FILES } from "../places/project-inputs.ts";
import { kindIn } from "./other-tools.ts";
import { findUnusedFiles } from "./unused-files.ts";

let folder: string;
beforeEach(() => void (folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-unused-")))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text = "x"): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}
const found = (options = {}): Readonly<Record<string, string>> =>
  Object.fromEntries(
    findUnusedFiles({ project: join(folder, "p"), home: join(folder, "h") }, options).map(
      ({ path, reason }) => [relative(folder, path), reason] as const,
    ),
  );

test.each([
  ["CLAUDE.md", "x", /AGENTS.md/],
  ["GEMINI.md", "x", /AGENTS.md/],
  [".claude/rules/style.md", "x", /rules/],
  [".claude/output-styles/terse.md", "x", /answers/],
  [".github/copilot-instructions.md", "x", /AGENTS.md/],
  [".github/instructions/a.instructions.md", "x", /rules/],
  [".github/chatmodes/plan.chatmode.md", "x", /move NAME.chatmode.md/],
  [".cursor/rules/a.mdc", "x", /rules/],
  [".cursor/mcp.json", "{}", /\.mcp\.json/],
  [".codex/config.toml", "[mcp_servers.x]\ncommand = 'true'\n", /\.mcp\.json/],
  [".gemini/settings.json", '{"mcpServers": {}}', /\.mcp\.json/],
  ["opencode.json", '{"mcp": {}}', /\.mcp\.json/],
  ["opencode.json", '{"agent": {}}', /holdfast agents import FILE/],
  [".codex/skills/pdf/SKILL.md", "x", /\.agents\/skills/],
  [".claude/skills/pdf.md", "x", /a skill is a folder/],
  [".claude/skills/pdf/README.md", "x", /no SKILL.md/],
  [".cursor/hooks.json", "{}", /not run, also not those that forbid/],
  [".cursor/cli.json", "{}", /not forbidden here/],
  [".cursorignore", ".env", /agents may read what this file names/],
  [".cursor/environment.json", "{}", /no session runs it/],
  [".github/hooks/a.json", "{}", /not run/],
  [".gemini/settings.json", '{"hooks": {}}', /not run/],
  [".codex/config.toml", "[hooks]\n", /not run/],
  [".roo/rules-code/a.md", "x", /rules/],
  [".roomodes", "x", /\.claude\/agents/],
  [".kiro/steering/a.md", "x", /rules/],
  [".kiro/settings/mcp.json", "{}", /\.mcp\.json/],
  [".windsurf/workflows/a.md", "x", /\.claude\/commands/],
  [".cline/skills/a/SKILL.md", "x", /\.agents\/skills/],
  [".clinerules/a.md", "x", /rules/],
  ["opencode.json", '{"plugin": []}', /not loaded/],
  [".opencode/tool/a.ts", "x", /\.holdfast\/scripts/],
  [".claude/invented.json", "{}", /of another tool alone/],
  ["packages/web/.claude/agents/a.md", "x", /start there \(`cd .*packages\/web`\)/],
  [
    "packages/web/.cursor/rules/a.mdc",
    "x",
    /no session reads \.cursor .*`cd .*web && holdfast agents check`/,
  ],
  [".agents/rules/a.md", "x", /rules/],
  [".agent/workflows/a.md", "x", /\.claude\/commands/],
  ["packages/web/.mcp.json", "{}", /\.mcp\.json of this folder/],
])("%s is named", (path, text, reason) => {
  write(`p/${path}`, text);
  const [[named, why]] = Object.entries(found()) as [[string, string]];
  expect(`p/${path}`.startsWith(named)).toBe(true);
  expect(why).toMatch(reason);
});

test("no place that is read is named", () => {
  for (const place of Object.keys(PROJECT_FILES)) {
    const [top = "", name] = place.split("/");
    if (name !== undefined) expect(kindIn(top, name), place).toBeUndefined();
  }
});

test("a file that is read, or that says nothing of this kind, is not named", () => {
  write("p/AGENTS.md");
  symlinkSync("AGENTS.md", join(folder, "p/CLAUDE.md"));
  write("p/GEMINI.md", "@./AGENTS.md\n");
  write("p/.codex/config.toml", 'sandbox_mode = "read-only"\n');
  write("p/.gemini/settings.json", '{"tools": {}}');
  write("p/opencode.json", '{"permission": {"bash": "deny"}}');
  write("p/.claude/skills/group/pdf/SKILL.md");
  write("p/.claude/agents/a.md");
  mkdirSync(join(folder, "p/.claude/rules"), { recursive: true });
  write("p/packages/own/.holdfast/agents/a.md");
  write("p/packages/own/.claude/agents/a.md");
  write("p/vendor/repository/.git/HEAD");
  write("p/vendor/repository/.claude/agents/a.md");
  write("p/node_modules/package/.claude/agents/a.md");
  expect(found()).toEqual({});
});

test("files of the user are named where all are asked for, and those of a home folder as a project once", () => {
  write("h/.claude/CLAUDE.md");
  write("h/.claude/skills/loose.md");
  mkdirSync(join(folder, "p"));
  expect(Object.keys(found())).toEqual([]);
  expect(Object.keys(found({ withHome: true }))).toEqual([
    "h/.claude/CLAUDE.md",
    "h/.claude/skills/loose.md",
  ]);
  const both = findUnusedFiles({ project: join(folder, "h"), home: join(folder, "h") });
  expect(both.map(({ path }) => relative(folder, path))).toEqual([
    "h/.claude/CLAUDE.md",
    "h/.claude/skills/loose.md",
  ]);
});
