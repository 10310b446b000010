// Lists the agents of a project and its user, and finds one by its name or path (`listAgents`, `findAgent`).
//
//   - A name means one file. The nearest layer of the project goes first and the user last, and in each of them
//     the order of `PROJECT_FOLDERS` counts. `TOOL:NAME` means the file of a tool, for commands and in `agents` of a file. Two
//     files of one tool and layer with one name are an error that names both. A file that is refused takes no
//     name.
//   - A file of a project that the user does not trust is listed, and not read.
//   - Agents that may start each other without end are not loaded.
//   - An agent file with other rights than the user has trusted is listed, and has no record
//     (trusted-folders-2). A folder agent that is new or has changed is not even read.

import { existsSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { didYouMean, HoldfastError, NotFoundError } from "@holdfast/core";
import type { AgentRecord } from "../record/agent-record.ts";
import {
  findAgentFiles,
  foundAt,
  layerOf,
  layersOf,
  realPath,
  type AgentPlaces,
  type FoundFile,
} from "../places/agent-places.ts";
import { importedAgents } from "./imports/import-files.ts";
import { ofTool } from "./dialects/dialect.ts";
import { filesOfFolder } from "./dialects/folder.ts";
import { FileProblem } from "../format/front-matter.ts";
import { loadAgentFile, unreadFile, type AgentFile } from "./load-agent-file.ts";
import type { FieldVerdict } from "../format/field-report.ts";
import { OutsideRules } from "./settings/outside-rules.ts";
import { areTrustedRights, isTrusted, isTrustedContent } from "../trust/trusted-folders.ts";

type AgentStatus =
  | "loaded"
  /** A problem, or a refused field. */
  | "refused"
  /** Its project is not trusted. */
  | "untrusted"
  /** It gives other rights than its user has trusted, or is a folder agent that is new or has changed. */
  | "unapproved"
  /** Another file of its tool and layer has its name. */
  | "doubled"
  /** A file that goes before it has its name. */
  | "hidden";

export interface ListedAgent extends AgentFile {
  readonly status: AgentStatus;
  /** The other files of this name, when it is doubled or hidden. */
  readonly others: readonly string[];
  /** `TOOL:NAME` for a file that shares its name; `null` for the others, and where that means another file. */
  readonly qualifiedName: string | null;
}

/** @throws HoldfastError `config_invalid` when the file of trusted folders cannot be used. */
export function listAgents(places: AgentPlaces): readonly ListedAgent[] {
  const trusted = new Map(
    layersOf(places).map(({ project, trustFile, trustsProject = false }) => [
      project,
      trustsProject || isTrusted(trustFile, project),
    ]),
  );
  const isProjectTrusted = ({ path }: FoundFile): boolean =>
    trusted.get(layerOf(places, path).project) === true;
  const outside = new OutsideRules(places);
  const read = new Set<AgentFile>();
  const all = findAgentFiles(places);
  const files = all.map((found) => {
    const isOwn = found.scope !== "project" || places.trustsProject === true;
    if (!isOwn && (!isProjectTrusted(found) || !isApproved(found, places))) return unreadFile(found);
    const file = loadAgentFile(found, outside);
    if (!isOwn && !hasTrustedRights(found, places)) return { ...file, record: null };
    read.add(file);
    return file;
  });
  const byName = Map.groupBy(
    files.filter((file) => read.has(file) && file.record !== null),
    ({ name }) => name,
  );
  const listed = files.map((file, at): UnnamedAgent => {
    if (!read.has(file)) {
      const found = all[at];
      const isUnapproved = found !== undefined && isProjectTrusted(found);
      return { ...file, status: isUnapproved ? "unapproved" : "untrusted", others: [] };
    }
    if (file.record === null) return { ...file, status: "refused", others: [] };
    const named = byName.get(file.name) ?? [];
    const doubles = named.filter(
      ({ within, dialect, path }) => within === file.within && dialect === file.dialect && path !== file.path,
    );
    const [first = file] = named; // Files are found in this order.
    if (doubles.length > 0) return { ...file, status: "doubled", others: doubles.map(({ path }) => path) };
    if (first !== file) return { ...file, status: "hidden", others: [first.path] };
    return { ...file, status: "loaded", others: [] };
  });
  const found = withoutCycles(listed, places);
  const named = agentsByName(found);
  const sharing = Map.groupBy(
    found.filter((file) => usableRecord(file) !== undefined),
    ({ name }) => name,
  );
  return found.map((file) => {
    const name = `${file.dialect}:${file.name}`;
    const isShared = (sharing.get(file.name)?.length ?? 0) > 1;
    return { ...file, qualifiedName: isShared && named(name) === file ? name : null };
  });
}

type UnnamedAgent = Omit<ListedAgent, "qualifiedName">;

function isApproved({ path, dialect }: Pick<AgentFile, "path" | "dialect">, places: AgentPlaces): boolean {
  const { project, trustFile, trustsProject = false } = layerOf(places, path);
  if (dialect !== "folder" || trustsProject) return true;
  const main = join(path, "agent.json");
  const isUnchanged = (file: string): boolean =>
    !existsSync(file) || isTrustedContent(trustFile, project, file);
  return isUnchanged(main) && grantingFilesOf(path).every(isUnchanged);
}

/**
 * The files of a folder agent with rights, those of its capabilities among them. A folder that cannot be read
 * has none, and its reader says why.
 */
function grantingFilesOf(path: string): readonly string[] {
  try {
    return filesOfFolder(path).filter((file) => file.endsWith(".json"));
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return [];
  }
}

/**
 * The agent of this name (`reviewer`, `claude:reviewer`), or of the file at this path.
 *
 * @param cwd the folder that a relative path begins at.
 * @throws NotFoundError `agent_not_found`.
 * @throws HoldfastError `agent_invalid` for a file that is refused, or a name that two files have.
 * @throws HoldfastError `policy_denied` for a file of a project that is not trusted.
 */
export function findAgent(
  nameOrPath: string,
  places: AgentPlaces,
  cwd: string = places.project,
): AgentRecord {
  if (isPath(nameOrPath)) {
    const path = isAbsolute(nameOrPath) ? nameOrPath : resolve(cwd, nameOrPath);
    const [imported] = importedAgents(path) ?? [];
    if (imported?.record !== undefined && imported.record !== null) throw onlyImported(imported);
    const file = imported ?? loadAgentFile(foundAt(path), new OutsideRules(places));
    if (hasOtherRights(file, places)) refuse({ ...file, status: "unapproved" });
    return file.record ?? refuse(file);
  }
  const listed = listAgents(places);
  const first = agentsByName(listed)(nameOrPath);
  if (first === undefined) {
    const names = listed.filter(({ status }) => status === "loaded").map(({ name }) => name);
    throw new NotFoundError(
      "agent_not_found",
      `there is no agent ${nameOrPath}${didYouMean(nameOrPath, [...names, ...(places.externalAgents?.() ?? [])])}`,
      {
        expected: names.length === 0 ? "an agent file in .holdfast/agents" : names.join(", "),
        fix: "run `holdfast agents list` to see all agents",
      },
    );
  }
  return usableRecord(first) ?? refuse(first);
}

/** Looks up the file that a name means, also one that cannot be used. */
export function agentsByName<Listed extends UnnamedAgent>(
  listed: readonly Listed[],
): (wanted: string) => Listed | undefined {
  const byName = Map.groupBy(listed, ({ name }) => name);
  return (wanted) => {
    const qualified = ofTool(wanted);
    const files = byName.get(qualified?.name ?? wanted) ?? [];
    const [first] =
      qualified === undefined
        ? files
            .filter(({ status }) => status !== "hidden")
            .toSorted((a, b) => RANK[a.status] - RANK[b.status])
        : files
            .filter(({ dialect }) => dialect === qualified.tool)
            .toSorted((a, b) => Number(a.record === null) - Number(b.record === null));
    return first;
  };
}

/** The record of a file that a session can use. */
export function usableRecord({ status, record }: UnnamedAgent): AgentRecord | undefined {
  return status === "loaded" || status === "hidden" ? (record ?? undefined) : undefined;
}

/**
 * Whether the agent of a trusted project that somebody names by its path has other rights. A file elsewhere
 * is used because it is named.
 */
function hasOtherRights(file: AgentFile, places: AgentPlaces): boolean {
  const { project, trustFile, trustsProject = false } = layerOf(places, file.path);
  if (trustsProject || file.dialect === "folder" || !isTrusted(trustFile, project)) return false;
  const real = realPath(file.path);
  const found = findAgentFiles(places).find(
    ({ path, scope }) => scope === "project" && realPath(path) === real,
  );
  return found !== undefined && !hasTrustedRights(found, places);
}

/** Its own fields count. Settings beside it are trusted as files of their own. */
function hasTrustedRights(found: FoundFile, places: AgentPlaces): boolean {
  const { trustFile, project } = layerOf(places, found.path);
  return found.dialect === "folder" || areTrustedRights(trustFile, project, loadAgentFile(found));
}

/** An agent that can be used goes before one that is not trusted, which may have another name. */
const RANK: Readonly<Record<AgentStatus, number>> = {
  loaded: 0,
  doubled: 1,
  refused: 2,
  untrusted: 3,
  unapproved: 3,
  hidden: 4,
};

function onlyImported({ path, dialect }: AgentFile): HoldfastError {
  return new HoldfastError("agent_invalid", `a file of the format ${dialect} is not run as it is`, {
    at: path,
    fix: `run \`holdfast agents import\` with this file, and then name the agent`,
  });
}

/** Whether a text names a file and no agent. */
function isPath(text: string): boolean {
  return /[/\\]|\.(md|toml|json)$/.test(text) || text === ".";
}

/** @throws HoldfastError that says why the file has no record. */
function refuse(file: AgentFile & Partial<Pick<ListedAgent, "status" | "others">>): never {
  const { path, name, status, others = [], problem, verdicts } = file;
  if (status === "untrusted")
    throw new HoldfastError("policy_denied", `the agent ${name} is in a project that you have not trusted`, {
      at: path,
      fix: "read the file, and then run `holdfast agents trust`",
    });
  if (status === "unapproved")
    throw new HoldfastError(
      "policy_denied",
      `the agent ${name} is new or has changed since you trusted this project`,
      {
        at: path,
        got: "other rights, servers, hooks or files than you have trusted",
        fix: "read its files, and then run `holdfast agents trust`",
      },
    );
  if (status === "doubled")
    throw new HoldfastError("agent_invalid", `${others.length + 1} files have the agent ${name}`, {
      at: [path, ...others].join(", "),
      fix: "rename one of them, or name the file by its path",
    });
  if (problem !== null) {
    const { message, fix, line, column } = problem;
    const place = line === null ? path : `${path}:${line}${column === null ? "" : `:${column}`}`;
    if (!existsSync(path)) throw new NotFoundError("file_not_found", message, { at: path, fix });
    throw new HoldfastError("agent_invalid", `the agent file cannot be used: ${message}`, { at: place, fix });
  }
  const reasons = verdicts.filter(({ verdict }) => verdict === "refused");
  const [first] = reasons;
  throw new HoldfastError(
    "agent_invalid",
    `the agent ${name} is refused: ${reasons.map(({ field, text }) => `${field}: ${text}`).join("; ")}`,
    {
      at: first === undefined || first.line === null ? path : `${path}:${first.line}`,
      fix: "correct these fields; `holdfast agents check` explains each field",
    },
  );
}

/** An external agent has no file. An agent of code may have a name that no file has. */
function withoutCycles(
  listed: readonly UnnamedAgent[],
  { externalAgents }: Pick<AgentPlaces, "externalAgents">,
): readonly UnnamedAgent[] {
  const named = agentsByName(listed);
  const recordOf = (name: string): AgentRecord | undefined => {
    const file = named(name);
    return file === undefined ? undefined : usableRecord(file);
  };
  const endless = endlessFrom(
    listed.flatMap((agent) => usableRecord(agent) ?? []),
    recordOf,
  );
  return listed.map((agent) => {
    const record = usableRecord(agent);
    if (record === undefined) return agent;
    const { path } = record.source;
    const cycle = endless.has(path) ? pathTo(path, record, recordOf, new Set()) : undefined;
    const said = (verdict: FieldVerdict["verdict"], text: string): readonly FieldVerdict[] => [
      ...agent.verdicts,
      { field: "agents", verdict, text, line: null },
    ];
    if (cycle !== undefined) {
      const text = `agents start each other without end: ${[record.name, ...cycle].join(" → ")}`;
      return { ...agent, status: "refused", record: null, verdicts: said("refused", text) };
    }
    const files = record.agents.filter((name) => name !== "*" && recordOf(name) === undefined);
    const builtIn = files.filter((name) => BUILT_IN[record.source.dialect]?.includes(name));
    if (builtIn.length > 0) {
      const agents = record.agents.filter((name) => !builtIn.includes(name));
      const text = `${builtIn.join(", ")} comes with the other tool and has no file, so no session starts it`;
      return { ...agent, record: { ...record, agents }, verdicts: said("ignored", text) };
    }
    const externals = files.length === 0 ? [] : (externalAgents?.() ?? []);
    const unknown = files.find((name) => !externals.includes(name));
    if (unknown === undefined) return agent;
    const names = listed.filter(({ status }) => status === "loaded").map(({ name }) => name);
    const guess = didYouMean(unknown, [...names, ...externals]);
    return {
      ...agent,
      verdicts: said("ignored", `no file has an agent ${unknown}, so it must be an agent of code${guess}`),
    };
  });
}

/** The agents that come with other tools. A file of such a name counts in their place. */
const BUILT_IN: Readonly<Record<string, readonly string[]>> = {
  claude: ["Explore", "Plan", "general-purpose", "statusline-setup"],
  opencode: ["explore", "general", "plan", "build"],
};

/** The agents that it may start, also as hooks. */
function startedBy({ agents, hooks }: AgentRecord): readonly string[] {
  return [...agents, ...hooks.flatMap(({ run }) => (run.type === "agent" ? [run.name] : []))];
}

/**
 * The paths of agents from which a cycle can be reached. The others are taken away, beginning with those that
 * start none, so that no path has to be searched where there is no cycle.
 */
function endlessFrom(
  records: readonly AgentRecord[],
  recordOf: (name: string) => AgentRecord | undefined,
): ReadonlySet<string> {
  const starts = records.flatMap((record) =>
    [...new Set(startedBy(record).flatMap((name) => recordOf(name)?.source.path ?? []))].map(
      (started) => [record.source.path, started] as const,
    ),
  );
  const startersOf = Map.groupBy(starts, ([, started]) => started);
  const open = new Map(records.map(({ source }) => [source.path, 0]));
  for (const [starter] of starts) open.set(starter, (open.get(starter) ?? 0) + 1);
  const ended = [...open].flatMap(([path, count]) => (count === 0 ? [path] : []));
  for (let path = ended.pop(); path !== undefined; path = ended.pop()) {
    open.delete(path);
    for (const [starter] of startersOf.get(path) ?? []) {
      const left = (open.get(starter) ?? 0) - 1;
      open.set(starter, left);
      if (left === 0) ended.push(starter);
    }
  }
  return new Set(open.keys());
}

/** The names from this agent down to the wanted file. */
function pathTo(
  wanted: string,
  from: AgentRecord,
  recordOf: (name: string) => AgentRecord | undefined,
  seen: Set<string>,
): readonly string[] | undefined {
  for (const name of startedBy(from)) {
    const next = recordOf(name);
    if (next === undefined) continue;
    if (next.source.path === wanted) return [name];
    if (seen.has(next.source.path)) continue;
    seen.add(next.source.path);
    const rest = pathTo(wanted, next, recordOf, seen);
    if (rest !== undefined) return [name, ...rest];
  }
  return undefined;
}
