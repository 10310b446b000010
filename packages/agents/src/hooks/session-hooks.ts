// `withHooks`: the record of an agent with the hooks that its sessions run, checked before a session starts.
//
//   - A hook is a program to start. Hooks of a folder that the user has not trusted are off. An agent file
//     with hooks is refused then, because one of them may be there to forbid something. The settings of a
//     project are not used.
//   - Hooks of all layers of a project run.
//   - A session keeps its hooks, and the versions of their scripts, from its start.

import { dirname, relative } from "node:path";
import { HoldfastError } from "@holdfast/core";

import { layerOf, workFolderOf, type AgentPlaces } from "../places/agent-places.ts";
import type { AgentHook, AgentRecord } from "../record/agent-record.ts";
import { isFileTrusted } from "../trust/trusted-folders.ts";
import { readHookFiles, type HookFile } from "./claude-settings.ts";
import type { HookScripts } from "../model-loop/hooks/hook-task.ts";
import { checkCall, runScript } from "../scripts/run-script.ts";
import { findScripts } from "../scripts/find-scripts.ts";
import { scriptsOf, versionOf } from "../scripts/scripts-capability.ts";

/**
 * @param find finds the scripts that hooks may be.
 * @throws HoldfastError `policy_denied` or `agent_invalid` for hooks that cannot be run.
 */
export function withHooks(record: AgentRecord, places: AgentPlaces, find = findScripts): AgentRecord {
  if (record.hooks.length > 0) refuseUntrusted(record, places);
  const files = readHookFiles(places).filter(({ isOuter }) => !isOuter || record.source.dialect === "claude");
  for (const file of files) refuseRefused(record, file);
  const { source } = record;
  const own = source.scope === "project" ? layerOf(places, source.path).project : places.project;
  const hooks = [
    ...record.hooks.map((hook) => inFolder(hook, own, record, places)),
    ...files.flatMap((file) => file.hooks.map((hook) => inFolder(hook, file.folder, record, places))),
  ];
  if (hooks.length === 0) return record;
  return { ...record, hooks: hooks.map((hook) => withVersion(hook, record, places, find)) };
}

/** The names of the agents that hooks of a record are. */
export function hookAgentsOf({ hooks }: AgentRecord): readonly string[] {
  return [...new Set(hooks.flatMap(({ run }) => (run.type === "agent" ? [run.name] : [])))];
}

/** The names of the scripts that hooks of a record are. */
export function scriptsOfHooks({ hooks }: Pick<AgentRecord, "hooks">): readonly string[] {
  return [...new Set(hooks.flatMap(({ run }) => (run.type === "script" ? [run.name] : [])))];
}

/** Runs scripts of hooks in the versions of their sessions. */
export function hookScripts(places: AgentPlaces): HookScripts {
  return (workspace, { name, hash }, options) => {
    const { content, manifest } = versionOf(name, hash, places);
    return runScript(workspace, manifest, content, checkCall(manifest, {}), options);
  };
}

/**
 * The hook with the folder of its project. A worktree has its own files of this folder, so the way from the
 * folder of the session counts. An empty folder has none.
 */
function inFolder(
  hook: AgentHook,
  folder: string,
  { workspace }: Pick<AgentRecord, "workspace">,
  places: AgentPlaces,
): AgentHook {
  const way = workspace === "empty" ? folder : relative(workFolderOf(places), folder);
  return way === "" ? hook : { ...hook, folder: way };
}

function refuseUntrusted({ name, source }: AgentRecord, places: AgentPlaces): void {
  if (source.scope !== "path" || places.trustsProject === true) return;
  if (isFileTrusted(places, source.path)) return;
  throw new HoldfastError(
    "policy_denied",
    `agent "${name}" has hooks, which are programs that run by themselves, and you have not trusted the project of its file`,
    {
      at: source.path,
      fix: `read the hooks, and then run \`holdfast agents trust\` in ${dirname(source.path)}`,
    },
  );
}

function refuseRefused({ name }: AgentRecord, { path, status, problem, verdicts }: HookFile): void {
  if (status !== "refused") return;
  const first = verdicts.find(({ verdict }) => verdict === "refused");
  throw new HoldfastError("agent_invalid", `agent "${name}" cannot run with the hooks of this project`, {
    at: path,
    got: problem ?? `${first?.field}: ${first?.text}`,
    fix: "correct the file; `holdfast agents check` reports on each of its fields",
  });
}

function withVersion(
  hook: AgentHook,
  record: AgentRecord,
  places: AgentPlaces,
  find: typeof findScripts,
): AgentHook {
  const { run } = hook;
  if (run.type !== "script") return hook;
  const [script] = scriptsOf({ ...record, scripts: [run.name], deniedTools: [] }, places, () => find(places));
  const hash = script?.current ?? "";
  const { manifest } = versionOf(run.name, hash, places);
  try {
    checkCall(manifest, {});
  } catch (error) {
    throw new HoldfastError(
      "agent_invalid",
      `agent "${record.name}" has the script ${run.name} as a hook, and a hook gives no arguments`,
      { at: record.source.path, fix: "read the event from standard input instead", cause: error },
    );
  }
  return { ...hook, run: { ...run, hash } };
}
