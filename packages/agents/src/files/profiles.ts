// Profiles of external agents (`readProfiles`, `findProfile`): named files with a model, a permission mode,
// rules, settings and MCP servers. A profile with `a2a`, `mcp`, `custom` or `harness` is an agent of its own
// (`findUsableProfile`).
//
//   - A profile of a project counts only where the user trusts the project, and can only restrict. The fields
//     that permit something or start a program are refused in it.
//   - A profile of the user counts before one of the project with the same name.
//   - A field that is not known, or that has another form, refuses the whole file. A profile is never used in
//     part.

import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError, NotFoundError } from "@holdfast/core";
import { isWritableByOthers } from "@holdfast/system";
import { z } from "zod";

import { layersOf, realPath, requireInside, type AgentPlaces } from "../places/agent-places.ts";
import type { AgentProfile, PermissionRule } from "../record/agent-record.ts";
import { FieldReport, type FieldVerdict } from "../format/field-report.ts";
import { FileProblem, readFrontMatter, readText } from "../format/front-matter.ts";
import {
  atHome,
  CHOICE_FIELDS,
  isProgram,
  PROGRAM_FIELDS,
  whyNotBeside,
  type ProfileProgram,
} from "./profile-programs.ts";
import { isTrusted } from "../trust/trusted-folders.ts";

/** A profile as its file says it: for sessions of an external agent, or an agent of its own. */
interface NamedProfile extends AgentProfile, ProfileProgram {
  /** Says what the agent is for, where the profile is an agent of its own. */
  readonly description?: string | undefined;
}

export interface ProfileFile {
  readonly path: string;
  readonly scope: "project" | "user";
  readonly name: string;
  readonly status: "loaded" | "refused" | "untrusted";
  readonly profile: NamedProfile | null;
  readonly problem: string | null;
  readonly verdicts: readonly FieldVerdict[];
}

const NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;
const RULE = /^([\w*-]+)(?:\(([^]+)\))?$/;
const OF_THE_USER = [
  "allowedTools",
  "settings",
  "mcpServers",
  "agents",
  "deletesSessions",
  ...Object.keys({ ...CHOICE_FIELDS, ...PROGRAM_FIELDS }),
];
const HARMLESS_MODES = ["default", "plan"];

const text = z.string().trim().min(1).max(200);
const PROFILE = z.strictObject({
  agent: text.optional(),
  model: text.optional(),
  permissionMode: text.optional(),
  allowedTools: z.array(z.string().regex(RULE, "expected TOOL or TOOL(PATTERN)")).max(200).optional(),
  settings: z.record(z.string(), z.unknown()).optional(),
  mcpServers: z.record(z.string().regex(NAME), z.record(z.string(), z.unknown())).optional(),
  agents: z.array(z.string().regex(NAME, "expected the name of an agent")).min(1).max(50).optional(),
  deletesSessions: z.boolean().optional(),
  description: text.optional(),
  ...CHOICE_FIELDS,
  ...PROGRAM_FIELDS,
});

/** All profiles of the user and of the project, those of the user first. */
export function readProfiles(places: AgentPlaces): readonly ProfileFile[] {
  const { home } = places;
  const own = home === undefined ? [] : filesIn(join(home, ".holdfast", "profiles"), "user", places);
  const ofLayer = (layer: AgentPlaces): readonly ProfileFile[] =>
    home !== undefined && realPath(home) === realPath(layer.project)
      ? []
      : filesIn(join(layer.project, ".holdfast", "profiles"), "project", layer);
  return [...own, ...layersOf(places).flatMap(ofLayer)];
}

/** The profiles of the user that are agents of their own, also those that cannot be used. */
export function readProfileAgents(places: Pick<AgentPlaces, "home">): readonly ProfileFile[] {
  const { home } = places;
  if (home === undefined) return [];
  const own = { project: home, home, env: {}, trustFile: "" };
  return filesIn(join(home, ".holdfast", "profiles"), "user", own).filter(
    ({ profile, verdicts }) =>
      (profile !== null && isProgram(profile)) ||
      verdicts.some(({ field }) => Object.keys(PROGRAM_FIELDS).includes(field.split(".")[0] ?? "")),
  );
}

/** @throws NotFoundError `file_not_found`, HoldfastError `config_invalid` or `policy_denied` */
export function findProfile(name: string, places: AgentPlaces): NamedProfile {
  const profile = findUsableProfile(name, places);
  if (!isProgram(profile)) return profile;
  throw new HoldfastError("config_invalid", `the profile "${name}" is an agent of its own`, {
    expected: "a profile without a2a, mcp, custom and harness",
    fix: `start a session of it: \`holdfast run ${name} "…"\``,
  });
}

/** The profile of this name, also one that is an agent of its own. @throws HoldfastError as `findProfile` */
export function findUsableProfile(name: string, places: AgentPlaces): NamedProfile {
  const found = readProfiles(places).find((file) => file.name === name); // Profiles of the user come first.
  if (found === undefined)
    throw new NotFoundError("file_not_found", `there is no profile "${name}"`, {
      expected: `a file ${name}.yaml in ~/.holdfast/profiles or in .holdfast/profiles of the project`,
      fix: "write it, or give the name of another one (`holdfast agents check` lists them)",
    });
  const { path, status, problem, verdicts, profile } = found;
  if (status === "untrusted")
    throw new HoldfastError(
      "policy_denied",
      `the profile "${name}" belongs to a project that you do not trust`,
      {
        at: path,
        fix: "read it, then run `holdfast agents trust`, or write a profile of your own in ~/.holdfast/profiles",
      },
    );
  if (profile !== null) return profile;
  const refused = verdicts.filter(({ verdict }) => verdict === "refused");
  throw new HoldfastError("config_invalid", `the profile "${name}" cannot be used: ${problem ?? ""}`, {
    at: path,
    got: refused.map((one) => `${one.field}: ${one.text}`).join("; ") || "another form",
    expected:
      "agent, model, permissionMode, allowedTools, settings, mcpServers, agents, deletesSessions, program, variables, keys and folders, each once or not at all; or one of a2a, mcp, custom and harness, with a description",
    fix: "correct the file; `holdfast agents check` reports on each field",
  });
}

function filesIn(folder: string, scope: ProfileFile["scope"], places: AgentPlaces): readonly ProfileFile[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(".yaml") && NAME.test(file.slice(0, -5)))
    .toSorted()
    .map((file) => readProfile(join(folder, file), file.slice(0, -5), scope, places));
}

function readProfile(
  path: string,
  name: string,
  scope: ProfileFile["scope"],
  { project, home = "/", trustFile, trustsProject = false }: AgentPlaces,
): ProfileFile {
  const file = { path, scope, name, profile: null, problem: null, verdicts: [] } as const;
  if (scope === "project" && !trustsProject && !isTrusted(trustFile, project))
    return { ...file, status: "untrusted" };
  try {
    if (scope === "user" && isWritableByOthers(statSync(path)))
      throw new FileProblem("other users may write it", "run chmod 600 on it");
    if (scope === "project") requireInside(path, realPath(project));
    const { values, lineOf } = readFrontMatter(`---\n${readText(path)}\n---\n`);
    return judged(file, values, new FieldReport(lineOf), home);
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return { ...file, status: "refused", problem: error.message };
  }
}

function judged(
  file: Omit<ProfileFile, "status">,
  fields: Readonly<Record<string, unknown>>,
  report: FieldReport,
  home: string,
): ProfileFile {
  const parsed = PROFILE.safeParse(fields);
  for (const field of Object.keys(fields)) {
    const issue = parsed.error?.issues.find(
      ({ path, code, ...more }) =>
        path[0] === field ||
        (code === "unrecognized_keys" && (more as { keys: readonly string[] }).keys.includes(field)),
    );
    const mode = fields["permissionMode"];
    const widens =
      file.scope === "project" &&
      (OF_THE_USER.includes(field) ||
        (field === "permissionMode" && !(typeof mode === "string" && HARMLESS_MODES.includes(mode))));
    const beside = whyNotBeside(field, fields);
    if (issue !== undefined) report.add([field, ...placeIn(field, issue)], "refused", problemOf(issue));
    else if (widens) report.add([field], "refused", "only a profile in ~/.holdfast/profiles may permit this");
    else if (beside !== undefined) report.add([field], "refused", beside);
    else report.add([field], "honoured");
  }
  const { verdicts } = report;
  const refused = verdicts.filter(({ verdict }) => verdict === "refused").length;
  if (!parsed.success || refused > 0)
    return {
      ...file,
      status: "refused",
      verdicts,
      problem: `${Math.max(refused, 1)} of its fields are refused`,
    };
  const { allowedTools = [], custom, harness, ...others } = parsed.data;
  const profile = {
    name: file.name,
    ...atHome(others, home),
    ...(custom && { custom: atHome(custom, home) }),
    ...(harness && { harness: atHome(harness, home) }),
    rules: allowedTools.map(ruleOf),
  };
  return { ...file, status: "loaded", profile, verdicts };
}

/** The field inside of a field that the problem is about. */
function placeIn(field: string, { path, code, ...more }: Issue): readonly string[] {
  const inside = path.slice(1).map(String);
  if (code !== "unrecognized_keys" || path[0] !== field) return inside;
  return [...inside, (more as { keys: readonly string[] }).keys[0] ?? ""];
}

function problemOf({ code, message }: Issue): string {
  return code === "unrecognized_keys" ? "not known" : message.replace(/^Invalid input: /, "");
}

type Issue = z.core.$ZodIssue;

function ruleOf(written: string): PermissionRule {
  const [, tool = "", pattern] = RULE.exec(written) ?? [];
  return { decision: "allow", tool, pattern: pattern ?? null };
}
