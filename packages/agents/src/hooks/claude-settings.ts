// `readHookFiles`: the hooks that a project configures for Claude Code, in `.claude/settings.json` and
// `.claude/settings.local.json`, and those of its user's and the machine's settings.
//
//   - A file of a project that the user does not trust is listed, and not read: a hook is a program to start.
//     A file is not read, either, whose hooks have changed since then (trusted-folders-2).
//   - Fields beside `hooks` are reported. `permissions` count for the agents of Claude Code (`claudeRules`),
//     and others have no effect.

import { existsSync } from "node:fs";
import { join } from "node:path";

import { layersOf, realPath, requireInside, type AgentPlaces } from "../places/agent-places.ts";
import type { AgentHook } from "../record/agent-record.ts";
import { FieldReport, type FieldVerdict } from "../format/field-report.ts";
import { FileProblem, readJson } from "../format/front-matter.ts";
import { claudeHooks } from "./claude-hooks.ts";
import { MANAGED_SETTINGS, userClaudeSettings } from "../places/settings-file.ts";
import type { ProjectPath } from "../places/project-inputs.ts";
import { isTrusted, isTrustedContent } from "../trust/trusted-folders.ts";

export interface HookFile {
  readonly path: string;
  /** The folder whose settings it has: a layer of the project, or the project for a file of the user. */
  readonly folder: string;
  /** It is the user's or the machine's, and its hooks are for the agents of Claude Code. */
  readonly isOuter: boolean;
  /** `unapproved` for hooks that have changed since the user trusted the project. */
  readonly status: "loaded" | "refused" | "untrusted" | "unapproved";
  readonly hooks: readonly AgentHook[];
  readonly verdicts: readonly FieldVerdict[];
  /** The reason why the file as a whole cannot be used. */
  readonly problem: string | null;
}

const FILES: readonly ProjectPath[] = [".claude/settings.json", ".claude/settings.local.json"];

/** The files that have hooks. @throws HoldfastError `config_invalid` when the file of trusted folders cannot be used. */
export function readHookFiles(places: AgentPlaces): readonly HookFile[] {
  const { project, home, env } = places;
  const user = userClaudeSettings(home, env);
  const outer = [...MANAGED_SETTINGS, ...(user === undefined ? [] : [user])].filter((path) =>
    existsSync(path),
  );
  const own = outer.map((path) => ({ ...readHookFile(path, null), folder: project }));
  return [...own, ...layersOf(places).flatMap((layer) => filesOfLayer(layer, outer))].filter(
    ({ status, hooks, verdicts }) => status !== "loaded" || hooks.length > 0 || verdicts.length > 0,
  );
}

function filesOfLayer(
  { project, trustFile, trustsProject }: AgentPlaces,
  outer: readonly string[],
): readonly HookFile[] {
  const found = FILES.map((path) => join(project, path)).filter(
    (path) => existsSync(path) && !outer.includes(path),
  );
  if (found.length === 0) return [];
  const isRead = trustsProject === true || isTrusted(trustFile, project);
  return found.map((path): HookFile => {
    const unread = { path, folder: project, isOuter: false, hooks: [], verdicts: [], problem: null };
    if (!isRead) return { ...unread, status: "untrusted" };
    const isApproved = trustsProject === true || isTrustedContent(trustFile, project, path);
    if (!isApproved) return { ...unread, status: "unapproved" };
    return { ...readHookFile(path, realPath(project)), folder: project };
  });
}

/** @param within the folder that the file must lie in; `null` for a file of the user. */
function readHookFile(path: string, within: string | null): Omit<HookFile, "folder"> {
  try {
    requireInside(path, within);
    const { hooks: given, disableAllHooks, ...others } = readJson(path);
    const report = new FieldReport();
    for (const name of Object.keys(others).filter((key) => key !== "$schema"))
      if (name === "permissions") report.add([name], "mapped", "rules of each agent of Claude Code");
      else report.add([name], "ignored", "Holdfast reads the hooks and the permissions only");
    if (disableAllHooks === true) report.add(["disableAllHooks"], "honoured");
    const hooks = given === undefined || disableAllHooks === true ? [] : hooksOf(given, report);
    const isRefused = report.verdicts.some(({ verdict }) => verdict === "refused");
    return {
      path,
      isOuter: within === null,
      status: isRefused ? "refused" : "loaded",
      hooks,
      verdicts: report.verdicts,
      problem: null,
    };
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return {
      path,
      isOuter: within === null,
      status: "refused",
      hooks: [],
      verdicts: [],
      problem: error.message,
    };
  }
}

function hooksOf(given: unknown, report: FieldReport): readonly AgentHook[] {
  if (typeof given === "object" && given !== null && !Array.isArray(given))
    return claudeHooks(given as Readonly<Record<string, unknown>>, ["hooks"], report);
  report.add(["hooks"], "refused", "it is no object with lists of hooks by event");
  return [];
}
