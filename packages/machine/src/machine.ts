// `Machine`: makes agents of agent files and of external programs, as the user of this machine has set it up.
//
// The tasks of a process are known by their names. Therefore all its agent files share one model loop for
// each folder, and an external agent has one definition for each folder. A session starts only on a machine
// that can run the sandboxes of its agent and of the agents that it may start. An agent that names no sandbox
// has that of the agent which may start it.
//
// `agent-tree.ts` has the rules for the agents below. Nothing here prints or reads a setting: the command
// hands both in.

import {
  environmentCapability,
  environmentsBeside,
  findAgent,
  fullModelName,
  findSkills,
  freeShellProblem,
  hookAgentsOf,
  hookScripts,
  instructionsCapability,
  mcpCapability,
  ModelLoop,
  modelSecrets,
  OutsideRules,
  readHookFiles,
  readProjectInstructions,
  scriptCalls,
  scriptsCapability,
  siblingsCapability,
  skillsCapability,
  skillsLeftOut,
  skillsOf,
  subAgentRecords,
  webCapability,
  withHooks,
  withOwnEnvironments,
  withScriptTools,
  withSkillTool,
  type AgentPlaces,
  type AgentRecord,
  type ProceduralAgentOptions,
  type PlaceSession,
} from "@holdfast/agents";
import { McpServers } from "@holdfast/mcp";
import { defined, HoldfastError, UsageError, type GivenEnvironment } from "@holdfast/core";
import type { Agent } from "@holdfast/runtime";
import { ownSandboxes, Sandboxes } from "@holdfast/workspace";
import { dirname, join } from "node:path";
import { checkTaskNames } from "./agents/agent-tasks.ts";
import { AgentTree, isProcedural, withInactive, type AgentTreeOptions } from "./agents/agent-tree.ts";
import { findModel } from "./find-model.ts";
import type { LocalModel, MachineOptions } from "./machine-options.ts";
import type { MachinePrograms } from "./programs/machine-programs.ts";
import { projectRulesOf } from "./project-rules.ts";
import { finishChild, keepSessionFiles, sessionFolder } from "./session-folder.ts";
import { SessionVariables } from "./agents/session-variables.ts";
import { unusedHooks, unusedRules, unusedSkill } from "./agents/unused-files.ts";

/** The most skills that a note of a start names. */
const LEFT_OUT_NAMED_MAX = 10;

/** The sandbox of agents that name none. */
export interface GivenSandbox {
  readonly name: string;
  /** Nobody chose it: then this says what did, such as "mode local", and errors name a way out. */
  readonly defaultOf?: string;
  /** The variable that names it. */
  readonly variable?: string;
}

export interface FileAgent {
  readonly agent: Agent;
  readonly record: AgentRecord;
  /** Notes for a person: files of the project that a session does not use, and demands that do not count here. */
  readonly notes: readonly string[];
}

export interface LoadOptions extends Omit<AgentTreeOptions, "variables" | "programs"> {
  /**
   * The agent is for a session that has begun. It keeps the skills and variables of its start, whatever
   * happened to their files.
   */
  readonly isContinued?: boolean;
  /** The record that the session began with. Its secrets and its sandbox count, whatever happened to its file. */
  readonly recorded?: () => Promise<Pick<AgentRecord, "name" | "secrets" | "sandbox"> | undefined>;
  /** The environments and variables of the call that starts a session. */
  readonly given?: GivenEnvironment | undefined;
  /** Others start its sessions, and give environments and variables each time. */
  readonly isOffered?: boolean;
  /** The choices of the call, whatever the agent file says. */
  readonly overrides?: Partial<Pick<AgentRecord, "workspace" | "sandbox">>;
  /** The folder that sessions work in. */
  readonly root: string;
  readonly sandbox: GivenSandbox;
  /** The version of the agent, for a file of which several versions are used at once. */
  readonly version?: string;
}

export class Machine {
  readonly #options: MachineOptions;
  readonly #loops = new Map<string, LoopOfRoot>();
  #programs: MachinePrograms | undefined;
  /** The contents of a coordinator, since the first of its agents was made. */
  #pushed: AgentPlaces["pushed"];
  #sandboxes: Sandboxes | undefined;

  constructor(options: MachineOptions) {
    this.#options = options;
  }

  /**
   * The agent of an agent file.
   *
   * @param nameOrPath a path is taken from `cwd`.
   * @throws HoldfastError when there is no such agent, or it cannot be used.
   */
  async agent(
    nameOrPath: string,
    places: AgentPlaces,
    cwd: string,
    options: LoadOptions,
  ): Promise<FileAgent> {
    return this.agentOfRecord(findAgent(nameOrPath, places, cwd), places, options);
  }

  /** @throws HoldfastError when the agent of the record cannot be used here. */
  async agentOfRecord(ofFile: AgentRecord, found: AgentPlaces, options: LoadOptions): Promise<FileAgent> {
    const { isContinued = false, isOffered = false, given, root, sandbox, version } = options;
    this.#pushed ??= found.pushed;
    const record: AgentRecord = { ...ofFile, ...options.overrides };
    const local = await this.#localModelFor(record, found);
    const places = await this.#placesFor(record, found, local);
    const recorded = isContinued ? await options.recorded?.() : undefined;
    const named = recorded?.name === record.name ? recorded.sandbox : record.sandbox;
    const skills = findSkills(places);
    const tree = new AgentTree(places, isContinued ? undefined : skills.map(withInactive), {
      variables: new SessionVariables({
        places,
        given,
        isOffered,
        recorded: isContinued ? (recorded?.secrets ?? []) : undefined,
      }),
      resumesAtReset: options.resumesAtReset ?? false,
      loadTasks: options.loadTasks,
      programs: mayStartOthers(isContinued ? record : withHooks(record, places))
        ? await this.programs()
        : undefined,
    });
    const top = { ...record, sandbox: named ?? sandbox.name };
    tree.refuseCircles(top);
    const agent = await makeAgent(top, this.#loopFor(root, places), tree, version);
    await this.#requireSandboxes(tree.sandboxes, places, named === null ? sandbox : undefined);
    const unused = [
      ...readProjectInstructions(places, root).leftOut,
      ...(record.skills === null ? skills.flatMap(unusedSkill) : []),
      ...readHookFiles(places).flatMap(unusedHooks),
      ...(isContinued ? [] : new OutsideRules(places).changedFiles(record.source.dialect).map(unusedRules)),
    ];
    const notes = [
      ...(local === undefined ? [] : [local.note]),
      ...unused.map(({ path, reason }) => `${path} is not used: ${reason}`),
      ...(record.skills === null && !isContinued ? skillsLeftOut(skills, LEFT_OUT_NAMED_MAX) : []),
      ...tree.demandNotes,
    ];
    return { agent, record, notes };
  }

  /** The agents of external programs. */
  async programs(): Promise<MachinePrograms> {
    const { MachinePrograms: Programs } = await import("./programs/machine-programs.ts");
    return (this.#programs ??= new Programs(this.#options));
  }

  #localModelFor(record: AgentRecord, places: AgentPlaces): Promise<LocalModel | undefined> | undefined {
    return record.model === null && record.script === undefined
      ? this.#options.findLocalModel?.(places)
      : undefined;
  }

  async #placesFor(
    record: AgentRecord,
    found: AgentPlaces,
    local: LocalModel | undefined,
  ): Promise<AgentPlaces> {
    return {
      ...found,
      ...(local === undefined ? {} : { env: local.env }),
      ...(mayHaveServers(record) ? { storedSecrets: await this.#options.secrets(found).names() } : {}),
    };
  }

  #loopFor(root: string, found: AgentPlaces): LoopOfRoot {
    const known = this.#loops.get(root);
    if (known !== undefined) return known;
    // The loop is that of all agents, and may have been made before the first one that was pushed.
    const pushed = () => this.#pushed;
    const places: AgentPlaces = {
      ...found,
      get pushed() {
        return pushed();
      },
    };
    const commandSecrets: string[] = [];
    const serverSecrets: string[] = [];
    const sandboxes = this.#sandboxesFor(places);
    const place: PlaceSession = async (record, task, begin) => {
      const { path, worktree, files } = await sessionFolder(record, root, places, task, begin);
      const address = sandboxes.addressOf(record.sandbox!, {
        session: task.sessionId,
        root: path,
      });
      return {
        address,
        ...defined({ worktree, files }),
      };
    };
    const scripts = { places, workspace: sandboxes.open, secrets: commandSecrets };
    const calls = scriptCalls(scripts);
    const { stored } = this.#options;
    const environment = environmentCapability(environmentsBeside(places.trustFile), stored);
    const loop = new ModelLoop({
      commandSecrets,
      hookScripts: hookScripts(places),
      model: (wanted) => findModel(wanted, places.env),
      workspace: sandboxes.open,
      sessionEnded: (sessionId) => sandboxes.destroyOf(sessionId),
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
            signIns: this.#options.secrets(places),
          }),
          {
            environments: environmentsBeside(places.trustFile),
            secrets: serverSecrets,
            ...defined({ stored }),
          },
        ),
      ],
      projectRules: projectRulesOf(places, this.#options.user),
    });
    const procedural = { calls, environment, workspace: sandboxes.open, place };
    const parts = { loop, commandSecrets, serverSecrets, made: new Map(), procedural };
    this.#loops.set(root, parts);
    return parts;
  }

  #sandboxesFor(places: AgentPlaces): Sandboxes {
    this.#sandboxes ??= new Sandboxes(
      ownSandboxes({
        keys: (name) => this.#options.secrets(places).read(name), // Remote sandboxes have keys.
        testedFile: join(dirname(places.trustFile), "tested-sandboxes.json"),
        commandNamespaces: this.#options.commandNamespaces,
      }),
    );
    return this.#sandboxes;
  }

  /** @throws HoldfastError for a sandbox that is not there, or that this machine cannot run. */
  async #requireSandboxes(
    names: Iterable<string>,
    places: AgentPlaces,
    given: GivenSandbox | undefined,
  ): Promise<void> {
    for (const name of names)
      await this.#sandboxesFor(places)
        .require(name)
        .catch((error: unknown) => {
          throw HoldfastError.is(error) && name === given?.name ? givenRefused(error, given) : error;
        });
  }
}

/** A loop, and the parts of it that agents without a model use, too. */
interface LoopOfRoot {
  readonly loop: ModelLoop;
  /** Names of secrets that its commands may get. It grows as agents are made. */
  readonly commandSecrets: string[];
  /** Names of secrets that its MCP servers may get. It grows as agents are made. */
  readonly serverSecrets: string[];
  /** agent-tree-1. The agents that were made, by their contents. */
  readonly made: Map<string, { readonly agent: Agent; readonly below: readonly Agent[] }>;
  readonly procedural: Pick<ProceduralAgentOptions, "calls" | "environment" | "workspace" | "place">;
}

/** Only such an agent needs the names of external agents. @param record with its hooks. */
function mayStartOthers(record: AgentRecord): boolean {
  return record.agents.length > 0 || subAgentRecords(record).length > 0 || hookAgentsOf(record).length > 0;
}

function mayHaveServers({ mcpServers, tools, agents }: AgentRecord): boolean {
  const isNamed = tools?.some((tool) => tool.startsWith("mcp__")) === true;
  return Object.keys(mcpServers).length > 0 || isNamed || agents.length > 0;
}

/** The error of a default names both ways out, and that of a variable names the variable. */
function givenRefused(error: HoldfastError, { defaultOf, variable }: GivenSandbox): HoldfastError {
  const { code, message, got, expected, fix } = error;
  if (variable !== undefined && code === "agent_invalid")
    return new UsageError(message, {
      at: variable,
      ...defined({ got, expected }),
      fix: "correct the variable, or leave it out for the default",
    });
  if (defaultOf === undefined) return error;
  return new HoldfastError(
    code,
    `${message}. It is the default of ${defaultOf}, and HOLDFAST_SANDBOX names another`,
    {
      fix: `${fix ?? "repair it"}. Or set HOLDFAST_SANDBOX to another one, such as bubblewrap, or filesystem for no isolation`,
    },
  );
}

/** @throws HoldfastError `agent_invalid` for commands that could do what a rule for paths forbids. */
function refuseFreeShell(record: AgentRecord): void {
  const problem = freeShellProblem(record, record.sandbox!);
  if (problem === undefined) return;
  throw new HoldfastError("agent_invalid", `the agent ${record.name} is refused: ${problem}`, {
    at: record.source.path,
    expected: "a sandbox that keeps denied paths from commands, or commands that ask",
    fix: "write `sandbox: bubblewrap` below `holdfast:` in its file, or set HOLDFAST_SANDBOX=bubblewrap",
  });
}

/** @param version that of the first agent, whose file has several versions. */
async function makeAgent(
  given: AgentRecord,
  parts: LoopOfRoot,
  tree: AgentTree,
  version?: string,
  isFirst = true,
): Promise<Agent> {
  const record = tree.places.servesOthers === true ? withOwnEnvironments(given) : given;
  if (tree.skills !== undefined) skillsOf(record, tree.skills, tree.places);
  tree.checkScripts(record);
  const { sandbox, source } = record;
  if (sandbox !== null) tree.sandboxes.add(sandbox);
  refuseFreeShell(record);
  const { loop, procedural } = parts;
  if (isProcedural(record)) {
    parts.commandSecrets.push(...tree.variables.secretsOf(record));
    return definition(parts, record, version, [], () => tree.procedural(record, procedural, version));
  }
  const hooked = tree.withHooks(record);
  // An agent that the file itself defines has the version of the file.
  const versionOf = (child: AgentRecord) => (child.source.path === source.path ? version : undefined);
  const make = (records: readonly AgentRecord[]): Promise<readonly Agent[]> =>
    Promise.all(
      records
        .map((child) => ({ ...child, sandbox: child.sandbox ?? sandbox }))
        .map((child) => tree.once(child, () => makeAgent(child, parts, tree, versionOf(child), false))),
    );
  const children = [
    ...(await make(tree.childrenOf(record, { isFirst }))),
    ...tree.externalsOf(record.agents, loop.root),
    ...(await make(subAgentRecords(record))),
  ];
  const ofHooks = hookAgentsOf(hooked).filter((name) => !record.agents.includes(name));
  const hookAgents = await make(tree.childrenOf({ agents: ofHooks, source }));
  const served = tree.withServers(hooked);
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
    ...tree.variables.startSecretsOf(record),
  ];
  return definition(parts, named, version, [...children, ...hookAgents], () =>
    loop.agent(named, children, {
      hookAgents,
      ownTools,
      optionalSecrets,
      requiredVariables: tree.variables.requiredOf(record),
      othersToStart: () => tree.othersOf(record),
      ...(tree.places.pushed === undefined
        ? {}
        : { starting: () => ({ ...named, hooks: withHooks(record, tree.places).hooks }) }),
      ...defined({ version, refusal: tree.refusals.get(record.name) }),
    }),
  );
}

/** agent-tree-1. The agent that was made of the same contents and of the same agents, or a new one. */
function definition(
  { made }: LoopOfRoot,
  record: AgentRecord,
  version: string | undefined,
  below: readonly Agent[],
  make: () => Agent,
): Agent {
  // A file is the same whether it was named by its path or by the name of its agent.
  const key = JSON.stringify([{ ...record, source: record.source.path }, version]);
  const known = made.get(key);
  const isSame =
    known?.below.length === below.length && known.below.every((agent, at) => agent === below[at]);
  if (known !== undefined && isSame) return known.agent;
  const agent = make();
  made.set(key, { agent, below });
  return agent;
}
