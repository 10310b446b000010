// `findSkills`: the skills of a project and its user, from `.agents/skills`, `.claude/skills` and their
// plugins.
//
//   - The nearest layer of the project goes first and the user last. In each of them `.agents` goes before
//     `.claude` before plugins. Others of the same name are hidden.
//   - Skills of a project that the user does not trust are listed, and not read.
//   - A skill of a project is loaded only with the content that the user has approved. `trustsProject`
//     approves all of them.
//   - Each content that the user approves is a version, which an agent file may name (`NAME@TAG`,
//     `NAME@HASH`).
//   find-skills-5. A skill of a coordinator is there only for an agent that names it. It hides no other
//       skill.

import { basename, dirname, join } from "node:path";
import { HoldfastError } from "@holdfast/core";
import { layerOf, layersOf, realPath, requireInside, type AgentPlaces } from "../places/agent-places.ts";
import { type FieldVerdict } from "../format/field-report.ts";
import { FileProblem, readText } from "../format/front-matter.ts";
import { SKILL_FILE, skillFilesIn } from "../places/skill-folders.ts";
import { readSkillFields, skillName } from "./skill-fields.ts";
import { readApprovedSkills, writeApprovedSkills } from "./approved-skills.ts";
import { ContentStore } from "../contents/content-store.ts";
import {
  hashOfVersion,
  VersionsFile,
  versionsText,
  type ContentVersions,
} from "../contents/content-versions.ts";
import { readFolderContent, type FolderContent } from "../contents/folder-content.ts";
import { findPlugins, PLUGINS, skillsOfPlugin, type Plugin } from "../files/plugins.ts";
import { isTrusted, trustedLayersOf } from "../trust/trusted-folders.ts";

export interface Skill {
  readonly name: string;
  readonly description: string;
  /** The path of its `SKILL.md`. */
  readonly path: string;
  readonly scope: "project" | "user" | "coordinator";
  /**
   * `hidden` for a skill whose name another one has that goes before it, `unapproved` for a content that the
   * user has not approved. `inactive` and `denied` are for one of a coordinator (pushed-contents-2).
   */
  readonly status: "loaded" | "refused" | "untrusted" | "unapproved" | "hidden" | "inactive" | "denied";
  /** `false` for a skill that only a person may use. */
  readonly isForModels: boolean;
  /** `false` for a skill that no person may use by its name. */
  readonly isForPeople: boolean;
  /** The version of the skill: the hash of the content of its folder. `null` when it was not read. */
  readonly hash: string | null;
  readonly verdicts: readonly FieldVerdict[];
  /** The reason why the file as a whole cannot be used. */
  readonly problem: string | null;
}

/** @throws HoldfastError `config_invalid` when the file of trusted folders or of approved skills cannot be used. */
export function findSkills(places: AgentPlaces): readonly Skill[] {
  return [...skillsOfMachine(places), ...pushedSkills(places)];
}

/** find-skills-5. */
function pushedSkills({ pushed }: AgentPlaces): readonly Skill[] {
  return (pushed?.skills.items ?? []).map(({ name, path, status }) => {
    const skill = readSkill(join(path, SKILL_FILE), {
      name,
      scope: "coordinator",
      isRead: true,
      within: null,
    });
    return skill.status === "loaded" ? { ...skill, status } : skill;
  });
}

function skillsOfMachine(places: AgentPlaces): readonly Skill[] {
  const { home } = places;
  const plugins = findPlugins(places);
  const ofPlugins = plugins.filter(({ scope }) => scope === "user");
  const ofUser =
    home === undefined
      ? []
      : [...skillFilesIn(home), ...ofPlugins.flatMap((plugin) => skillsOfPlugin(plugin, SKILL_FILE))].map(
          (path) =>
            readSkill(path, { name: skillName(dirname(path)), scope: "user", isRead: true, within: null }),
        );
  const ofProject = layersOf(places).flatMap((layer) => skillsOfLayer(layer, plugins));
  const known = new Set<string>();
  return [...withApproval(ofProject, places), ...ofUser].map((skill): Skill => {
    if (skill.status !== "loaded") return skill;
    if (known.has(skill.name)) return { ...skill, status: "hidden" };
    known.add(skill.name);
    return skill;
  });
}

/** Skills whose content the user has not approved hide no other ones. */
function withApproval(skills: readonly Skill[], places: AgentPlaces): readonly Skill[] {
  if (places.trustsProject === true || !skills.some(isOfProject)) return skills;
  const approved = new Map(
    layersOf(places).map(({ project }) => [
      project,
      readApprovedSkills(approvalsFile(places), realPath(project)),
    ]),
  );
  const isApproved = ({ name, path, hash }: Skill): boolean =>
    approved.get(layerOf(places, path).project)?.[name] === hash;
  return skills.map((skill) =>
    isOfProject(skill) && !isApproved(skill) ? { ...skill, status: "unapproved" } : skill,
  );
}

function skillsOfLayer(
  { project, home, trustFile, trustsProject = false }: AgentPlaces,
  plugins: readonly Plugin[],
): readonly Skill[] {
  const within = realPath(project);
  if (home !== undefined && realPath(home) === within) return [];
  const ofPlugins = plugins
    .filter(({ scope, folder }) => scope === "project" && dirname(folder) === join(project, PLUGINS))
    .flatMap((plugin) => skillsOfPlugin(plugin, SKILL_FILE));
  const found = [...skillFilesIn(project), ...ofPlugins];
  const isRead = found.length > 0 && (trustsProject || isTrusted(trustFile, project));
  return found.map((path) =>
    readSkill(path, { name: skillName(dirname(path)), scope: "project", isRead, within }),
  );
}

function isOfProject({ scope, status }: Skill): boolean {
  return scope === "project" && status === "loaded";
}

/**
 * Approves the content that skills of the project have now. The project must be trusted.
 *
 * @param names the skills; all skills of the project without it.
 * @returns the approved skills. @throws HoldfastError `config_invalid`
 */
export function approveSkills(
  places: AgentPlaces,
  names?: readonly string[],
  now = Date.now(),
): readonly Skill[] {
  return trustedLayersOf(places).flatMap((layer) => approveSkillsOfLayer(layer, names, now));
}

function approveSkillsOfLayer(
  places: AgentPlaces,
  names: readonly string[] | undefined,
  now: number,
): readonly Skill[] {
  const project = realPath(places.project);
  const skills = findSkills({ ...places, trustsProject: true }).filter(isOfProject);
  const chosen = skills.filter(({ name }) => names === undefined || names.includes(name));
  const before = readApprovedSkills(approvalsFile(places), project);
  if (chosen.length === 0 && (skills.length > 0 || Object.keys(before).length === 0)) return [];
  // The approval of a skill that is gone ends with it.
  const kept = skills.flatMap(({ name }) =>
    before[name] === undefined ? [] : [[name, before[name]] as const],
  );
  const added = chosen.flatMap(({ name, hash }) => (hash === null ? [] : [[name, hash] as const]));
  const store = contentsOfSkills(places);
  for (const skill of chosen) {
    const content = contentOfSkill(skill);
    if (content !== undefined) store.keep(content);
  }
  writeApprovedSkills(approvalsFile(places), project, Object.fromEntries([...kept, ...added]));
  versionsFile(places).addAll(
    project,
    added.map(([name, hash]) => [name, { hash, at: now }]),
  );
  return chosen;
}

/** The versions of a skill of this machine. @throws HoldfastError `config_invalid` */
export function versionsOfSkill(
  skill: Pick<Skill, "name" | "scope" | "path">,
  places: AgentPlaces,
): ContentVersions {
  return versionsFile(places).read(ownerOf(skill, places), skill.name);
}

/**
 * Puts a tag on a version of a skill of this machine.
 *
 * @param version a tag or the beginning of a hash; without it the present content, which is a version then.
 * @returns its hash. @throws HoldfastError `file_not_found` for an unknown version, `agent_invalid` for a
 *   content that is not usable.
 */
export function tagSkill(
  skill: Skill,
  {
    tag,
    version,
    now,
  }: { readonly tag: string; readonly version?: string | undefined; readonly now: number },
  places: AgentPlaces,
): string {
  const file = versionsFile(places);
  const owner = ownerOf(skill, places);
  const hash = version === undefined ? keptHash(skill, places) : versionHash(skill, version, places);
  if (version === undefined && file.read(owner, skill.name).current !== hash)
    file.add(owner, skill.name, { hash, at: now });
  file.tag(owner, skill.name, tag, hash);
  return hash;
}

function keptHash(skill: Skill, places: AgentPlaces): string {
  const content = skill.status === "loaded" ? contentOfSkill(skill) : undefined;
  if (content === undefined)
    throw new HoldfastError("agent_invalid", `the present content of the skill ${skill.name} is not usable`, {
      at: skill.path,
      fix: `approve it (\`holdfast skill approve ${skill.name}\`), or name an earlier version`,
    });
  contentsOfSkills(places).keep(content);
  return content.hash;
}

/** The version of a skill that an agent file names. @throws HoldfastError `agent_invalid`, `file_not_found` */
export function skillInVersion(skill: Skill, version: string, places: AgentPlaces): Skill {
  const { name, scope } = skill;
  const hash = versionHash(skill, version, places);
  const store = contentsOfSkills(places);
  if (store.read(hash) === undefined)
    throw new HoldfastError(
      "file_not_found",
      `the content of the version ${name}@${version} is damaged or gone`,
      {
        fix: "name another version, or approve the same content again",
      },
    );
  const path = join(store.folderOf(hash), SKILL_FILE);
  return readSkill(path, { name, scope, isRead: true, within: null });
}

function versionHash(skill: Skill, version: string, places: AgentPlaces): string {
  const versions = versionsOfSkill(skill, places);
  const hash = hashOfVersion(versions, version);
  if (hash !== undefined) return hash;
  throw new HoldfastError(
    "file_not_found",
    `the skill ${skill.name} has no version ${version.slice(0, 64)}`,
    {
      at: skill.path,
      expected: versionsText(versions) || "a version: approve the skill, or give its present content a tag",
      fix: `name one of these; \`holdfast skill history ${skill.name}\` shows them`,
    },
  );
}

/** Versions of a project belong to the real path of the layer. */
function ownerOf({ scope, path }: Pick<Skill, "scope" | "path">, places: AgentPlaces): string {
  return scope === "project" ? realPath(layerOf(places, path).project) : "user";
}

function versionsFile({ trustFile }: AgentPlaces): VersionsFile {
  return new VersionsFile(join(dirname(trustFile), "skill-versions.json"), "skills");
}

/**
 * The content of a skill of the project that the user approved last, if it is still kept.
 *
 * @throws HoldfastError `config_invalid`
 */
export function approvedContent(
  places: AgentPlaces,
  { name, path }: Pick<Skill, "name" | "path">,
): FolderContent | undefined {
  const { project } = layerOf(places, path);
  const hash = readApprovedSkills(approvalsFile(places), realPath(project))[name];
  return hash === undefined ? undefined : contentsOfSkills(places).read(hash);
}

/** The contents of skills by their hash: those that the user has approved, and those that sessions began with. */
export function contentsOfSkills({ trustFile }: AgentPlaces): ContentStore {
  return new ContentStore(join(dirname(trustFile), "skills"));
}

function approvalsFile({ trustFile }: AgentPlaces): string {
  return join(dirname(trustFile), "approved-skills.json");
}

/** The content of a skill that was found, if it still is the one that was found. @throws FileProblem */
export function contentOfSkill({ path, hash }: Skill): FolderContent | undefined {
  const content = readFolderContent(dirname(path));
  return content.hash === hash ? content : undefined;
}

/**
 * Reads the content of a skill as one of this name, wherever it lies.
 *
 * @param path its `SKILL.md`
 */
export function readSkill(
  path: string,
  {
    name,
    scope,
    isRead,
    within,
  }: Pick<Skill, "name" | "scope"> & { readonly isRead: boolean; readonly within: string | null },
): Skill {
  const skill = {
    name,
    description: "",
    path,
    scope,
    isForModels: true,
    isForPeople: true,
    hash: null,
    verdicts: [],
    problem: null,
  };
  if (!isRead) return { ...skill, status: "untrusted" };
  try {
    requireInside(path, within, { what: "skill" });
    if (basename(path) !== SKILL_FILE)
      throw new FileProblem(`the file is called ${basename(path)}`, `rename it to ${SKILL_FILE}`);
    const found = { ...skill, ...readSkillFields(name, readText(path)) };
    if (found.verdicts.some(({ verdict }) => verdict === "refused")) return { ...found, status: "refused" };
    return { ...found, status: "loaded", hash: readFolderContent(dirname(path)).hash };
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return { ...skill, status: "refused", problem: `${error.message}: ${error.fix}` };
  }
}
