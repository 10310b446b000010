// `holdfast script new`, `push` and `rollback`.

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  contentOfVersion,
  findScripts,
  isScriptName,
  isTrusted,
  MANIFEST,
  pushScript,
  rollbackScript,
  type AgentPlaces,
} from "@holdfast/agents";
import { makePrivateFolder } from "@holdfast/runtime/internal";
import { HoldfastError, NotFoundError, UsageError } from "@holdfast/core";
import type { Io } from "../frame/command.ts";
import { plainLine } from "../frame/plain-text.ts";
import { agentPlaces, shownPath } from "../agents/agent-places.ts";
import { changesText, noteHiddenText } from "../agents/skills/content-notes.ts";
import { requireInProject } from "../place/project.ts";
import { showToGit } from "../settings/git-ignore.ts";
import { HASH_CHARS, pickScript } from "./show-scripts.ts";

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
  makePrivateFolder(path);
  if (!isUsers) showToGit("scripts", join(project, ".holdfast"));
  writeFileSync(join(path, MANIFEST), `${JSON.stringify(manifestOf(name), null, 2)}\n`, { flag: "wx" });
  writeFileSync(join(path, `${name}.sh`), TEMPLATE, { flag: "wx", mode: 0o755 });
  io.show({ name, path }, `wrote ${shownPath(path, io)}`);
  io.note(`next: edit it, then \`${io.call(`script push ${name}`)}\``);
  return 0;
}

function manifestOf(name: string): object {
  return {
    name,
    description: "Say in one sentence what the script does and when to use it.",
    script_file: `${name}.sh`,
    parameters_schema: {
      type: "object",
      properties: { file: { type: "string", description: "The file to read" } },
      required: ["file"],
    },
    effect: "read",
    timeout: "1m",
  };
}

const TEMPLATE = `#!/bin/sh
# Runs in the folder of the agent. SCRIPT_DIR is the folder of this file.
while [ $# -gt 0 ]; do
  case "$1" in
    --file) file="$2"; shift 2 ;;
  esac
done
wc -w < "$file"
`;

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
  if (!isTrusted(places.trustFile, places.project)) refuseUntrusted(name, places);
  const script = pickScript(name, findScripts(places));
  const { versions, current } = script;
  const at = versions.findIndex(({ hash }) => hash === current);
  const wanted =
    version === undefined
      ? versions[at - 1]
      : versions.find(({ hash }) => version.length >= 4 && hash.startsWith(version));
  if (wanted === undefined)
    throw new NotFoundError(
      "file_not_found",
      version === undefined
        ? `the script ${name} has no version before its present one`
        : `the script ${name} has no version ${plainLine(version, 64)}`,
      {
        expected: versions.map(({ hash }) => hash.slice(0, HASH_CHARS)).join(", ") || "a version",
        fix: `run \`holdfast script history ${name}\` to see its versions`,
      },
    );
  if (contentOfVersion(wanted.hash, places) === undefined)
    throw new HoldfastError("file_not_found", `the content of that version of ${name} is damaged or gone`, {
      fix: "choose another version, or push the content again",
    });
  rollbackScript(script, wanted.hash, places);
  io.show(
    { name, hash: wanted.hash, before: current },
    `${name} has version ${wanted.hash.slice(0, HASH_CHARS)} again`,
  );
  return 0;
}

function refuseUntrusted(name: string, places: AgentPlaces): void {
  if (pickScript(name, findScripts(places)).status === "untrusted")
    throw new HoldfastError("policy_denied", "you have not trusted this project", {
      at: places.project,
      fix: "run `holdfast agents trust`",
    });
}
