// `readHookFiles`: the hooks that a project configures for Claude Code, in `.claude/settings.json` and `.claude/settings.local.json`.
//
//   claude-settings-1. A file of a project that the user does not trust is listed, and not read: a hook is a program to start.
//       A file is not read, either, whose hooks have changed since then (trusted-folders-2).
//   claude-settings-2. Fields beside `hooks` are reported and have no effect.

import { existsSync } from "node:fs";
import { join } from "node:path";

import { realPath, requireInside, type AgentPlaces } from "../agent-files/agent-places.ts";
import type { AgentHook } from "../agent-files/agent-record.ts";
import { FieldReport, type FieldVerdict } from "../agent-files/format/field-report.ts";
import { FileProblem, readJson } from "../agent-files/format/front-matter.ts";
import { claudeHooks } from "../agent-files/format/hook-fields.ts";
import type { GrantingPath } from "../agent-files/trust/granting-places.ts";
import { isTrusted, isTrustedContent } from "../agent-files/trust/trusted-folders.ts";

export interface HookFile {
  readonly path: string;
  /** `unapproved` for hooks that have changed since the user trusted the project. */
  readonly status: "loaded" | "refused" | "untrusted" | "unapproved";
  readonly hooks: readonly AgentHook[];
  readonly verdicts: readonly FieldVerdict[];
  /** The reason why the file as a whole cannot be used. */
  readonly problem: string | null;
}

const FILES: readonly GrantingPath[] = [".claude/settings.json", ".claude/settings.local.json"];

/** The files that have hooks. @throws HoldfastError `config_invalid` when the file of trusted folders cannot be used. */
export function readHookFiles({
  project,
  trustFile,
  trustsProject = false,
}: AgentPlaces): readonly HookFile[] {
  const found = FILES.map((path) => join(project, path)).filter((path) => existsSync(path));
  if (found.length === 0) return [];
  const isRead = trustsProject || isTrusted(trustFile, project);
  return found
    .map((path): HookFile => {
      const unread = { path, hooks: [], verdicts: [], problem: null };
      if (!isRead) return { ...unread, status: "untrusted" };
      const isApproved = trustsProject || isTrustedContent(trustFile, project, path);
      return isApproved ? readHookFile(path, realPath(project)) : { ...unread, status: "unapproved" };
    })
    .filter(({ status, hooks, verdicts }) => status !== "loaded" || hooks.length > 0 || verdicts.length > 0);
}

function readHookFile(path: string, within: string): HookFile {
  try {
    requireInside(path, within);
    const { hooks: given, disableAllHooks, ...others } = readJson(path);
    const report = new FieldReport();
    for (const name of Object.keys(others).filter((key) => key !== "$schema"))
      report.add(
        [name],
        "ignored",
        "Holdfast reads the hooks only; `holdfast.approvals` of an agent file has its rules",
      );
    if (disableAllHooks === true) report.add(["disableAllHooks"], "honoured");
    const hooks = given === undefined || disableAllHooks === true ? [] : hooksOf(given, report);
    const isRefused = report.verdicts.some(({ verdict }) => verdict === "refused");
    return {
      path,
      status: isRefused ? "refused" : "loaded",
      hooks,
      verdicts: report.verdicts,
      problem: null,
    };
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return { path, status: "refused", hooks: [], verdicts: [], problem: error.message };
  }
}

function hooksOf(given: unknown, report: FieldReport): readonly AgentHook[] {
  if (typeof given === "object" && given !== null && !Array.isArray(given))
    return claudeHooks(given as Readonly<Record<string, unknown>>, ["hooks"], report);
  report.add(["hooks"], "refused", "it is no object with lists of hooks by event");
  return [];
}
