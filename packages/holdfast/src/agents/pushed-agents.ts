// `pushedAgents`: the agents that a runner makes of the agent files at its coordinator.
//
//   pushed-agents-1. The owner of the machine decides. A file whose name the policy does not allow is left alone. A file that asks for more
//       than the policy gives is refused with the reason.
//   pushed-agents-2. One file that is refused changes nothing for the others.
//   pushed-agents-3. Each version is an agent of its own, by the beginning of its hash. The newest versions of a file are offered, so that a
//       session goes on in the version that it started with.

import { join } from "node:path";
import {
  ContentStore,
  loadAgentFile,
  READING_TOOLS,
  withinRights,
  type AgentPlaces,
  type AgentRecord,
} from "@holdfast/agents";
import type { CatalogueAgents, Catalogue, RunnerPolicy } from "@holdfast/runner";
import type { Agent } from "@holdfast/runtime";
import { agentOfRecord } from "./file-agent.ts";

type Item = Catalogue["items"][number];

export interface PushedAgentsOptions {
  readonly places: AgentPlaces;
  /** The folder that sessions work in. */
  readonly workspace: string;
  /** The folder of the user's data, where contents are kept. */
  readonly dataFolder: string;
  readonly rights: NonNullable<RunnerPolicy["agentFiles"]>;
  /** Told once of each file that is refused. */
  readonly refused: (name: string, version: string, reason: string) => void;
}

const VERSION_CHARS = 16;
const VERSIONS_OFFERED = 10;

export function pushedAgents(options: PushedAgentsOptions): CatalogueAgents {
  /** By name and hash; `undefined` for a version that is refused. */
  const made = new Map<string, Agent | undefined>();
  const { allow } = options.rights;
  return async ({ items, content }) => {
    const agents: Agent[] = [];
    for (const item of items) {
      if (item.kind !== "agent" || !(allow.includes("*") || allow.includes(item.name))) continue;
      for (const hash of offeredVersions(item)) {
        const key = `${item.name} ${hash}`;
        if (!made.has(key)) {
          const result = await agentOf(item, hash, content, options);
          if ("reason" in result) options.refused(item.name, hash.slice(0, VERSION_CHARS), result.reason);
          made.set(key, "agent" in result ? result.agent : undefined);
        }
        const agent = made.get(key);
        if (agent !== undefined) agents.push(agent);
      }
    }
    return agents;
  };
}

/** pushed-agents-3. The current one first, then the tagged ones, then the newest. */
function offeredVersions({ current, tags, versions }: Item): readonly string[] {
  const newest = versions.toReversed().map(({ hash }) => hash);
  return [...new Set([current, ...Object.values(tags), ...newest])].slice(0, VERSIONS_OFFERED);
}

async function agentOf(
  item: Item,
  hash: string,
  content: Catalogue["content"],
  options: PushedAgentsOptions,
): Promise<{ readonly agent: Agent } | { readonly reason: string }> {
  const { places, workspace, rights } = options;
  const found = await content(item, hash);
  if ("problem" in found) return { reason: found.problem };
  const folder = join(options.dataFolder, "pushed-agents");
  try {
    const store = new ContentStore(folder);
    if (store.read(hash) === undefined) store.keep({ hash, files: found.files }); // A damaged content is written again.
    const read = recordAt(join(folder, hash, `${item.name}.md`), item.name);
    if ("reason" in read) return read;
    const limited = withinRights(read.record, rights.tools ?? READING_TOOLS);
    if ("refused" in limited) return { reason: limited.refused };
    const version = hash.slice(0, VERSION_CHARS);
    return { agent: (await agentOfRecord(limited.record, places, workspace, { version })).agent };
  } catch (error) {
    return { reason: (error as Error).message }; // pushed-agents-2.
  }
}

function recordAt(
  path: string,
  name: string,
): { readonly record: AgentRecord } | { readonly reason: string } {
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
  return record.name === name ? { record } : { reason: `the file has the agent ${record.name}` };
}
