// `pushedAgents`: the agents that a runner makes of the agent files at its coordinator.
//
//   - The owner of the machine decides. A file whose name the policy does not allow is left alone. A file
//     that asks for more than the policy gives is refused with the reason.
//   - One file that is refused changes nothing for the others.
//   - Each version is an agent of its own, by the beginning of its hash. The newest versions of a file are
//     offered, so that a session goes on in the version that it started with.
//   - An agent that was made stays, also when a skill or a script of it becomes inactive: sessions that exist
//     go on.
//   - An agent is not offered while the policy does not take the current version of a script of it. Each new
//     session would fail here. The sessions that this runner holds go on.
//   - A large catalogue never ends a runner: the current versions of all files go before earlier ones, and
//     the rest is left out.

import { join } from "node:path";
import {
  ContentStore,
  loadAgentFile,
  findScripts,
  PushedContents,
  READING_TOOLS,
  scriptsOf,
  withinRights,
  type AgentPlaces,
  type AgentRecord,
} from "@holdfast/agents";
import {
  takesScript,
  type CatalogueAgents,
  type Catalogue,
  type RefusedAgent,
  type RunnerPolicy,
} from "@holdfast/runner";
import type { Agent } from "@holdfast/runtime";
import { withInactive } from "../agents/agent-tree.ts";
import { offeredVersions, syncContents, type Item } from "./sync-contents.ts";

export interface PushedAgentsOptions {
  readonly places: AgentPlaces;
  /** Makes the agent of a version. */
  readonly make: (
    record: AgentRecord,
    places: AgentPlaces,
    version: string,
  ) => Promise<{ readonly agent: Agent }>;
  /** Called with the records of the current versions that are offered, after each change of the catalogue. */
  readonly offered?: (current: readonly AgentRecord[]) => void;
  /** The folder of the user's data, where contents are kept. */
  readonly dataFolder: string;
  readonly policy: Pick<RunnerPolicy, "allowScripts" | "approvedScripts"> & {
    readonly agentFiles: NonNullable<RunnerPolicy["agentFiles"]>;
  };
  /** The sandbox of this machine for agents that name none. */
  readonly sandbox: string;
  /** Notified of each content that is refused, once for a reason. @param what such as `agent file reviewer (3f9c…)` */
  readonly refused: (what: string, reason: string) => void;
  /** The reason as people at the coordinator may read it. */
  readonly announced: (reason: string) => string;
}

const VERSION_CHARS = 16;
/** Fewer than a runner may offer, so that its own agents fit as well. */
const VERSIONS_MAX = 800;

interface Refused {
  readonly reason: string;
}

export function pushedAgents(options: PushedAgentsOptions): CatalogueAgents {
  const { dataFolder, policy } = options;
  const { allow } = policy.agentFiles;
  const pushed = {
    skills: new PushedContents(join(dataFolder, "pushed-skills"), () => true),
    scripts: new PushedContents(join(dataFolder, "pushed-scripts"), (hash) => takesScript(policy, hash)),
  };
  const places: AgentPlaces = { ...options.places, pushed };
  /** By name and hash. */
  const records = new Map<string, AgentRecord | Refused>();
  const made = new Map<string, Agent>();
  /** The environments of the coordinator that agents get. */
  const stored = new Map<Agent, readonly string[] | undefined>();
  const reported = new Set<string>();
  const refused = (what: string, reason: string): void => {
    if (reported.has(`${what} ${reason}`)) return;
    reported.add(`${what} ${reason}`);
    options.refused(what, reason);
  };
  return async ({ items, content }) => {
    const allowed = items.filter(
      ({ kind, name }) => kind === "agent" && (allow.includes("*") || allow.includes(name)),
    );
    const all = allowed.flatMap((item) => offeredVersions(item).map((hash) => ({ item, hash })));
    // The current versions go before earlier ones, which a large catalogue leaves out.
    const isCurrent = ({ item, hash }: (typeof all)[number]): boolean => item.current === hash;
    const versions = all
      .toSorted((a, b) => Number(isCurrent(b)) - Number(isCurrent(a)))
      .slice(0, VERSIONS_MAX);
    if (versions.length < all.length)
      refused(`rest of the catalogue`, `it has ${all.length} versions, and ${VERSIONS_MAX} is the limit`);
    for (const { item, hash } of versions) {
      const key = `${item.name} ${hash}`;
      if (!records.has(key)) records.set(key, await recordOf(item, hash, content, options));
    }
    const wanted = [...records.values()].filter((record): record is AgentRecord => !("reason" in record));
    for (const { what, reason } of await syncContents(wanted, { items, content }, pushed))
      refused(what, reason);
    const agents: Agent[] = [];
    const current: AgentRecord[] = [];
    const refusals: RefusedAgent[] = [];
    const announce = ({ name }: Item, reason: string) =>
      refusals.push({ name, problem: options.announced(reason) });
    for (const { item } of all.filter(isCurrent).slice(VERSIONS_MAX))
      announce(item, `the catalogue has more agents than the ${VERSIONS_MAX} that the runner may offer`);
    for (const { item, hash } of versions) {
      const key = `${item.name} ${hash}`;
      const record = records.get(key);
      const result =
        deniedScript(record, places) ?? made.get(key) ?? (await agentOf(record, hash, places, options));
      if ("reason" in result) {
        refused(`agent file ${item.name} (${hash.slice(0, VERSION_CHARS)})`, result.reason);
        if (hash === item.current) announce(item, result.reason);
      } else {
        if (record !== undefined && !("reason" in record))
          stored.set(result, record.source.storedEnvironments);
        made.set(key, result); // It stays, also when a skill or a script of it becomes inactive.
        agents.push(result);
        if (hash === item.current && record !== undefined && !("reason" in record)) current.push(record);
      }
    }
    options.offered?.(current);
    return { agents, refused: refusals, environmentsOf: (agent) => stored.get(agent) };
  };
}

/** The refusal of an agent whose script is here in no version that the policy of the machine takes. */
function deniedScript(record: AgentRecord | Refused | undefined, places: AgentPlaces): Refused | undefined {
  if (record === undefined || "reason" in record) return undefined;
  try {
    scriptsOf(record, places, () => findScripts(places).map(withInactive));
    return undefined;
  } catch (error) {
    return { reason: (error as Error).message };
  }
}

async function agentOf(
  record: AgentRecord | Refused | undefined,
  hash: string,
  places: AgentPlaces,
  { make }: Pick<PushedAgentsOptions, "make">,
): Promise<Agent | Refused> {
  if (record === undefined || "reason" in record) return record ?? { reason: "it was not read" };
  try {
    const version = hash.slice(0, VERSION_CHARS);
    return (await make(record, places, version)).agent;
  } catch (error) {
    return { reason: (error as Error).message }; // A file that is refused changes nothing for the others.
  }
}

/** The record of a version, with no more rights than the policy gives. */
async function recordOf(
  item: Item,
  hash: string,
  content: Catalogue["content"],
  { dataFolder, policy, sandbox }: PushedAgentsOptions,
): Promise<AgentRecord | Refused> {
  const found = await content(item, hash);
  if ("problem" in found) return { reason: found.problem };
  const folder = join(dataFolder, "pushed-agents");
  try {
    const store = new ContentStore(folder);
    if (store.read(hash) === undefined) store.keep({ hash, files: found.files }); // A damaged content is written again.
    const read = recordAt(join(folder, hash, `${item.name}.md`), item.name);
    if ("reason" in read) return read;
    const { tools = READING_TOOLS, ...given } = policy.agentFiles;
    const limited = withinRights(read, { ...given, tools, sandbox });
    return "refused" in limited ? { reason: limited.refused } : limited.record;
  } catch (error) {
    return { reason: (error as Error).message }; // A file that is refused changes nothing for the others.
  }
}

function recordAt(path: string, name: string): AgentRecord | Refused {
  const { record, problem, verdicts } = loadAgentFile({
    path,
    dialect: "holdfast",
    scope: "path",
    within: null,
  });
  if (record === null) {
    const first = verdicts.find(({ verdict }) => verdict === "refused");
    return { reason: problem?.message ?? `${first?.field ?? "a field"}: ${first?.text ?? "it is refused"}` };
  }
  return record.name === name ? record : { reason: `the file has the agent ${record.name}` };
}
