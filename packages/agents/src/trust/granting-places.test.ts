// Every place that a format is read from gives rights, so no file tool writes it.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";

import { readHookFiles } from "../hooks/claude-settings.ts";
import { openWorkspace } from "@holdfast/workspace";
import { findAgentFiles, type AgentPlaces, type PlacedDialect } from "../places/agent-places.ts";
import { findPlugins } from "../files/plugins.ts";
import { readMcpFiles } from "../servers/mcp-files.ts";
import { findSkills } from "../skills/find-skills.ts";

const project = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-granting-")));
afterAll(() => rmSync(project, { recursive: true, force: true }));

// The types demand each dialect here. A new one needs the places that its files are read from.
const AGENTS: Readonly<Record<PlacedDialect, readonly string[]>> = {
  holdfast: [".holdfast/agents/a.md"],
  claude: [".claude/agents/b.md"],
  opencode: [".opencode/agents/c.md", ".opencode/agent/d.md"],
  codex: [".codex/agents/e.toml"],
  gemini: [".gemini/agents/f.md"],
  copilot: [".github/agents/g.agent.md"],
  folder: ["agents/h/agent.json"],
};
const OTHERS = [
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".mcp.json",
  ".vscode/mcp.json",
  ".agents/plugins/p/plugin.json",
  ".agents/plugins/p/mcp.json",
  ".agents/skills/s/SKILL.md",
  ".claude/skills/t/SKILL.md",
];

test("X9: no file tool writes where a dialect, hooks, servers, plugins or skills of a project are read", async () => {
  const all = [...Object.values(AGENTS).flat(), ...OTHERS];
  for (const path of all) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), "{}");
  }
  const places: AgentPlaces = {
    project,
    home: undefined,
    env: {},
    trustFile: join(project, "data/trusted-folders.json"),
  };
  const read = [
    ...findAgentFiles(places).map(({ path, dialect }) =>
      dialect === "folder" ? `${path}/agent.json` : path,
    ),
    ...[readHookFiles, readMcpFiles, findPlugins, findSkills].flatMap((find) =>
      find(places).map(({ path }) => path),
    ),
  ];
  expect(new Set(read)).toEqual(new Set(all.map((path) => join(project, path))));

  const workspace = await openWorkspace({ root: project });
  for (const path of read)
    await expect(workspace.writeFile(path, "evil"), path).rejects.toMatchObject({ code: "policy_denied" });
  await workspace.dispose();
});
