// Reads one agent file of any dialect into an agent record, with a verdict on each of its fields
// (`loadAgentFile`).
//
//   - A file with a problem or a refused field has no record. Nothing here throws for a wrong file, so that
//     one broken file never breaks a list.
//   - A file of a project is a problem if its real path is outside of the project, or if other users may
//     write it. The same holds for each file of an agent's folder.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { isWritableByOthers } from "@holdfast/system";
import type { AgentRecord } from "../record/agent-record.ts";
import {
  realPath,
  requireInside,
  type DialectName,
  type FoundFile,
  type PlacedDialect,
} from "../places/agent-places.ts";
import { claude, holdfast } from "./dialects/claude.ts";
import { codex, readCodexFile } from "./dialects/codex.ts";
import { copilot } from "./dialects/copilot.ts";
import { nameProblem, type Dialect } from "./dialects/dialect.ts";
import { filesOfFolder, folder, readFolder } from "./dialects/folder.ts";
import { gemini } from "./dialects/gemini.ts";
import { checkSubAgents } from "./dialects/sub-agent-fields.ts";
import { opencode } from "./dialects/opencode.ts";
import { newDraft, type AgentDraft } from "../format/agent-draft.ts";
import { freelyBroken, freeShellProblem } from "../permissions/permissions.ts";
import { serverPlaceholderProblem } from "@holdfast/mcp";
import { FieldReport, type FieldVerdict } from "../format/field-report.ts";
import { readFields } from "../format/fields.ts";
import { FileProblem, readFrontMatter, readText, type ParsedFile } from "../format/front-matter.ts";

/** A file that was found, and the result of reading it. */
export interface AgentFile extends Omit<FoundFile, "dialect"> {
  readonly dialect: DialectName;
  /** The name in the file, or of the file when it has none. */
  readonly name: string;
  /** `null` for a file that is not loaded: it has a problem or a refused field, or its folder is not trusted. */
  readonly record: AgentRecord | null;
  readonly verdicts: readonly FieldVerdict[];
  /** The reason why the file as a whole cannot be used. */
  readonly problem: AgentFileProblem | null;
}

type AgentFileProblem = Pick<FileProblem, "message" | "fix" | "line" | "column">;

const DIALECTS: Readonly<Record<PlacedDialect, Dialect>> = {
  holdfast,
  claude,
  opencode,
  codex,
  gemini,
  copilot,
  folder,
};

/** The rules of a tool that stand outside of its agent files (`OutsideRules`). */
export interface RulesBeside {
  /** Adds them before the file's own fields are read. @returns the fields that are still to be read. */
  apply(
    dialect: PlacedDialect,
    values: Readonly<Record<string, unknown>>,
    draft: AgentDraft,
    report: FieldReport,
  ): Readonly<Record<string, unknown>>;
  /** Adds them to an agent whose own fields are read. */
  restrict(
    dialect: PlacedDialect,
    values: Readonly<Record<string, unknown>>,
    draft: AgentDraft,
    report: FieldReport,
  ): void;
}

/** @param outside the rules of the file's tool that stand elsewhere. A pushed file has none. */
export function loadAgentFile(found: FoundFile, outside?: RulesBeside): AgentFile {
  const report: { current: FieldReport } = { current: new FieldReport() };
  const draft = newDraft(stemOf(found), "");
  try {
    checkPlaces(found);
    const dialect = DIALECTS[found.dialect];
    const parsed = parse(found);
    report.current = new FieldReport(parsed.lineOf);
    readDialect(dialect, found.dialect, parsed, draft, report.current, outside);
    const { verdicts } = report.current;
    const isRefused = verdicts.some(({ verdict }) => verdict === "refused");
    const source = { path: found.path, dialect: found.dialect, scope: found.scope, hash: hashOf(found) };
    return {
      ...found,
      name: draft.name,
      record: isRefused ? null : { ...draft, source },
      verdicts,
      problem: null,
    };
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    const { message, fix, line, column } = error;
    return {
      ...found,
      name: draft.name,
      record: null,
      verdicts: [],
      problem: { message, fix, line, column },
    };
  }
}

/** A file that is listed and not read. */
export function unreadFile(found: FoundFile): AgentFile {
  return { ...found, name: stemOf(found), record: null, verdicts: [], problem: null };
}

function readDialect(
  dialect: Dialect,
  name: PlacedDialect,
  parsed: ParsedFile,
  draft: AgentDraft,
  report: FieldReport,
  outside: RulesBeside | undefined,
): void {
  draft.prompt = parsed.body;
  for (const repaired of parsed.repaired)
    report.add([repaired], "mapped", "read as a text, although it is not valid YAML; put it in quotes");
  const values = outside?.apply(name, parsed.values, draft, report) ?? parsed.values;
  readFields(values, dialect.table, draft, report);
  outside?.restrict(name, parsed.values, draft, report);
  if (parsed.values["name"] === undefined) {
    const problem = nameProblem(draft.name);
    if (problem === undefined) report.add(["name"], "mapped", `${draft.name}, as the file is named`);
    else report.add(["name"], "refused", `it is missing, and ${problem}`);
  }
  const promptField = dialect.mayLackPrompt === true ? undefined : (dialect.promptField ?? "prompt");
  checkAgent(draft, report, { promptField, isDescribed: Object.hasOwn(parsed.values, "description") });
}

/**
 * The checks of an agent that concern more than one of its fields.
 *
 * @param promptField the field of the system prompt; `undefined` where an agent may have none.
 */
export function checkAgent(
  draft: AgentDraft,
  report: FieldReport,
  { promptField, isDescribed }: { readonly promptField: string | undefined; readonly isDescribed: boolean },
): void {
  checkSubAgents(draft, report);
  checkPlaceholders(draft, report);
  checkShell(draft, report);
  if (draft.description === "" && !isDescribed)
    report.add(["description"], "refused", "it is missing: say in a sentence when to use the agent");
  // An agent without a model needs no prompt.
  if (draft.prompt === "" && draft.script === undefined && promptField !== undefined)
    report.add([promptField], "refused", "the system prompt is missing: write it below the front matter");
}

/**
 * Refuses a shell that could do what a rule for paths forbids. Without a sandbox of its own, the agent is
 * checked when it starts.
 */
function checkShell(draft: AgentDraft, report: FieldReport): void {
  const { sandbox } = draft;
  const denial = freelyBroken(draft);
  if (denial === undefined) return;
  const rule = `${denial.tool}(${denial.pattern})`;
  const problem = sandbox === null ? undefined : freeShellProblem(draft, sandbox);
  if (problem !== undefined) report.add(["tools"], "refused", problem);
  else if (sandbox === null)
    report.add(
      ["tools"],
      "mapped",
      `its commands run only in a sandbox that keeps ${rule} from them: virtual, bubblewrap or docker`,
    );
  else
    report.add(
      ["tools"],
      "mapped",
      `the sandbox ${sandbox} keeps the paths that its rules deny from commands, such as ${rule}`,
    );
}

/** Refuses placeholders that can never have a value. */
function checkPlaceholders({ mcpServers, inputSchema }: AgentDraft, report: FieldReport): void {
  for (const [name, server] of Object.entries(mcpServers)) {
    if (typeof server === "string") continue;
    const found = serverPlaceholderProblem(server, { inputSchema });
    if (found !== undefined) report.add(["mcpServers", name, found[0]], "refused", found[1]);
  }
}

function parse({ path, dialect }: FoundFile): ParsedFile {
  switch (dialect) {
    case "codex":
      return readCodexFile(path);
    case "folder":
      return readFolder(path);
    case "holdfast":
    case "claude":
    case "opencode":
    case "gemini":
    case "copilot":
      return readFrontMatter(readText(path));
  }
}

/** The place of the file, and of each file that an agent's folder is read from. @throws FileProblem */
function checkPlaces(found: FoundFile): void {
  checkPlace(found);
  if (found.dialect !== "folder") return;
  checkPlace({ ...found, path: join(found.path, "agent.json") }); // It names the others, so it comes first.
  for (const path of filesOfFolder(found.path)) if (existsSync(path)) checkPlace({ ...found, path });
}

/** @throws FileProblem */
function checkPlace({ path, within, scope }: FoundFile): void {
  requireInside(path, within);
  const real = realPath(path);
  if (scope === "path" || !existsSync(real)) return;
  const stats = statSync(real);
  if (!isWritableByOthers(stats)) return;
  // Without the bits for others only an owner is left that may write it.
  const isOfOther = isWritableByOthers({ uid: stats.uid, gid: stats.gid, mode: 0 });
  throw new FileProblem(
    `${isOfOther ? "another user owns it" : "other users may write it"} (owner ${stats.uid}, mode ${(stats.mode & 0o7777).toString(8)})`,
    isOfOther
      ? "make a copy that this user owns, or work as its owner"
      : "run chmod go-w on it; where the file system has no modes, as below /mnt of WSL, put the project elsewhere",
  );
}

function stemOf({ path }: FoundFile): string {
  return basename(path).replace(/(\.agent)?\.(md|toml)$/, "");
}

function hashOf({ path, dialect }: FoundFile): string {
  const hash = createHash("sha256");
  if (dialect !== "folder") return hash.update(readFileSync(path)).digest("hex");
  for (const file of filesOfFolder(path)) {
    const name = relative(path, file);
    // A length before each content: no text can move from one file to the next unseen.
    const content = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
    hash.update(`${name} ${content.length}\n`).update(content);
  }
  return hash.digest("hex");
}
