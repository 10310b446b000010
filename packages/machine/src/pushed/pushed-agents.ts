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
//   - An agent is offered only with the agents that it may start or has as hooks. These are current versions of
//     the catalogue, each with rights of its own, or agents that the runner offers besides. They never start
//     each other without end.
//   - A large catalogue never ends a runner: the current versions of all files go before earlier ones, and
//     the rest is left out.

import { join } from "node:path";
import {
  ContentStore,
  findScripts,
  hookAgentsOf,
  loadAgentFile,
  PushedContents,
  READING_TOOLS,
  scriptsOf,
  scriptsOfHooks,
  withinRights,
  type AgentPlaces,
  type AgentRecord,
  type OfferedAgent,
} from "@holdfast/agents";
import {
  takesScript,
  type Catalogue,
  type CatalogueAgents,
  type CatalogueOffers,
  type RefusedAgent,
  type RunnerPolicy,
} from "@holdfast/runner";
import { HoldfastError } from "@holdfast/core";
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
  /** The agents that the runner offers besides, by their names. */
  readonly own: ReadonlyMap<string, OfferedAgent>;
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
  const pushed = new PushedAgents(options);
  return (catalogue) => pushed.offersOf(catalogue);
}

class PushedAgents {
  readonly #options: PushedAgentsOptions;
  readonly #places: AgentPlaces & { readonly pushed: NonNullable<AgentPlaces["pushed"]> };
  /** By name and hash. */
  readonly #records = new Map<string, AgentRecord | Refused>();
  readonly #made = new Map<string, Agent>();
  /** The agents of the catalogue in their current versions, as they were last offered. */
  readonly #current = new Map<string, OfferedAgent>();
  /** The environments of the coordinator that agents get. */
  readonly #stored = new Map<Agent, readonly string[] | undefined>();
  readonly #reported = new Set<string>();

  constructor(options: PushedAgentsOptions) {
    const { dataFolder, policy } = options;
    this.#options = options;
    this.#places = {
      ...options.places,
      pushed: {
        skills: new PushedContents(join(dataFolder, "pushed-skills"), () => true),
        scripts: new PushedContents(join(dataFolder, "pushed-scripts"), (hash) => takesScript(policy, hash)),
        agent: (name) => this.#offered(name),
      },
    };
  }

  async offersOf(catalogue: Catalogue): Promise<CatalogueOffers> {
    const allowed = catalogue.items.filter(({ kind, name }) => kind === "agent" && this.#allows(name));
    const all = allowed.flatMap((item) => offeredVersions(item).map((hash): Version => ({ item, hash })));
    // The current versions go before earlier ones, which a large catalogue leaves out.
    const versions = all
      .toSorted((a, b) => Number(isCurrent(b)) - Number(isCurrent(a)))
      .slice(0, VERSIONS_MAX);
    if (versions.length < all.length)
      this.#refused(
        `rest of the catalogue`,
        `it has ${all.length} versions, and ${VERSIONS_MAX} is the limit`,
      );
    for (const { item, hash } of versions) {
      const key = keyOf({ item, hash });
      if (!this.#records.has(key))
        this.#records.set(key, await recordOf(item, hash, catalogue.content, this.#options));
    }
    const wanted = [...this.#records.values()].filter((record): record is AgentRecord => !isRefused(record));
    for (const { what, reason } of await syncContents(wanted, catalogue, this.#places.pushed))
      this.#refused(what, reason);
    const agents: Agent[] = [];
    const current: Agent[] = [];
    const refusals: RefusedAgent[] = [];
    const announce = ({ name }: Item, reason: string) =>
      refusals.push({ name, problem: this.#options.announced(reason) });
    for (const { item } of all.filter(isCurrent).slice(VERSIONS_MAX))
      announce(item, `the catalogue has more agents than the ${VERSIONS_MAX} that the runner may offer`);
    const round: Round = { items: catalogue.items, results: new Map() };
    for (const version of versions) {
      const { item, hash } = version;
      const result = await this.#agentOf(version, [item.name], round);
      if (isRefused(result)) {
        this.#refused(`agent file ${item.name} (${hash.slice(0, VERSION_CHARS)})`, result.reason);
        if (isCurrent(version)) announce(item, result.reason);
      } else {
        const record = this.#records.get(keyOf(version));
        if (record !== undefined && !isRefused(record))
          this.#stored.set(result, record.source.storedEnvironments);
        agents.push(result);
        if (isCurrent(version)) current.push(result);
      }
    }
    this.#options.offered?.(current.flatMap(({ name }) => this.#current.get(name)?.record ?? []));
    return {
      agents,
      current,
      refused: refusals,
      environmentsOf: (agent) => this.#stored.get(agent),
    };
  }

  #allows(name: string): boolean {
    const { allow } = this.#options.policy.agentFiles;
    return allow.includes("*") || allow.includes(name);
  }

  #refused(what: string, reason: string): void {
    if (this.#reported.has(`${what} ${reason}`)) return;
    this.#reported.add(`${what} ${reason}`);
    this.#options.refused(what, reason);
  }

  /** @param above the names of the agents that lead to it, and its own. */
  #agentOf(version: Version, above: readonly string[], round: Round): Promise<Agent | Refused> {
    const key = keyOf(version);
    const known = round.results.get(key) ?? this.#checkedAgentOf(version, above, round);
    round.results.set(key, known);
    return known;
  }

  async #checkedAgentOf(version: Version, above: readonly string[], round: Round): Promise<Agent | Refused> {
    const { item, hash } = version;
    const key = keyOf(version);
    const record = this.#records.get(key) ?? { reason: "it was not read" };
    if (isRefused(record)) return record;
    const denied = deniedScript(record, this.#places);
    if (denied !== undefined) return denied;
    for (const name of new Set([...record.agents, ...hookAgentsOf(record)])) {
      const reason = await this.#whyNotBelow(name, above, round);
      if (reason !== undefined) return { reason };
    }
    try {
      const agent =
        this.#made.get(key) ??
        (await this.#options.make(record, this.#places, hash.slice(0, VERSION_CHARS))).agent;
      this.#made.set(key, agent); // It stays, also when a skill or a script of it becomes inactive.
      if (isCurrent(version))
        this.#current.set(item.name, { name: item.name, description: record.description, record });
      return agent;
    } catch (error) {
      return { reason: (error as Error).message }; // A file that is refused changes nothing for the others.
    }
  }

  /** @returns why an agent of this name cannot be started, or be a hook. */
  async #whyNotBelow(name: string, above: readonly string[], round: Round): Promise<string | undefined> {
    const item = round.items.find((one) => one.kind === "agent" && one.name === name);
    if (item === undefined)
      return this.#options.own.has(name)
        ? undefined
        : `it names the agent ${name}, which the coordinator has not and this runner does not offer`;
    // mutant: agent-below-not-allowed
    if (!this.#allows(name))
      return `it names the agent ${name}, and the policy of this runner does not allow the file, as a line "allow": ["${name}"] of its "agentFiles" would`;
    if (above.includes(name)) return `agents start each other without end: ${[...above, name].join(" → ")}`;
    const below = await this.#agentOf({ item, hash: item.current }, [...above, name], round);
    return isRefused(below) ? `it names the agent ${name}, which is refused: ${below.reason}` : undefined;
  }

  /** @throws HoldfastError `agent_not_found` for an agent that was never offered here. */
  #offered(name: string): OfferedAgent {
    const offered = this.#current.get(name) ?? this.#options.own.get(name);
    if (offered !== undefined) return offered;
    throw new HoldfastError("agent_not_found", `this runner offers no agent ${name}`, {
      fix: `push its file to the coordinator, and allow it in the policy of this runner`,
    });
  }
}

/** One look at the catalogue. */
interface Round {
  readonly items: readonly Item[];
  readonly results: Map<string, Promise<Agent | Refused>>;
}

interface Version {
  readonly item: Item;
  readonly hash: string;
}

function keyOf({ item, hash }: Version): string {
  return `${item.name} ${hash}`;
}

function isCurrent({ item, hash }: Version): boolean {
  return item.current === hash;
}

function isRefused(result: AgentRecord | Agent | Refused): result is Refused {
  return "reason" in result;
}

/** The refusal of an agent whose script is here in no version that the policy of the machine takes. */
function deniedScript(record: AgentRecord, places: AgentPlaces): Refused | undefined {
  const find = () => findScripts(places).map(withInactive);
  try {
    scriptsOf(record, places, find);
    scriptsOf({ ...record, scripts: scriptsOfHooks(record), deniedTools: [] }, places, find);
    return undefined;
  } catch (error) {
    return { reason: (error as Error).message };
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
    const { allow: _allow, tools = READING_TOOLS, ...given } = policy.agentFiles;
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
