// `ModelLoop` makes agents of records: a model that works with tools until the request is answered.
//
//   request ─► (model call → tool calls → results)* ─► answer ─► a conversation waits for the next request, another agent ends
//
// The agent has the turn form and uses the public SDK alone. A turn is one model call with the tool calls it
// asks for and their results, and ends with a checkpoint.
//
//   - Every model call and every tool call is a durable task. The conversation is kept in entries and handed
//     to the model by reference.
//   - A session continues with the record and the workspace of its start, whatever happens to the files.
//   - Nothing is changed without permission: a rule allows the call, or a person answers the question.
//   - Every call of a tool gets a result. A call that was cut off by a crash gets one that says so.
//   - A limit that is reached is a question to a person. The session's budget limits the cost.

import { defined, type HoldfastError, type Json, type StandardSchemaV1 } from "@holdfast/core";
import { defineAgent, type Agent, type TaskContext, type TaskDefinition } from "@holdfast/runtime";
import { type OptionalSecrets } from "@holdfast/system";
import { z } from "zod";

import type { AgentRecord } from "../record/agent-record.ts";
import { modelTask, type ModelSource } from "../models/model-task.ts";
import type { SessionEnded } from "../tasks/workspace-task.ts";
import { defineWorkspaceTasks, type WorkspaceTasks } from "../tasks/workspace-tasks.ts";
import { type FileSnapshot, ownSandbox } from "@holdfast/workspace";
import { pickWorkspace, type WorkspaceSource } from "../tasks/workspace-source.ts";
import { contextLimit, conversationTail, earlierResult } from "./compaction/boundary-tasks.ts";
import { windowOf } from "./compaction/context-size.ts";
import { readResult } from "./compaction/read-result.ts";
import {
  moveCapabilities,
  prepareCapabilities,
  type AnyCapability,
  type StartedSession,
} from "./capability.ts";
import { standardSchema } from "./json-schema.ts";
import {
  delegate,
  delegateFacts,
  finishChildTask,
  type Delegate,
  type FinishChild,
} from "./tools/delegate.ts";
import { askUser, proposePlan, todo } from "./tools/loop-tools.ts";
import { hookTask, type HookScripts } from "./hooks/hook-task.ts";
import type { ProjectRules } from "../permissions/ask-permission.ts";
import { FIRST_STATE, type ModelState, type SessionFiles } from "./model-state.ts";
import { ModelTurn } from "./turn/model-turn.ts";
import type { KeepFiles, LoopParts, OpenedFork, Prepared } from "./turn/turn-draft.ts";
import type { Tool } from "./tools/tool.ts";
import { maskOf } from "../permissions/permissions.ts";
import { readWorkspaceFacts } from "./workspace-facts.ts";
import { workspaceTools } from "./tools/workspace-tools.ts";

/** Options of `new ModelLoop`. */
export interface ModelLoopOptions {
  /** Finds the provider of a model by its name, `provider/model` or an alias. */
  readonly model: ModelSource;
  /** Opens the workspace of a session by the path of its root. */
  readonly workspace: WorkspaceSource;
  /** The root of the workspace of sessions that start here. */
  readonly root: string;
  /**
   * The workspace of a session that starts here; the one of the root by default. It is called in a task, and
   * again after a crash.
   */
  readonly place?: PlaceSession;
  /** Keeps the files of a session's own workspace. It is called in a task of that session, and again after a crash. */
  readonly keepFiles?: KeepFiles;
  /**
   * Tells the model of a parent what became of the workspace of a child that has ended; `null` when there is
   * nothing to say. It is called in a task of the parent, and again after a crash.
   */
  readonly finishChild?: (
    record: Pick<AgentRecord, "name" | "workspace">,
    child: string,
  ) => Promise<string | null>;
  /** Removes what a session that has ended leaves outside of its folder, such as its sandbox. */
  readonly sessionEnded?: SessionEnded;
  /** Tools beside the built-in ones. */
  readonly tools?: readonly Tool[];
  /** Sources of further instructions and tools of a session. Their parts of the prompt stand in this order. */
  readonly capabilities?: readonly AnyCapability[];
  /** Runs the scripts of hooks. */
  readonly hookScripts?: HookScripts;
  /** Gets the names of the secrets that commands of its agents may get, as its agents are made. */
  readonly commandSecrets?: string[];
  /** The rules that the user keeps for the project. Without them an answer for a project counts for its session. */
  readonly projectRules?: ProjectRules;
  /** The tokens that a model reads and writes in one call; from the table of prices by default. */
  readonly contextWindow?: (model: string | null) => number;
}

/**
 * @param begin the files that the workspace of a fork begins with.
 * @param input the input of the session, for agents whose input names the folder.
 */
export type PlaceSession = (
  record: AgentRecord,
  task: TaskContext,
  begin?: FileSnapshot,
  input?: unknown,
) => Promise<SessionPlace>;

/** The parts of an agent that its record does not have. */
export interface AgentParts {
  /** The agents of its hooks. */
  readonly hookAgents?: readonly Agent[];
  /** Agents that it may start besides, and that others make. Asked at the start of each session. */
  readonly othersToStart?: () => readonly Delegate[];
  /** The record of a session that starts now: that of the agent by default. May throw. */
  readonly starting?: () => AgentRecord;
  /** Tools of this agent beside those of the loop. */
  readonly ownTools?: readonly Tool[];
  /** The keys of its models, and other secrets that it can start without. */
  readonly optionalSecrets?: readonly OptionalSecrets[];
  /** Names of the variables that each start gives. */
  readonly requiredVariables?: readonly string[];
  /** By default the version of the loop and not of the record: a session has the record of its start in its state. */
  readonly version?: string;
  /** Why no session can begin with the record. Sessions that have begun go on. */
  readonly refusal?: HoldfastError;
}

/** The workspace of one session. */
export interface SessionPlace {
  /** The name of the workspace, as task inputs carry it. */
  readonly address: string;
  /** The folder that stands for the project, when the session works in a worktree of it. */
  readonly worktree?: string;
  /** The files that it has now, when no other session works in it. */
  readonly files?: FileSnapshot;
}

/** The pattern is also part of the JSON Schema, by which a coordinator checks inputs. */
const text = z.string().regex(/\S/).trim();
const textInput = z.union(
  [
    text,
    z.looseObject({ text }),
    z.looseObject({ prompt: text }),
    z.looseObject({ hook: text, session_id: text }), // The event of a hook that is an agent.
  ],
  { error: "expected a text, or an object with `text`" },
);

/** Makes agents of records. The agents of one loop share their tasks, so one process can hold all of them. */
export class ModelLoop {
  readonly #options: ModelLoopOptions;
  readonly #model: ReturnType<typeof modelTask>;
  readonly #hook: ReturnType<typeof hookTask>;
  readonly #workspaceTasks: WorkspaceTasks;
  readonly #tools: readonly Tool[];
  readonly #finishChild: FinishChild | undefined;
  /** The records of the agents that were made here. */
  readonly #records = new Map<Agent, AgentRecord>();
  /** Names of secrets that commands of its agents may get. */
  readonly #shellSecrets: string[];

  /** The root of the workspaces of its sessions. */
  get root(): string {
    return this.#options.root;
  }

  constructor(options: ModelLoopOptions) {
    this.#options = options;
    this.#shellSecrets = options.commandSecrets ?? [];
    this.#model = modelTask(options.model);
    this.#hook = hookTask(options.workspace, options.hookScripts);
    this.#workspaceTasks = defineWorkspaceTasks(options.workspace, this.#shellSecrets, options.sessionEnded);
    const { tools = [], finishChild } = options;
    this.#finishChild =
      finishChild === undefined
        ? undefined
        : finishChildTask(({ agent: name, session, workspace: asked }) => {
            const record = [...this.#records.values()].find((one) => one.name === name);
            // An external agent is looked at only where its input asked for a folder of its own.
            return finishChild(record ?? { name, workspace: asked ?? "worktree" }, session);
          });
    this.#tools = [...workspaceTools(this.#workspaceTasks), askUser, todo, proposePlan, readResult, ...tools];
  }

  /**
   * Make an agent of a record. Its input is a text, or what its input schema asks for.
   *
   * The types are those of the caller. The schemas of the record check input and output, and the compiler
   * knows neither.
   *
   * @param agents the agents that its tool `delegate` may start.
   */
  agent<Input = unknown, Output = Json>(
    record: AgentRecord,
    agents: readonly Agent[] = [],
    {
      hookAgents = [],
      othersToStart = () => [],
      starting = () => record,
      ownTools = [],
      optionalSecrets = [],
      requiredVariables = [],
      version = "1",
      refusal,
    }: AgentParts = {},
  ): Agent<Input, Output> {
    const { capabilities = [], projectRules, keepFiles } = this.#options;
    const { secrets, variables } = record;
    this.#shellSecrets.push(...secrets.filter((name) => variables.includes(name)));
    const startable = (): readonly Delegate[] => [
      ...agents.map((agent) => ({
        name: agent.name,
        description: agent.description,
        agent,
        record: this.#records.get(agent),
      })),
      ...othersToStart(),
    ];
    const known = startable();
    const finish = known.length === 0 ? undefined : this.#finishChild;
    const tools = [...this.#tools, ...(known.length === 0 ? [] : [delegate(known, finish)]), ...ownTools];
    const prepare = async (task: TaskContext, session: StartedSession) => {
      if (refusal !== undefined) throw refusal;
      const prepared = await this.#prepare(starting(), tools, task, session);
      return { ...prepared, facts: { ...prepared.facts, ...delegateFacts(record, startable()) } };
    };
    const parts: LoopParts = {
      model: this.#model,
      hook: this.#hook,
      tools,
      capabilities,
      prepare,
      openFork: (...fork) => this.#openFork(...fork),
      keepFiles,
      projectRules,
      contextWindow: this.#options.contextWindow ?? windowOf,
    };
    const input: StandardSchemaV1<unknown, unknown> =
      record.inputSchema === null ? textInput : standardSchema(record.inputSchema);
    const made = defineAgent<unknown, Json, ModelState>({
      name: record.name,
      version,
      description: record.description,
      tags: record.tags,
      budget: record.budget ?? undefined,
      requiredVariables,
      input,
      tasks: [
        this.#model,
        conversationTail,
        earlierResult,
        contextLimit,
        this.#hook,
        ...Object.values(this.#workspaceTasks),
        ...(finish === undefined ? [] : [finish]),
        ...tools.flatMap(({ task }) => task ?? []),
        ...capabilities.flatMap((capability) => capability.tasks ?? []),
      ] as readonly TaskDefinition[],
      agents: [...agents, ...hookAgents],
      secrets: record.secrets,
      optionalSecrets,
      state: { version: 1, initial: () => FIRST_STATE },
      limitsTurns: true, // A limit that is reached is a question to a person.
      turn: (ctx, state) => new ModelTurn(ctx, state, parts).take(),
    });
    this.#records.set(made, record);
    return made as unknown as Agent<Input, Output>;
  }

  async #prepare(
    agent: AgentRecord,
    tools: readonly Tool[],
    task: TaskContext,
    { input, environment }: StartedSession,
  ): Promise<Prepared> {
    const { capabilities = [], projectRules } = this.#options;
    const { workspace, files } = await this.#open(agent, task, input);
    const session = { agent, workspace, input, environment };
    const facts = await prepareCapabilities(capabilities, session, task, tools);
    return { agent, workspace, files, facts, rules: projectRules?.read() ?? [] };
  }

  /** Opens the workspace of a fork, with the files of the snapshot in its state. */
  async #openFork(
    agent: AgentRecord,
    { facts, files }: Pick<ModelState, "facts" | "files">,
    task: TaskContext,
    input: unknown,
  ): Promise<OpenedFork> {
    const opened = await this.#open(agent, task, input, files ?? undefined);
    const { capabilities = [] } = this.#options;
    return {
      ...opened,
      facts: await moveCapabilities(capabilities, facts, { agent, workspace: opened.workspace }),
    };
  }

  async #open(
    agent: AgentRecord,
    task: TaskContext,
    input: unknown,
    begin?: SessionFiles,
  ): Promise<Pick<Prepared, "workspace" | "files">> {
    const { workspace: source, root, place } = this.#options;
    const { address, worktree, files } = (await place?.(agent, task, begin, input)) ?? { address: root };
    const opened = await pickWorkspace(source, address);
    const found = await readWorkspaceFacts(opened, address, task.signal);
    const mask = ownSandbox(opened.sandbox)?.masksPaths === true ? maskOf(agent.permissions) : undefined;
    return {
      workspace: {
        ...found,
        ...defined({ worktree, mask }),
      },
      files:
        files === undefined
          ? null
          : { ...files, session: task.sessionId, staleBecause: begin?.staleBecause ?? null },
    };
  }
}
