// Makes agents of agent files for the commands that run agents.
//
//   file-agent-1. All agent files of a process share one model loop for each folder, because the tasks of a process are known by their names.
//   file-agent-2. A session starts only on a machine that can run the sandboxes of its agent and of the agents that it may start.
//       An agent that names no sandbox has that of the agent which may start it.
//
// `file-agent-tree.ts` has the rules for the agents below.

import {
  environmentCapability,
  findAgent,
  fullModelName,
  findSkills,
  freeShellProblem,
  hookAgentsOf,
  hookScripts,
  instructionsCapability,
  mcpCapability,
  McpServers,
  ModelLoop,
  modelSecrets,
  readHookFiles,
  readProjectInstructions,
  scriptCalls,
  scriptsCapability,
  siblingsCapability,
  skillsCapability,
  skillsOf,
  subAgentRecords,
  webCapability,
  withScriptTools,
  withSkillTool,
  type AgentPlaces,
  type AgentRecord,
  type ProceduralAgentOptions,
  type GivenEnvironment,
  type PlaceSession,
} from "@holdfast/agents";
import { dirname } from "node:path";
import { HoldfastError } from "@holdfast/core";
import type { Agent } from "@holdfast/runtime";
import { environmentsBeside } from "../environments/given-environment.ts";
import { SessionVariables } from "../environments/session-variables.ts";
import { signInStore, storedNames } from "../secrets/sign-in-store.ts";
import { findModel, withLocalModel } from "./loading/local-model.ts";
import { checkTaskNames } from "./loading/file-agent-tasks.ts";
import { AgentTree, isProcedural, withInactive, type AgentTreeOptions } from "./loading/file-agent-tree.ts";
import { projectRulesOf } from "./kept-rules.ts";
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

export interface LoadOptions extends Omit<AgentTreeOptions, "variables"> {
  /** The agent is for a session that has begun. It keeps the skills and variables of its start, whatever happened to their files. */
  readonly isContinued?: boolean;
  /** The record that the session began with. Its secrets and its sandbox count, whatever happened to its file. */
  readonly recorded?: () => Promise<Pick<AgentRecord, "name" | "secrets" | "sandbox"> | undefined>;
  /** The environments and variables of the call that starts a session. */
  readonly given?: GivenEnvironment | undefined;
  /** The choices of the call, whatever the agent file says. */
  readonly overrides?: Partial<Pick<AgentRecord, "workspace" | "sandbox">>;
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
  const named = recorded?.name === record.name ? recorded.sandbox : record.sandbox;
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
  const top = { ...record, sandbox: named ?? sandbox.value };
  tree.refuseCircles(top);
  const agent = await makeAgent(top, parts, tree, version);
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

/** A loop, and the parts of it that agents without a model use, too. */
interface LoopOfRoot {
  readonly loop: ModelLoop;
  /** Names of secrets that its MCP servers may get. It grows as agents are made. */
  readonly serverSecrets: string[];
  /** file-agent-tree-1. The agents that were made, by their contents. */
  readonly made: Map<string, { readonly agent: Agent; readonly below: readonly Agent[] }>;
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
    const address = sandboxes.addressOf(record.sandbox!, {
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
  const procedural = { calls, environment, workspace: sandboxes.open, place };
  const parts = { loop, serverSecrets, made: new Map(), procedural };
  loops.set(root, parts);
  return parts;
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
  record: AgentRecord,
  parts: LoopOfRoot,
  tree: AgentTree,
  version?: string,
  isFirst = true,
): Promise<Agent> {
  if (tree.skills !== undefined) skillsOf(record, tree.skills, tree.places);
  tree.checkScripts(record);
  const { sandbox, source } = record;
  if (sandbox !== null) tree.sandboxes.add(sandbox);
  refuseFreeShell(record);
  const { loop, procedural } = parts;
  if (isProcedural(record))
    return definition(parts, record, version, [], () => tree.procedural(record, procedural, version));
  const hooked = tree.withHooks(record);
  const make = (records: readonly AgentRecord[]): Promise<readonly Agent[]> =>
    Promise.all(
      records
        .map((child) => ({ ...child, sandbox: child.sandbox ?? sandbox })) // file-agent-2.
        .map((child) => tree.once(child, () => makeAgent(child, parts, tree, undefined, false))),
    );
  const children = [
    ...(await make(tree.childrenOf(record, { isFirst }))),
    ...tree.externalsOf(record.agents, loop.root),
    ...(await make(subAgentRecords(record))),
  ];
  const ofHooks = hookAgentsOf(hooked).filter((name) => !record.agents.includes(name));
  const hookAgents = await make(tree.childrenOf({ agents: ofHooks, source }));
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
  return definition(parts, named, version, [...children, ...hookAgents], () =>
    loop.agent(named, children, {
      hookAgents,
      ownTools,
      optionalSecrets,
      ...(version === undefined ? {} : { version }),
    }),
  );
}

/** file-agent-tree-1. The agent that was made of the same contents and of the same agents, or a new one. */
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
