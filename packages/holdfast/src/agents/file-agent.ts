// Makes agents of agent files for the commands that run agents.
//
//   file-agent-1. All agent files of a process share one model loop for each folder, because the tasks of a process are known by their names.
//   file-agent-2. A session starts only on a machine that can run the sandboxes of its agent and of the agents that it may start.
//       An agent that names no sandbox has that of the agent which may start it.

import {
  environmentCapability,
  findAgent,
  fullModelName,
  findScripts,
  findSkills,
  hookAgentsOf,
  hookScripts,
  instructionsCapability,
  listAgents,
  mcpCapability,
  McpServers,
  ModelLoop,
  modelSecrets,
  readHookFiles,
  readProjectInstructions,
  proceduralAgent,
  scriptCalls,
  scriptsCapability,
  scriptsOf,
  siblingsCapability,
  skillsCapability,
  skillsOf,
  subAgentRecords,
  webCapability,
  withHooks,
  withScriptTools,
  withSkillTool,
  type AgentPlaces,
  type AgentRecord,
  type ProceduralAgentOptions,
  type GivenEnvironment,
  type PlaceSession,
  type Script,
  type Skill,
  type Tool,
} from "@holdfast/agents";
import { dirname } from "node:path";
import { HoldfastError } from "@holdfast/core";
import type { Agent, TaskDefinition } from "@holdfast/runtime";
import { checkDemands } from "./checks/agent-demands.ts";
import { environmentsBeside } from "../environments/given-environment.ts";
import { SessionVariables } from "../environments/session-variables.ts";
import { signInStore, storedNames } from "../secrets/sign-in-store.ts";
import { findModel, withLocalModel } from "./local-model.ts";
import { externalAgentOf, externalNames } from "./external-agents.ts";
import { checkTaskNames, taskToolsOf } from "./file-agent-tasks.ts";
import { projectRulesOf } from "./kept-rules.ts";
import { refuseDoubledName } from "./registry/doubled-names.ts";
import { finishChild, keepSessionFiles, sessionFolder } from "./workspaces/session-folder.ts";
import { unusedMode, type Mode } from "../place/mode.ts";
import { requireSandboxes, sandboxesFor } from "./process-sandboxes.ts";
import { findSandbox, makeSandboxRoot } from "./sandbox-settings.ts";
import { unusedHooks, unusedSkill } from "./checks/unused-files.ts";

export interface FileAgent {
  readonly agent: Agent;
  readonly record: AgentRecord;
  /** Notes for a person: files of the project that a session does not use, and demands that do not count here. */
  readonly notes: readonly string[];
}

export interface LoadOptions {
  /** The agent is for a session that has begun. It keeps the skills and variables of its start, whatever happened to their files. */
  readonly isContinued?: boolean;
  /** The record that the session began with. Its secrets and its sandbox count, whatever happened to its file. */
  readonly recorded?: () => Promise<Pick<AgentRecord, "name" | "secrets" | "sandbox"> | undefined>;
  /** The environments and variables of the call that starts a session. */
  readonly given?: GivenEnvironment | undefined;
  /** Sessions that a usage limit pauses continue without a person at its reset, whatever the agent files say. */
  readonly resumesAtReset?: boolean;
  /** The choices of the call, whatever the agent file says. */
  readonly overrides?: Partial<Pick<AgentRecord, "workspace" | "sandbox">>;
  /** The tasks that a file of code exports. It may throw, and may be called twice for one file. */
  readonly loadTasks?: ((file: string) => Promise<readonly TaskDefinition[]>) | undefined;
  /** The mode of a command that takes it as an option. */
  readonly mode?: Mode | undefined;
  /** The version of the agent, for a file of which several versions are used at once. */
  readonly version?: string;
}

/** @throws HoldfastError when there is no such agent, or it cannot be used. */
export async function loadFileAgent(
  nameOrPath: string,
  found: AgentPlaces,
  cwd: string,
  options: LoadOptions = {},
): Promise<FileAgent> {
  return agentOfRecord(findAgent(nameOrPath, found, cwd), found, cwd, options);
}

/** @throws HoldfastError when the agent of the record cannot be used here. */
export async function agentOfRecord(
  ofFile: AgentRecord,
  found: AgentPlaces,
  cwd: string,
  {
    isContinued = false,
    recorded: findRecorded,
    given,
    resumesAtReset = false,
    overrides = {},
    loadTasks,
    mode,
    version,
  }: LoadOptions = {},
): Promise<FileAgent> {
  const record: AgentRecord = { ...ofFile, ...overrides };
  const local =
    record.model === null && record.script === undefined ? await withLocalModel(found) : undefined;
  const places: AgentPlaces = {
    ...found,
    ...(local === undefined ? {} : { env: local.env }),
    ...(mayHaveServers(record)
      ? { storedSecrets: await storedNames(dirname(found.trustFile), found.env) }
      : {}),
  };
  const recorded = isContinued ? await findRecorded?.() : undefined;
  const sandbox = findSandbox({ cwd, env: places.env }, mode);
  const named = recorded?.name === record.name ? (recorded.sandbox ?? OLDER_SANDBOX) : record.sandbox;
  const root = makeSandboxRoot({ cwd, env: places.env });
  const parts = loopFor(root, places, given);
  const skills = findSkills(places);
  const tree = new AgentTree(places, isContinued ? undefined : skills.map(withInactive), {
    variables: new SessionVariables({
      places,
      given,
      recorded: isContinued ? (recorded?.secrets ?? []) : undefined,
    }),
    resumesAtReset,
    loadTasks,
  });
  const agent = await makeAgent({ ...record, sandbox: named ?? sandbox.value }, parts, tree, [], version);
  await requireSandboxes(tree.sandboxes, places, named === null ? sandbox : undefined); // file-agent-2.
  const unused = [
    ...readProjectInstructions(places, root).leftOut,
    ...(record.skills === null ? skills.flatMap(unusedSkill) : []),
    ...readHookFiles(places).flatMap(unusedHooks),
  ];
  const noMode = unusedMode(places);
  const notes = [
    ...(local === undefined ? [] : [local.note]),
    ...(noMode === undefined ? [] : [noMode]),
    ...unused.map(({ path, reason }) => `${path} is not used: ${reason}`),
    ...tree.demandNotes,
  ];
  return { agent, record, notes };
}

function mayHaveServers({ mcpServers, tools, agents }: AgentRecord): boolean {
  const isNamed = tools?.some((tool) => tool.startsWith("mcp__")) === true;
  return Object.keys(mcpServers).length > 0 || isNamed || agents.length > 0;
}

/** An inactive item of a coordinator refuses the start of a session, and not the agent: sessions that exist go on. */
function withInactive<Found extends Skill | Script>(found: Found): Found {
  return found.status === "inactive" ? { ...found, status: "loaded" } : found;
}

/** The sandbox of a session whose record, of an older version, has none. */
const OLDER_SANDBOX = "filesystem";

/** A loop, and the parts of it that agents without a model use, too. */
interface LoopOfRoot {
  readonly loop: ModelLoop;
  /** Names of secrets that its MCP servers may get. It grows as agents are made. */
  readonly serverSecrets: string[];
  readonly procedural: Pick<ProceduralAgentOptions, "calls" | "environment" | "workspace" | "place">;
}

// file-agent-1.
const loops = new Map<string, LoopOfRoot>();

function loopFor(root: string, places: AgentPlaces, given: GivenEnvironment | undefined): LoopOfRoot {
  const known = loops.get(root);
  if (known !== undefined) return known;
  const commandSecrets: string[] = [];
  const serverSecrets: string[] = [];
  const sandboxes = sandboxesFor(places);
  const place: PlaceSession = async (record, task, begin) => {
    const { path, worktree, files } = await sessionFolder(record, root, places, task, begin);
    const address = sandboxes.addressOf(record.sandbox ?? OLDER_SANDBOX, {
      session: task.sessionId,
      root: path,
    });
    return {
      address,
      ...(worktree === undefined ? {} : { worktree }),
      ...(files === undefined ? {} : { files }),
    };
  };
  const scripts = { places, workspace: sandboxes.open, secrets: commandSecrets };
  const calls = scriptCalls(scripts);
  const environment = environmentCapability(environmentsBeside(places.trustFile), given);
  const loop = new ModelLoop({
    commandSecrets,
    hookScripts: hookScripts(places),
    model: (wanted) => findModel(wanted, places.env),
    workspace: sandboxes.open,
    root,
    place,
    keepFiles: (record, task) => keepSessionFiles(record, root, places, task.sessionId),
    finishChild: (record, child) => finishChild(record, child, root, places),
    capabilities: [
      instructionsCapability(places),
      skillsCapability({ places, workspace: sandboxes.open }),
      scriptsCapability(scripts, calls),
      environment,
      siblingsCapability(),
      webCapability(),
      mcpCapability(
        new McpServers({
          variable: (name) => places.env[name],
          signIns: signInStore(dirname(places.trustFile), { env: places.env }),
        }),
        { environments: environmentsBeside(places.trustFile), given, secrets: serverSecrets },
      ),
    ],
    projectRules: projectRulesOf(places),
  });
  const made = { loop, serverSecrets, procedural: { calls, environment, workspace: sandboxes.open, place } };
  loops.set(root, made);
  return made;
}

/** The agents that a file may start and the skills of all of them, looked up once. */
class AgentTree {
  /** `undefined` where skills are not checked. */
  readonly skills: readonly Skill[] | undefined;
  readonly places: AgentPlaces;
  /** Demands that are for runners, where this process is none. */
  readonly demandNotes: string[] = [];
  /** The sandboxes of the agents that were made. */
  readonly sandboxes = new Set<string>();
  readonly variables: SessionVariables;
  readonly #resumesAtReset: boolean;
  readonly #loadTasks: LoadOptions["loadTasks"];
  #records: ReadonlyMap<string, AgentRecord> | undefined;
  #externals: readonly string[] | undefined;

  constructor(
    places: AgentPlaces,
    skills: readonly Skill[] | undefined,
    {
      variables,
      resumesAtReset = false,
      loadTasks,
    }: Pick<LoadOptions, "resumesAtReset" | "loadTasks"> & { readonly variables: SessionVariables },
  ) {
    this.places = places;
    this.skills = skills;
    this.variables = variables;
    this.#resumesAtReset = resumesAtReset;
    this.#loadTasks = loadTasks;
  }

  /** The fields that the call which starts a session sets in place of the agent files. */
  get overrides(): Pick<AgentRecord, "resumeAtReset"> {
    return this.#resumesAtReset ? { resumeAtReset: true } : {};
  }

  /** A session that has begun keeps the hooks of its start. @throws HoldfastError for hooks that cannot be run. */
  withHooks(record: AgentRecord): AgentRecord {
    return this.skills === undefined ? record : withHooks(record, this.places);
  }

  /** A session that has begun keeps the scripts of its start. @throws HoldfastError for one that cannot be used. */
  checkScripts(record: AgentRecord): void {
    if (this.skills === undefined) return;
    const scripts = scriptsOf(record, this.places, () => findScripts(this.places).map(withInactive));
    this.demandNotes.push(...checkDemands(record, scripts, this.places.labels));
  }

  /** A session that has begun keeps the version of its start. @throws HoldfastError for a script that cannot be used. */
  procedural(
    record: AgentRecord & { readonly script: string },
    parts: LoopOfRoot["procedural"],
    version: string | undefined,
  ): Agent {
    const [script] =
      this.skills === undefined
        ? []
        : scriptsOf(record, this.places, () => findScripts(this.places).map(withInactive));
    const secrets = [...new Set([...record.secrets, ...this.variables.secretsOf(record)])];
    return proceduralAgent(
      { ...record, secrets },
      { ...parts, places: this.places, script, ...(version === undefined ? {} : { version }) },
    );
  }

  /** The tasks of the project that are tools of an agent. @throws HoldfastError for a file that may not be loaded. */
  async taskToolsOf(record: Pick<AgentRecord, "tasks" | "source">): Promise<readonly Tool[]> {
    return taskToolsOf(record, this.places, this.#loadTasks);
  }

  childrenOf(
    { agents, source }: Pick<AgentRecord, "agents" | "source">,
    above: readonly string[],
  ): readonly AgentRecord[] {
    if (agents.length === 0) return [];
    // A session that has begun keeps the agents of its start.
    if (this.skills !== undefined)
      for (const name of agents) if (this.#isExternalName(name)) refuseDoubledName(name, this.places);
    this.#records ??= new Map(
      listAgents(this.places).flatMap(({ name, status, record }) =>
        status === "loaded" && record !== null ? [[name, record] as const] : [],
      ),
    );
    const names = agents.includes("*")
      ? [...this.#records.keys()].filter((name) => !above.includes(name))
      : agents.filter((name) => !this.#isExternal(name));
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

  /** The external agents among these names. In a session that has begun, an agent file of the same name counts more. */
  externalsOf(agents: readonly string[], root: string): readonly Agent[] {
    const { env, servesOthers = false } = this.places;
    return [...new Set(agents)]
      .filter((name) => this.#isExternal(name))
      .map((name) => externalAgentOf(name, { cwd: root, env, servesOthers }));
  }

  #isExternal(name: string): boolean {
    return this.#isExternalName(name) && this.#records?.has(name) !== true;
  }

  #isExternalName(name: string): boolean {
    const { project, env } = this.places;
    this.#externals ??= externalNames({ cwd: project, env });
    return this.#externals.includes(name);
  }
}

async function makeAgent(
  record: AgentRecord,
  parts: LoopOfRoot,
  tree: AgentTree,
  above: readonly string[],
  version?: string,
): Promise<Agent> {
  if (tree.skills !== undefined) skillsOf(record, tree.skills, tree.places);
  tree.checkScripts(record);
  const { sandbox } = record;
  if (sandbox !== null) tree.sandboxes.add(sandbox);
  const path = [...above, record.name];
  const { loop, procedural } = parts;
  if (isProcedural(record)) return tree.procedural(record, procedural, version);
  const hooked = tree.withHooks(record);
  // file-agent-2.
  const make = (records: readonly AgentRecord[]): Promise<readonly Agent[]> =>
    Promise.all(
      records.map((child) => makeAgent({ ...child, sandbox: child.sandbox ?? sandbox }, parts, tree, path)),
    );
  const agentsOf = (agents: readonly string[]): Promise<readonly Agent[]> =>
    make(tree.childrenOf({ agents, source: record.source }, path));
  const children = [
    ...(await agentsOf(record.agents)),
    ...tree.externalsOf(record.agents, loop.root),
    ...(await make(subAgentRecords(record))),
  ];
  const hookAgents = await agentsOf(hookAgentsOf(hooked).filter((name) => !record.agents.includes(name)));
  const served = tree.variables.withServers(hooked);
  const serverSecrets = tree.variables.serverSecretsOf(served);
  parts.serverSecrets.push(...serverSecrets);
  const named: AgentRecord = {
    ...withScriptTools(withSkillTool(served)),
    secrets: [...new Set([...record.secrets, ...tree.variables.secretsOf(record), ...serverSecrets])],
    model: record.model === null ? null : fullModelName(record.model),
    fallbackModels: record.fallbackModels.map(fullModelName),
    ...tree.overrides,
  };
  const ownTools = await tree.taskToolsOf(record);
  checkTaskNames(record, ownTools);
  const optionalSecrets = [
    ...modelSecrets(named.model, named.fallbackModels, tree.places.env),
    ...tree.variables.storedSecretsOf(served),
  ];
  return loop.agent(named, children, {
    hookAgents,
    ownTools,
    optionalSecrets,
    ...(version === undefined ? {} : { version }),
  });
}

function isProcedural(record: AgentRecord): record is AgentRecord & { readonly script: string } {
  return record.script !== undefined;
}
