// `agentWarnings`: what is wrong with an agent besides the fields of its file, in texts. It may refer to
// something that is not there. It may also be an agent that a text of a stranger could make send data away.

import {
  commandPath,
  environmentsBeside,
  findScripts,
  findSkills,
  freeShellProblem,
  fullModelName,
  layerOf,
  lethalTrifecta,
  listAgents,
  otherCommand,
  readEnvironments,
  readMcpFiles,
  splitReference,
  type AgentPlaces,
  type AgentRecord,
} from "@holdfast/agents";
import { ownSandboxes, Sandboxes } from "@holdfast/workspace";
import { didYouMean, HoldfastError } from "@holdfast/core";
import { hookWarnings } from "./hook-programs.ts";

export type WarningsOf = (record: AgentRecord) => readonly string[];

/**
 * @param places where the things are that agents refer to. They are looked up once.
 * @param sandbox that of agents that name none.
 * @returns texts. The names in them are as a file has them, and not yet safe for a terminal.
 */
export function agentWarnings(places: AgentPlaces, sandbox: string): WarningsOf {
  const known = new Map<string, ReadonlySet<string>>();
  const missing = (what: Kind, wanted: readonly Reference[]): readonly string[] => {
    if (wanted.length === 0) return [];
    const names = known.get(what) ?? new Set(FIND[what](places));
    known.set(what, names);
    return wanted.flatMap(({ field, name }) =>
      names.has(name)
        ? []
        : [`${field}: there is no ${what} ${name} here, so no session begins here${didYouMean(name, names)}`],
    );
  };
  return (record) => [
    ...missing("skill", inList("skills", namesOf(record.skills ?? []))),
    ...missing("script", [...inList("scripts", namesOf(record.scripts)), ...inHooks(record, "script")]),
    ...missing("MCP server", inList("mcpServers", referencesOf(record))),
    ...missing("environment", inList("environment", record.environments)),
    ...missing("sandbox", inList("sandbox", record.sandbox === null ? [] : [record.sandbox])),
    ...missing("agent", [
      ...inList("agents", record.agents).filter(({ name }) => name !== "*"),
      ...inHooks(record, "agent"),
    ]),
    ...refused("skill", inList("skills", namesOf(record.skills ?? [])), () => findSkills(places)),
    ...refused("script", inList("scripts", namesOf(record.scripts)), () => findScripts(places)),
    ...nameWarnings(record, places),
    ...shellWarnings(record, sandbox),
    ...modelWarnings(record),
    ...hookWarnings(record.hooks, layerOf(places, record.source.path)),
    ...trifectaText(record),
  ];
}

/** A skill or script that is there and refused refuses each session, as one that is missing does. */
function refused(
  what: "skill" | "script",
  wanted: readonly Reference[],
  find: () => readonly { readonly name: string; readonly status: string }[],
): readonly string[] {
  if (wanted.length === 0) return [];
  const found = find();
  return wanted.flatMap(({ field, name }) => {
    const statuses = found.filter((one) => one.name === name).map(({ status }) => status);
    return statuses.length > 0 && statuses.every((status) => status === "refused")
      ? [
          `${field}: the ${what} ${name} is refused, so no session begins here; \`holdfast ${what} show ${name}\` says why`,
        ]
      : [];
  });
}

function namesOf(references: readonly string[]): readonly string[] {
  return references.map((one) => splitReference(one).name);
}

/** A name in a field of the file. */
interface Reference {
  readonly field: string;
  readonly name: string;
}

function inList(field: string, names: readonly string[]): readonly Reference[] {
  return names.map((name, at) => ({ field: `${field}.${at}`, name }));
}

/** The scripts or the agents that are hooks. */
function inHooks({ hooks }: AgentRecord, type: "script" | "agent"): readonly Reference[] {
  return hooks.flatMap(({ point, run }) =>
    run.type === type ? [{ field: `hooks.${point}`, name: run.name }] : [],
  );
}

type Kind = "agent" | "skill" | "script" | "MCP server" | "environment" | "sandbox";

const FIND: Readonly<Record<Kind, (places: AgentPlaces) => readonly string[]>> = {
  agent: (places) => [
    ...listAgents(places).flatMap(({ name, status }) => (status === "loaded" ? [name] : [])),
    ...(places.externalAgents?.() ?? []),
  ],
  skill: (places) => findSkills(places).map(({ name }) => name),
  script: (places) => findScripts(places).map(({ name }) => name),
  "MCP server": (places) => readMcpFiles(places).flatMap(({ servers }) => Object.keys(servers)),
  environment: ({ trustFile }) => Object.keys(readEnvironments(environmentsBeside(trustFile))),
  sandbox: () => new Sandboxes(ownSandboxes()).names,
};

/** The sandbox of an agent that names none may not keep what a rule denies. The file of one that does is refused. */
function shellWarnings(record: AgentRecord, sandbox: string): readonly string[] {
  if (record.sandbox !== null) return [];
  const problem = freeShellProblem(record, sandbox);
  return problem === undefined ? [] : [`no session begins here without another sandbox: ${problem}`];
}

/** A shell runs another command by the name of a script. */
function nameWarnings({ scripts }: AgentRecord, { env }: AgentPlaces): readonly string[] {
  return namesOf(scripts).flatMap((name, at) => {
    const other = otherCommand(name, env["PATH"]);
    return other === undefined
      ? []
      : [
          `scripts.${at}: a shell runs ${other} by the name ${name}; the agent calls the script by ${commandPath(name)}`,
        ];
  });
}

/** A name that no provider has refuses the first call of the model. */
function modelWarnings({ model, fallbackModels }: AgentRecord): readonly string[] {
  return [model ?? [], fallbackModels].flat().flatMap((name) => {
    try {
      fullModelName(name);
      return [];
    } catch (error) {
      if (!HoldfastError.is(error)) throw error;
      return [`model: ${error.message}, so no session begins here; expected ${error.expected}`];
    }
  });
}

function referencesOf({ mcpServers }: AgentRecord): readonly string[] {
  return Object.values(mcpServers).flatMap((server) =>
    typeof server === "string" ? [server] : "ref" in server ? [server.ref] : [],
  );
}

/** The text of the warning, as `trust` and `show` print it, too. */
export function trifectaText(record: AgentRecord): readonly string[] {
  const found = lethalTrifecta(record);
  if (found === undefined) return [];
  const { privateData, strangers, waysOut } = found;
  return [
    `a text of a stranger (${strangers.join(", ")}) could make it send private data (${privateData.join(", ")}) away: ${waysOut.join(", ")} ` +
      `${waysOut.length === 1 ? "runs" : "run"} without asking; take the allowance out, so that a person sees the call, or take one of the three from it`,
  ];
}
