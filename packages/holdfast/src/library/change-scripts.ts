// `holdfast script new`, `push`, `rollback` and `tag` on this machine.

import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  contentOfVersion,
  findScripts,
  hashOfVersion,
  isScriptName,
  isTrusted,
  pushScript,
  rollbackScript,
  tagScript,
  versionsText,
  writeNewScript,
  type AgentPlaces,
  type Script,
} from "@holdfast/agents";
import { HoldfastError, NotFoundError, UsageError } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { agentPlaces, shownPath } from "../agents/agent-places.ts";
import { changesText, noteHiddenText } from "../agents/content-notes.ts";
import { requireInProject } from "@holdfast/place/project";
import { showToGit } from "@holdfast/place/settings/git-ignore";
import { checkTag, HASH_CHARS, showTag } from "./content-versions.ts";
import { noteName, pickScript } from "./show-scripts.ts";

export function newScript(name: string, isUsers: boolean, io: Io): number {
  if (!isScriptName(name))
    throw new UsageError(
      "a script's name has up to 48 small letters, digits and single hyphens between them",
      {
        got: name,
        fix: "choose another name, such as word-count",
      },
    );
  const { project, home } = agentPlaces(io);
  if (isUsers && home === undefined)
    throw new UsageError("there is no home folder for --user", { fix: "set HOME to an absolute path" });
  const path = join(isUsers ? (home ?? project) : project, ".holdfast", "scripts", name);
  if (!isUsers) requireInProject(path, project);
  if (existsSync(path))
    throw new UsageError("there is a script of that name already", {
      at: path,
      fix: "choose another name, or edit that script",
    });
  writeNewScript(path, name);
  if (!isUsers) showToGit("scripts", join(project, ".holdfast"));
  io.show({ name, path }, `wrote ${shownPath(path, io)}`);
  io.note(`next: edit it, then \`${io.call(`script push ${name}`)}\``);
  return 0;
}

export function push(names: readonly string[], io: Io): number {
  const places = agentPlaces(io);
  const scripts = findScripts(places);
  const chosen =
    names.length === 0
      ? scripts.filter(({ scope, status }) => scope === "project" && status !== "hidden")
      : names.map((name) => pickScript(name, scripts));
  if (chosen.some(({ status }) => status === "untrusted"))
    throw new HoldfastError(
      "policy_denied",
      "you have not trusted this project, so that none of its scripts is used",
      { at: places.project, fix: "run `holdfast agents trust`, which also pushes its scripts" },
    );
  const pushed = chosen.map((script) => {
    const { name, current: before } = script;
    const hash = pushScript(script, places, Date.now());
    const [old, content] = [before, hash].map((one) =>
      one === null ? undefined : contentOfVersion(one, places),
    );
    if (content !== undefined) noteHiddenText(`the script ${name}`, content.files, io);
    noteName(name, io);
    const changes = old === undefined || content === undefined ? null : changesText(old, content);
    return { name, hash, before, changes };
  });
  io.show(
    pushed,
    pushed.length === 0
      ? "the project has no script to push"
      : pushed
          .map(({ name, hash, before, changes }) =>
            hash === before
              ? `${name} has version ${hash.slice(0, HASH_CHARS)} already`
              : `${name} has version ${hash.slice(0, HASH_CHARS)} now${changes === null ? "" : `: ${changes}`}`,
          )
          .join("\n"),
  );
  return 0;
}

export function rollback(name: string, version: string | undefined, io: Io): number {
  const places = agentPlaces(io);
  const script = trustedScript(name, places);
  const { versions, current } = script;
  const at = versions.findIndex(({ hash }) => hash === current);
  const wanted = version === undefined ? versions[at - 1]?.hash : hashOfVersion(script, version);
  const hash = keptVersion(script, version, wanted, places);
  rollbackScript(script, hash, places);
  io.show({ name, hash, before: current }, `${name} has version ${hash.slice(0, HASH_CHARS)} again`);
  return 0;
}

/** @param version the current one without it. */
export function tagVersion(name: string, tag: string, version: string | undefined, io: Io): number {
  checkTag(tag);
  const places = agentPlaces(io);
  const script = trustedScript(name, places);
  const wanted = version === undefined ? (script.current ?? undefined) : hashOfVersion(script, version);
  const hash = keptVersion(script, version ?? "its present one", wanted, places);
  tagScript(script, tag, hash, places);
  return showTag(name, tag, hash, io);
}

/** @throws NotFoundError for a version that is not there, HoldfastError `file_not_found` for one whose content is gone. */
function keptVersion(
  { name, ...script }: Script,
  version: string | undefined,
  hash: string | undefined,
  places: AgentPlaces,
): string {
  if (hash === undefined)
    throw new NotFoundError(
      "file_not_found",
      version === undefined
        ? `the script ${name} has no version before its present one`
        : `the script ${name} has no version ${plainLine(version, 64)}`,
      {
        expected: versionsText(script) || "a version",
        fix: `run \`holdfast script history ${name}\` to see its versions`,
      },
    );
  if (contentOfVersion(hash, places) === undefined)
    throw new HoldfastError("file_not_found", `the content of that version of ${name} is damaged or gone`, {
      fix: "choose another version, or push the content again",
    });
  return hash;
}

function trustedScript(name: string, places: AgentPlaces): Script {
  if (!isTrusted(places.trustFile, places.project)) refuseUntrusted(name, places);
  return pickScript(name, findScripts(places));
}

function refuseUntrusted(name: string, places: AgentPlaces): void {
  if (pickScript(name, findScripts(places)).status === "untrusted")
    throw new HoldfastError("policy_denied", "you have not trusted this project", {
      at: places.project,
      fix: "run `holdfast agents trust`",
    });
}
