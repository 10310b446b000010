// Makes agents of agent files for the commands that run agents.
//
//   file-agent-1. A field that this version cannot keep refuses the run, so no restriction of a file is dropped.
//   file-agent-2. All agent files of a process share one model loop for each folder, because the tasks of a process are known by their names.
//   file-agent-3. A session starts only on a machine that can run the sandboxes of its agent and of the agents that it may start.
//       An agent that names no sandbox has that of the agent which may start it.

import {
  environmentCapability,
  findAgent,
  fullModelName,
  findSkills,
  instructionsCapability,
  listAgents,
  mcpCapability,
  McpServers,
  ModelLoop,
  readEnvironments,
  readProjectInstructions,
  resolveModel,
  Sandboxes,
  sessionEnvironment,
  skillsCapability,
  skillsOf,
  withMcpServers,
  withSkillTool,
  type AgentPlaces,
  type AgentRecord,
  type GivenEnvironment,
  type ModelEnvironment,
  type ModelProvider,
  type Skill,
} from "@holdfast/agents";
import { dirname } from "node:path";
import { HoldfastError } from "@holdfast/core";
import type { Agent } from "@holdfast/runtime";
import { environmentsBeside } from "../environments/given-environment.ts";

import { signInStore } from "../secrets/sign-in-store.ts";
import { projectRulesOf } from "./kept-rules.ts";
import { DEFAULT_SANDBOX, givenSandbox, makeSandboxRoot } from "./sandbox-settings.ts";

export interface FileAgent {
  readonly agent: Agent;
  readonly record: AgentRecord;
  /** Files of the project that a session of this agent does not use, each with the reason. */
  readonly notes: readonly string[];
}

interface LoadOptions {
  /** The agent is for a session that has begun. It keeps the skills and variables of its start, whatever happened to their files. */
  readonly isContinued?: boolean;
  /** The environments and variables of the call that starts a session. */
  readonly given?: GivenEnvironment | undefined;
}

/** @throws HoldfastError when there is no such agent, or it cannot be used. */
export async function loadFileAgent(
  nameOrPath: string,
  places: AgentPlaces,
  cwd: string,
  { isContinued = false, given }: LoadOptions = {},
): Promise<FileAgent> {
  const record = findAgent(nameOrPath, places, cwd);
  const sandbox = givenSandbox(places)?.value ?? DEFAULT_SANDBOX;
  const root = makeSandboxRoot({ cwd, env: places.env });
  const loop = loopFor(root, places, given);
  const skills = findSkills(places);
  const tree = new AgentTree(places, isContinued ? undefined : skills, given);
  const agent = makeAgent({ ...record, sandbox: record.sandbox ?? sandbox }, loop, tree, []);
  for (const name of tree.sandboxes) await sandboxes.require(name); // file-agent-3.
  const unused = [
    ...readProjectInstructions(places, root).leftOut,
    ...(record.skills === null ? skills.flatMap(unusedSkill) : []),
  ];
  const notes = unused.map(({ path, reason }) => `${path} is not used: ${reason}`);
  return { agent, record, notes };
}

function unusedSkill({ path, name, status }: Skill): readonly { path: string; reason: string }[] {
  switch (status) {
    case "loaded":
    case "hidden":
      return [];
    case "refused":
      return [{ path, reason: `run \`holdfast skill show ${name}\` to see why it is refused` }];
    case "untrusted":
      return [
        { path, reason: "you have not trusted this project; read it, and then run `holdfast agents trust`" },
      ];
    case "unapproved":
      return [
        {
          path,
          reason: `you have not approved its content; read it, and then run \`holdfast skill approve ${name}\``,
        },
      ];
  }
}

const sandboxes = new Sandboxes();

// file-agent-2.
const loops = new Map<string, ModelLoop>();

function loopFor(root: string, places: AgentPlaces, given: GivenEnvironment | undefined): ModelLoop {
  const known = loops.get(root);
  if (known !== undefined) return known;
  const loop = new ModelLoop({
    model: (wanted) => findModel(wanted, places.env),
    workspace: sandboxes.open,
    root,
    address: ({ sandbox }, session) => sandboxes.addressOf(sandbox ?? DEFAULT_SANDBOX, { session, root }),
    capabilities: [
      instructionsCapability(places),
      skillsCapability({ places, workspace: sandboxes.open }),
      environmentCapability(environmentsBeside(places.trustFile), given),
      mcpCapability(
        new McpServers({
          variable: (name) => places.env[name],
          signIns: signInStore(dirname(places.trustFile), { env: places.env }),
        }),
      ),
    ],
    projectRules: projectRulesOf(places),
  });
  loops.set(root, loop);
  return loop;
}

/** The agents that a file may start and the skills of all of them, looked up once. */
class AgentTree {
  /** `undefined` where skills are not checked. */
  readonly skills: readonly Skill[] | undefined;
  readonly #places: AgentPlaces;
  /** The sandboxes of the agents that were made. */
  readonly sandboxes = new Set<string>();
  readonly #given: GivenEnvironment | undefined;
  #records: ReadonlyMap<string, AgentRecord> | undefined;

  constructor(
    places: AgentPlaces,
    skills: readonly Skill[] | undefined,
    given: GivenEnvironment | undefined,
  ) {
    this.#places = places;
    this.skills = skills;
    this.#given = given;
  }

  /** The names of the secrets that its commands get. @throws HoldfastError for a missing key, unless the session has begun. */
  secretsOf(record: AgentRecord): readonly string[] {
    const environments = readEnvironments(environmentsBeside(this.#places.trustFile));
    try {
      return sessionEnvironment(record, environments, this.#given).secrets;
    } catch (error) {
      if (this.skills !== undefined) throw error;
      return [];
    }
  }

  /** A session that has begun keeps the servers of its start. */
  withServers(record: AgentRecord): AgentRecord {
    return this.skills === undefined ? record : withMcpServers(record, this.#places);
  }

  childrenOf({ agents, source }: AgentRecord, above: readonly string[]): readonly AgentRecord[] {
    if (agents.length === 0) return [];
    this.#records ??= new Map(
      listAgents(this.#places).flatMap(({ name, status, record }) =>
        status === "loaded" && record !== null ? [[name, record] as const] : [],
      ),
    );
    const names = agents.includes("*")
      ? [...this.#records.keys()].filter((name) => !above.includes(name))
      : agents;
    return names.map((name) => {
      const record = this.#records?.get(name);
      if (record !== undefined && !above.includes(name)) return record;
      throw new HoldfastError(
        "agent_invalid",
        record === undefined
          ? `the agent may start "${name}", and no agent file has this name`
          : `agents start each other without end: ${[...above, name].join(" → ")}`,
        { at: source.path, fix: "correct the agents of this file; `holdfast agents list` shows all agents" },
      );
    });
  }
}

function makeAgent(record: AgentRecord, loop: ModelLoop, tree: AgentTree, above: readonly string[]): Agent {
  refuseUnsupported(record);
  if (tree.skills !== undefined) skillsOf(record, tree.skills);
  const { sandbox } = record;
  if (sandbox !== null) tree.sandboxes.add(sandbox);
  const path = [...above, record.name];
  const children = tree
    .childrenOf(record, path)
    .map((child) => makeAgent({ ...child, sandbox: child.sandbox ?? sandbox }, loop, tree, path)); // file-agent-3.
  const named: AgentRecord = {
    ...withSkillTool(tree.withServers(record)),
    secrets: [...new Set([...record.secrets, ...tree.secretsOf(record)])],
    model: record.model === null ? null : fullModelName(record.model),
    fallbackModels: record.fallbackModels.map(fullModelName),
  };
  return loop.agent(named, children);
}

/** file-agent-1. */
function refuseUnsupported(record: AgentRecord): void {
  const fields = [
    [`a workspace of its own (${record.workspace})`, record.workspace !== "shared"],
    ["effect classes of tools", Object.keys(record.effects).length > 0],
  ] as const;
  const wanted = fields.filter(([, isWanted]) => isWanted).map(([name]) => name);
  if (wanted.length === 0) return;
  throw new HoldfastError(
    "agent_invalid",
    `agent "${record.name}" asks for ${wanted.join(", ")}, which this version cannot give it`,
    { at: record.source.path, fix: "take these fields out of a copy of the file, and run the copy" },
  );
}

/** @param wanted the full name of a model; `undefined` for the one that the environment chooses. */
function findModel(wanted: string | undefined, env: ModelEnvironment): ModelProvider {
  const isScripted = wanted?.startsWith("scripted/") === true;
  const model = resolveModel(
    wanted === undefined || isScripted ? env : { ...env, HOLDFAST_MODEL: fullModelName(wanted) },
  );
  if (model !== undefined && (!isScripted || model.isScripted)) return model;
  const works = wanted === undefined ? "" : ` (the session works with ${wanted})`;
  // A failed task records the message alone, so the message says what to do.
  throw new HoldfastError(
    "model_auth",
    `no model is configured${works}: set ANTHROPIC_API_KEY, OPENAI_API_KEY, or for a server such as Ollama OPENAI_BASE_URL and HOLDFAST_MODEL`,
  );
}
