// X9: a denial of another tool, at any place where the tool keeps rules, permits no call here, by any
// spelling of the path.
//
// The rules of administrators, such as those in /etc, are read by the same readers. No test writes there.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import fc from "fast-check";
import { isCampaign } from "@holdfast/testkit/campaign";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { subjectsOf } from "../../permissions/ask-permission.ts";
import { decidePlaces, hiddenPaths, type PermissionTool } from "../../permissions/permissions.ts";
import { pathFilter } from "@holdfast/workspace";
import { findAgentFiles, type AgentPlaces, type PlacedDialect } from "../../places/agent-places.ts";
import type { AgentRecord } from "../../record/agent-record.ts";
import { loadAgentFile } from "../load-agent-file.ts";
import { OutsideRules } from "./outside-rules.ts";

type Kind = "read" | "edit" | "shell";
/** `what` is a path from the project, or the beginning of a command. */
interface Denial {
  readonly kind: Kind;
  readonly what: string;
}

/**
 * The places of one tool, each with the text of its file. A path begins at the project, or at the home folder
 * behind `~/`.
 */
interface Subject {
  readonly dialect: Exclude<PlacedDialect, "holdfast" | "folder">;
  /** The file of the agent, which allows everything itself. `own` are more fields of its front matter. */
  readonly agent: (own?: string) => readonly [path: string, text: string];
  readonly kinds: readonly Kind[];
  readonly places: Readonly<Record<string, (denial: Denial) => string>>;
  /** The denial as fields of the agent's own file, where the tool has some. */
  readonly own?: (denial: Denial) => string;
}

const ALLOWED = "holdfast: { approvals: { allow: [Read, Grep, Glob, Edit, Write, Bash] } }\n";
const markdown = (own = ""): string =>
  `---\nname: doer\ndescription: Does.\n${ALLOWED}${own}---\nYou help.\n`;

const claudeRule = ({ kind, what }: Denial): string =>
  kind === "shell" ? `Bash(${what}:*)` : `${kind === "read" ? "Read" : "Edit"}(./${what})`;
const claudeSettings = (denial: Denial): string =>
  JSON.stringify({ permissions: { deny: [claudeRule(denial)] } });

const opencodeRule = ({ kind, what }: Denial) => ({
  [kind === "shell" ? "bash" : kind]: { [kind === "shell" ? `${what}*` : what]: "deny" },
});
const opencodeSettings = (denial: Denial): string => JSON.stringify({ permission: opencodeRule(denial) });
const opencodeAgent = (denial: Denial): string =>
  JSON.stringify({ agent: { doer: { permission: opencodeRule(denial) } } });

const codexRules = ({ what }: Denial): string =>
  `prefix_rule(pattern = ${JSON.stringify(what.split(" "))}, decision = "forbidden")\n`;

const GEMINI: Readonly<Record<Kind, readonly string[]>> = {
  read: ["read_file", "read_many_files", "list_directory", "glob", "search_file_content"],
  edit: ["replace", "write_file"],
  shell: ["run_shell_command"],
};
const geminiNames = ({ kind, what }: Denial): readonly string[] =>
  kind === "shell" ? [`run_shell_command(${what})`] : GEMINI[kind];
const geminiSettings = (denial: Denial): string =>
  JSON.stringify({ tools: { exclude: geminiNames(denial) } });
const geminiPolicy = ({ kind, what }: Denial): string =>
  GEMINI[kind]
    .map(
      (name) =>
        `[[rule]]\ntoolName = "${name}"\n${kind === "shell" ? `commandPrefix = "${what}"\n` : ""}decision = "deny"\n`,
    )
    .join("\n");

const vscode = ({ kind, what }: Denial): string =>
  JSON.stringify({
    [`chat.tools.${kind === "shell" ? "terminal" : "edits"}.autoApprove`]: { [what]: false },
  });

const SUBJECTS: readonly Subject[] = [
  {
    dialect: "claude",
    agent: (own) => [".claude/agents/doer.md", markdown(own)],
    kinds: ["read", "edit", "shell"],
    places: {
      ".claude/settings.json": claudeSettings,
      ".claude/settings.local.json": claudeSettings,
      "~/.claude/settings.json": claudeSettings,
      "~/elsewhere/settings.json": claudeSettings, // CLAUDE_CONFIG_DIR
    },
    own: (denial) => `disallowedTools: ["${claudeRule(denial)}"]\n`,
  },
  {
    dialect: "opencode",
    agent: (own) => [
      ".opencode/agents/doer.md",
      `---\ndescription: Does.\n${ALLOWED}${own ?? ""}---\nYou help.\n`,
    ],
    kinds: ["read", "edit", "shell"],
    places: {
      "opencode.json": opencodeSettings,
      "opencode.jsonc": opencodeAgent,
      ".opencode/opencode.json": opencodeAgent,
      ".opencode/opencode.jsonc": opencodeSettings,
      "~/.config/opencode/opencode.json": opencodeSettings,
      "~/.config/opencode/config.json": opencodeAgent,
      "~/elsewhere/opencode.json": opencodeSettings, // OPENCODE_CONFIG
    },
    own: (denial) => `permission: ${JSON.stringify(opencodeRule(denial))}\n`,
  },
  {
    dialect: "codex",
    agent: () => [
      ".codex/agents/doer.toml",
      'name = "doer"\ndescription = "Does."\ndeveloper_instructions = "You help."\n',
    ],
    kinds: ["shell"],
    places: {
      ".codex/rules/a.rules": codexRules,
      "~/elsewhere/rules/a.rules": codexRules, // CODEX_HOME
    },
  },
  {
    dialect: "codex",
    agent: () => [
      ".codex/agents/doer.toml",
      'name = "doer"\ndescription = "Does."\ndeveloper_instructions = "You help."\n',
    ],
    kinds: ["edit"],
    places: {
      ".codex/config.toml": () => 'sandbox_mode = "read-only"\n',
      ".codex/requirements.toml": () => 'allowed_sandbox_modes = ["read-only"]\n',
      "~/elsewhere/config.toml": () => 'sandbox_mode = "read-only"\n',
    },
  },
  {
    dialect: "gemini",
    agent: (own) => [".gemini/agents/doer.md", markdown(own)],
    kinds: ["read", "edit", "shell"],
    places: {
      ".gemini/settings.json": geminiSettings,
      "~/.gemini/settings.json": (denial) => JSON.stringify({ excludeTools: geminiNames(denial) }),
      ".gemini/policies/a.toml": geminiPolicy,
      "~/.gemini/policies/a.toml": geminiPolicy,
    },
  },
  {
    dialect: "copilot",
    agent: (own) => [".github/agents/doer.agent.md", markdown(own)],
    kinds: ["edit", "shell"],
    places: {
      ".vscode/settings.json": vscode,
      "~/.config/Code/User/settings.json": vscode,
      "~/Library/Application Support/Code/User/settings.json": vscode,
    },
  },
];

/** The tools whose calls a denial concerns. */
const TOOLS: Readonly<Record<Kind, readonly PermissionTool[]>> = {
  read: ["read_file", "search", "list_files", "git_diff"].map((name) => fileTool(name, true)),
  edit: ["edit_file", "write_file"].map((name) => fileTool(name, false)),
  shell: [],
};
const SHELL: PermissionTool = { offered: { name: "shell" }, isReading: false, subjectKind: "command" };

function fileTool(name: string, isReading: boolean): PermissionTool {
  return { offered: { name }, isReading, subjectKind: "path" };
}

let root: string;
let places: AgentPlaces;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-denials-")));
  const [project, home] = [join(root, "project"), join(root, "home")];
  for (const folder of [project, home]) mkdirSync(folder);
  places = {
    project,
    home,
    env: {},
    trustFile: join(root, "data/trusted-folders.json"),
    trustsProject: true,
  };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text: string): void {
  const at = path.startsWith("~/") ? join(root, "home", path.slice(2)) : join(root, "project", path);
  mkdirSync(dirname(at), { recursive: true });
  writeFileSync(at, text);
}

function load(subject: Subject, own?: string): AgentRecord {
  write(...subject.agent(own));
  const found = findAgentFiles(places).find(({ dialect }) => dialect === subject.dialect);
  const file = loadAgentFile(found!, new OutsideRules(places));
  expect(file.problem ?? file.verdicts.filter(({ verdict }) => verdict === "refused")).toEqual([]);
  const { record } = file;
  // The fields of Codex have no rule that allows.
  const allowed = ["edit_file", "write_file", "shell"].map(
    (tool) => ({ decision: "allow", tool, pattern: null }) as const,
  );
  return {
    ...record!,
    permissions: [...record!.permissions, ...(subject.dialect === "codex" ? allowed : [])],
  };
}

/** A place in the folder `elsewhere` is one that a variable names. */
function environmentOf(place: string): AgentPlaces["env"] {
  const elsewhere = join(root, "home/elsewhere");
  if (!place.startsWith("~/elsewhere")) return {};
  return {
    CLAUDE_CONFIG_DIR: elsewhere,
    CODEX_HOME: elsewhere,
    OPENCODE_CONFIG: join(elsewhere, "opencode.json"),
  };
}

async function decisionOf(agent: AgentRecord, tool: PermissionTool, subject: string): Promise<string> {
  if (agent.deniedTools.includes(tool.offered.name)) return "deny";
  const folder = join(root, "project");
  const ctx = {
    run: (_name: string, take: () => unknown) => Promise.resolve(take()),
  } as unknown as Parameters<typeof subjectsOf>[0];
  const subjects = await subjectsOf(ctx, { agent, tool, subject, folder, rules: () => [] });
  return decidePlaces(agent.permissions, [], tool, subjects).decision;
}

/** All spellings of a path of the project. */
function spellings(path: string): readonly string[] {
  const project = join(root, "project");
  symlinkSync(join(project, path), join(project, "link"));
  symlinkSync(dirname(join(project, path)), join(project, "folder-link"));
  return [
    path,
    `./${path}`,
    `.//${path}`,
    join(project, path),
    `${project}/./x/../${path}`,
    `x/../${path}`,
    `${dirname(path)}/../${dirname(path)}/${basename(path)}`,
    `../project/${path}`,
    "link",
    `folder-link/${basename(path)}`,
  ];
}

const name = fc.stringMatching(/^[a-z.][a-z0-9_-]{1,8}$/).filter((one) => !one.startsWith(".."));
const paths = fc.tuple(name, name).map((names) => names.join("/"));
const commands = fc.constantFrom("rm", "git push", "npm publish", "terraform");

async function expectDenied(agent: AgentRecord, { kind, what }: Denial): Promise<void> {
  if (kind === "shell") {
    for (const line of [
      `${what} x`,
      `true && ${what} x`,
      `env A=1 ${what} x`,
      `timeout 5 ${what} x`,
      `sh -c '${what} x'`,
    ])
      expect([line, await decisionOf(agent, SHELL, line)]).not.toEqual([line, "allow"]);
    return;
  }
  write(what, "secret\n");
  mkdirSync(join(root, "project/x"), { recursive: true });
  const all = spellings(what);
  const denied = TOOLS[kind];
  for (const tool of denied)
    for (const path of all) {
      const call = [tool.offered.name, path];
      expect([...call, await decisionOf(agent, tool, path)]).not.toEqual([...call, "allow"]);
    }
  const reads = denied.filter(({ isReading }) => isReading);
  for (const tool of reads) {
    // A call for the whole folder leaves the file out, or is not permitted.
    const isHidden = pathFilter(hiddenPaths(agent.permissions, tool, "."))(what);
    const decision = await decisionOf(agent, tool, ".");
    expect([tool.offered.name, isHidden || decision !== "allow"]).toEqual([tool.offered.name, true]);
  }
}

/**
 * Files of the shell are compared where the tool denies a path: `cat PATH`, `echo x > PATH`. The sandbox
 * follows links (decision 100).
 */
async function expectDeniedInShell(agent: AgentRecord, { kind, what }: Denial): Promise<void> {
  const project = join(root, "project");
  for (const path of [what, `./${what}`, join(project, what), `x/../${what}`])
    for (const line of kind === "read" ? [`cat ${path}`, `cp ${path} y`] : [`echo x > ${path}`, `rm ${path}`])
      expect([line, await decisionOf(agent, SHELL, line)]).not.toEqual([line, "allow"]);
}

describe.each(SUBJECTS.map((subject, at) => [subject.dialect, at, subject] as const))(
  "%s (%i)",
  (dialect, _at, subject) => {
    const rows = [
      ...Object.keys(subject.places),
      ...(subject.own === undefined ? [] : ["the agent's own file"]),
    ];

    test.each(rows.flatMap((place) => subject.kinds.map((kind) => [kind, place] as const)))(
      "a denial to %s in %s permits no spelling of the call",
      async (kind, place) => {
        places = { ...places, env: environmentOf(place) };
        // Without the denial the agent may do all of it, so the property is not empty.
        const free = load(subject);
        const [first] = TOOLS[kind];
        expect(await decisionOf(free, first ?? SHELL, first === undefined ? "rm x" : "a/b")).toBe("allow");
        await fc.assert(
          fc.asyncProperty(kind === "shell" ? commands : paths, async (what) => {
            rmSync(join(root, "project"), { recursive: true, force: true });
            mkdirSync(join(root, "project"));
            const denial = { kind, what };
            const text = subject.places[place]?.(denial);
            if (text !== undefined) write(place, text);
            const agent = load(subject, text === undefined ? subject.own?.(denial) : undefined);
            await expectDenied(agent, denial);
            const deniesPaths = dialect === "claude" || dialect === "opencode" || dialect === "copilot";
            if (kind !== "shell" && deniesPaths) await expectDeniedInShell(agent, denial);
          }),
          { numRuns: isCampaign ? 100 : 4 },
        );
      },
    );
  },
);
