// `findScripts`: the scripts of a project and its user, from `.holdfast/scripts`. `pushScript` keeps a
// version, which agents then use.
//
//   - An agent uses the current version of a script: the one that was pushed last, or that a rollback chose.
//     A later change of the folder changes nothing before it is pushed, so each content of a script has been
//     approved by its user.
//   - A script of the nearest layer goes before those of the others, and those of the project before the user's. Scripts of a project that is not trusted are not
//     read.
//   - A content is kept before the record of versions names it.
//   - A script of a coordinator hides no other script. The policy of the machine decides whether it is used.

import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { HoldfastError } from "@holdfast/core";

import { layerOf, layersOf, realPath, requireInside, type AgentPlaces } from "../places/agent-places.ts";
import { FileProblem } from "../format/front-matter.ts";
import type { ProjectPath } from "../places/project-inputs.ts";
import { isTrusted, trustedLayersOf } from "../trust/trusted-folders.ts";
import { ContentStore } from "../contents/content-store.ts";
import { readFolderContent, type FolderContent } from "../contents/folder-content.ts";
import { readManifest, type ScriptManifest } from "./script-manifest.ts";
import { NO_VERSIONS, VersionsFile, type ContentVersions } from "../contents/content-versions.ts";

export interface Script {
  readonly name: string;
  /** The folder of the script. */
  readonly path: string;
  readonly scope: "project" | "user" | "coordinator";
  /**
   * `unpushed` for a script without a version, `hidden` for one whose name another one has that goes before
   * it. `inactive` and `denied` are for one of a coordinator (pushed-contents-2).
   */
  readonly status: "loaded" | "refused" | "untrusted" | "unpushed" | "hidden" | "inactive" | "denied";
  /** That of the current version, or of the folder when there is none. `null` when it cannot be used. */
  readonly manifest: ScriptManifest | null;
  /** The hash of the current version. */
  readonly current: string | null;
  /** The hash of the present content of the folder; `null` when it was not read or is refused. */
  readonly folderHash: string | null;
  readonly versions: ContentVersions["versions"];
  /** Hashes by the names of tags. */
  readonly tags: ContentVersions["tags"];
  /** The reason why it cannot be used, or why the folder cannot be pushed. */
  readonly problem: string | null;
}

const FOLDER: ProjectPath = ".holdfast/scripts";

/** @throws HoldfastError `config_invalid` when the file of trusted folders or of versions cannot be used. */
export function findScripts(places: AgentPlaces): readonly Script[] {
  return [...scriptsOfMachine(places), ...pushedScripts(places)];
}

function pushedScripts({ pushed }: AgentPlaces): readonly Script[] {
  return (pushed?.scripts.items ?? []).map(({ name, hash, path, status }) => {
    const found = {
      name,
      path,
      scope: "coordinator" as const,
      current: hash,
      folderHash: hash,
      versions: [],
      tags: {},
    };
    if (status === "denied") return { ...found, manifest: null, problem: null, status }; // It was not fetched.
    const { manifest, problem } = readFolder(path, name, null);
    return { ...found, manifest, problem, status: manifest === null ? "refused" : status };
  });
}

function scriptsOfMachine(places: AgentPlaces): readonly Script[] {
  const { home } = places;
  const ofUser = home === undefined ? [] : foldersIn(home);
  const known = new Set<string>();
  return [
    ...layersOf(places).flatMap(scriptsOfLayer),
    ...ofUser.map((path) => readScript(path, "user", places)),
  ].map((script): Script => {
    if (known.has(script.name)) return { ...script, status: "hidden" };
    if (script.status === "loaded") known.add(script.name);
    return script;
  });
}

function scriptsOfLayer(places: AgentPlaces): readonly Script[] {
  const { project, home, trustFile, trustsProject = false } = places;
  const isHome = home !== undefined && realPath(home) === realPath(project);
  const found = isHome ? [] : foldersIn(project);
  const isRead = found.length > 0 && (trustsProject || isTrusted(trustFile, project));
  return found.map((path) => (isRead ? readScript(path, "project", places) : unread(path)));
}

/**
 * Keeps the present content of a script's folder as its current version.
 *
 * @returns its hash. @throws HoldfastError `agent_invalid` for a content that is refused.
 */
export function pushScript(script: Script, places: AgentPlaces, now: number): string {
  const { name } = script;
  const { content } = presentContent(script, places);
  storeOf(places).keep(content); // The content comes before the record of versions that names it.
  versionsFile(places).add(ownerOf(script, places), name, { hash: content.hash, at: now });
  return content.hash;
}

/** The content of a script's folder now. @throws HoldfastError `agent_invalid` for a content that is refused. */
export function presentContent(
  { path, name, scope }: Pick<Script, "path" | "name" | "scope">,
  places: AgentPlaces,
): { readonly content: FolderContent; readonly manifest: ScriptManifest } {
  try {
    const content = contentIn(path, withinOf({ path, scope }, places));
    return { content, manifest: readManifest(content, name) };
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    throw new HoldfastError("agent_invalid", `the script ${name} is refused: ${error.message}`, {
      at: path,
      fix: error.fix,
    });
  }
}

/** Pushes the scripts of a project that its user has just trusted. @returns their names. */
export function pushScriptsOf(places: AgentPlaces, now: number): readonly string[] {
  const layers = trustedLayersOf(places).map(({ project }) => project);
  const scripts = findScripts({ ...places, layers, trustsProject: true }).filter(
    ({ scope, folderHash, problem }) => scope === "project" && folderHash !== null && problem === null,
  );
  for (const script of scripts) pushScript(script, places, now);
  return scripts.map(({ name }) => name);
}

/** Makes an older version the current one. The folder stays as it is. */
export function rollbackScript(script: Script, hash: string, places: AgentPlaces): void {
  versionsFile(places).choose(ownerOf(script, places), script.name, hash);
}

/** Puts a tag on one of the versions of a script. */
export function tagScript(script: Script, tag: string, hash: string, places: AgentPlaces): void {
  versionsFile(places).tag(ownerOf(script, places), script.name, tag, hash);
}

/** The content of a version, if it is still there undamaged. */
export function contentOfVersion(hash: string, places: AgentPlaces): FolderContent | undefined {
  return storeOf(places).read(hash) ?? places.pushed?.scripts.content(hash);
}

function readScript(path: string, scope: Script["scope"], places: AgentPlaces): Script {
  const name = basename(path);
  const { current, versions, tags } = versionsFile(places).read(ownerOf({ scope, path }, places), name);
  const found = {
    name,
    path,
    scope,
    current,
    versions,
    tags,
    manifest: null,
    folderHash: null,
    problem: null,
  };
  const folder = readFolder(path, name, withinOf({ path, scope }, places));
  const { folderHash, problem } = folder;
  if (current === null)
    return { ...found, ...folder, status: folder.manifest === null ? "refused" : "unpushed" };
  const kept = contentOfVersion(current, places);
  if (kept === undefined)
    return {
      ...found,
      folderHash,
      status: "unpushed",
      problem: "the content of its version is damaged or gone",
    };
  try {
    return { ...found, folderHash, problem, status: "loaded", manifest: readManifest(kept, name) };
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return { ...found, folderHash, status: "refused", problem: error.message };
  }
}

function readFolder(
  path: string,
  name: string,
  within: string | null,
): Pick<Script, "folderHash" | "manifest" | "problem"> {
  try {
    const content = contentIn(path, within);
    return { folderHash: content.hash, manifest: readManifest(content, name), problem: null };
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return { folderHash: null, manifest: null, problem: error.message };
  }
}

/** @throws FileProblem */
function contentIn(path: string, within: string | null): FolderContent {
  requireInside(path, within, { what: "folder" });
  return readFolderContent(path, { refusesHardLinks: true });
}

function unread(path: string): Script {
  const nothing = { ...NO_VERSIONS, manifest: null, folderHash: null, problem: null };
  return { name: basename(path), path, scope: "project", status: "untrusted", ...nothing };
}

function foldersIn(root: string): readonly string[] {
  const folder = join(root, FOLDER);
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true }).filter(
    (entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith("."),
  );
  return entries.map(({ name }) => join(folder, name)).toSorted();
}

function storeOf({ trustFile }: AgentPlaces): ContentStore {
  return new ContentStore(join(dirname(trustFile), "scripts"));
}

function versionsFile({ trustFile }: AgentPlaces): VersionsFile {
  return new VersionsFile(join(dirname(trustFile), "script-versions.json"), "scripts");
}

/** Versions of a project belong to the real path of the layer. */
function ownerOf(script: Pick<Script, "scope" | "path">, places: AgentPlaces): string {
  return withinOf(script, places) ?? "user";
}

/** The real path of the layer that a script of a project lies in. */
function withinOf({ scope, path }: Pick<Script, "scope" | "path">, places: AgentPlaces): string | null {
  return scope === "project" ? realPath(layerOf(places, path).project) : null;
}

/**
 * The version of a script that a call runs. @throws HoldfastError `policy_denied` or `agent_invalid` for one
 * that cannot be used.
 */
export function usableScript(
  { name, status, current, manifest, path, problem }: Script,
  places: AgentPlaces,
) {
  const content = current === null ? undefined : contentOfVersion(current, places);
  if (status === "loaded" && manifest !== null && content !== undefined) return { manifest, content };
  if (status === "untrusted")
    throw new HoldfastError("policy_denied", "you have not trusted this project", {
      at: path,
      fix: "read the script, and then run `holdfast agents trust`",
    });
  throw new HoldfastError(
    "agent_invalid",
    status === "unpushed"
      ? `the script ${name} has not been pushed`
      : `the script ${name} is refused${problem === null ? "" : `: ${problem}`}`,
    {
      at: path,
      fix:
        status === "unpushed"
          ? `read it, and then run \`holdfast script push ${name}\``
          : "correct it, and push it",
    },
  );
}
