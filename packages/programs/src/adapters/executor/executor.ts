// `Executor`: the adapter of an executor, a program in any language that speaks a small protocol.
// `executorAgent` makes an agent of it.
//
//   - A persistent process is kept for a while between two turns (warm). After that, and at another runner,
//     the next turn starts a process with `mode: "resume"` (cold). A session has at most one process on a
//     machine.
//   - The schema of an executor is asked for once (`--schema`).
//   - Nothing starts that the policy of the machine forbids.
//   executor-4. The answer of a turn is the reported result, or the last message, or what a one-shot program
//       wrote to its standard output. A turn without any of them has failed.

import type { Agent } from "@holdfast/runtime";
import { namedProviders, type NetworkPolicy } from "@holdfast/runtime/gateway";
import { scrubEnvironment, type Environment } from "@holdfast/system";
import { endTagged, ProcessSupervisor } from "@holdfast/system/processes";

import { externalAgent } from "../../session/external-agent.ts";
import type {
  ExternalAgentCapabilities,
  ExternalAgentProtocol,
  ExternalTurn,
  RuledCall,
} from "../../session/external-agent-protocol.ts";
import { isFields, textOr, type Fields } from "../../session/fields.ts";
import { requireFolder } from "../../session/intent/prepare-session.ts";
import { TAKES_NO_MESSAGE } from "../../session/program/agent-turn.ts";
import { KeptPrograms } from "../../session/program/kept-programs.ts";
import { resolveBlueprint, type BlueprintValues } from "./blueprint.ts";
import { ExecutorProcess, type ProcessOptions } from "./executor-process.ts";
import { ExecutorTurn } from "./executor-turn.ts";
import {
  folderOf,
  invocationOf,
  newestVersionIn,
  parametersOf,
  promptOf,
  readRequest,
  type SchemaVersion,
} from "./invocation.ts";
import { secretsOf, type ExecutorProfile } from "./profile.ts";

/** The output of a session of an executor. */
export interface ExecutorResult {
  readonly result_text: string | null;
  readonly result_data: unknown;
}

/** A profile with the command that may run, and the environment from which its processes get a part. */
export interface AllowedExecutor {
  readonly profile: ExecutorProfile;
  readonly environment: Environment;
}

/** The limits that the owner of a machine sets executors. */
export interface ExecutorPolicy {
  /** Hosts that they may connect to. */
  readonly network: NetworkPolicy;
  /**
   * Accepts an executor before there is a session of it.
   *
   * @throws HoldfastError `policy_denied`
   */
  add(executor: AllowedExecutor): void;
  /**
   * The executor as it may run in a folder.
   *
   * @throws HoldfastError `policy_denied`
   */
  allow(executor: AllowedExecutor, folder: string): AllowedExecutor;
}

/** Options of `new Executor`. */
export interface ExecutorOptions {
  readonly profile: ExecutorProfile;
  /** The environment of this process; executors get only PATH, HOME, LANG, TERM and TMPDIR of it. */
  readonly environment: Environment;
  /** Where it works when its session names no folder. */
  readonly projectDir: string;
  /** Without a policy only the network is closed. */
  readonly policy?: ExecutorPolicy;
  /**
   * Finds the blueprint of the agent that a session names by `agent_name`, for each of its turns. Without it
   * the executor gets the name alone.
   *
   * @throws HoldfastError for an agent that is not there, or that executors cannot be.
   */
  readonly blueprint?: (name: string) => Fields | Promise<Fields>;
  /** How long a persistent process waits for its next turn. 30,000 milliseconds by default. */
  readonly warmMs?: number;
  /** How long a process may take to end after it was asked to, and again after SIGTERM. 5,000 milliseconds by default. */
  readonly stopStepMs?: number;
  /** Called when a turn begins. Must not throw. */
  readonly onTurn?: (turn: {
    readonly sessionId: string;
    readonly agent: string;
    readonly mode: string;
  }) => void;
}

const WARM_MS = 30_000;
const SCHEMA_MS = 5_000;
const OPEN: ExecutorPolicy = { network: { allow: [] }, add: () => {}, allow: (executor) => executor };

/**
 * An executor of this machine, for `executorAgent`: a program in any language that speaks the protocol of
 * `docs/executors.md`. It keeps the processes of its sessions between their turns, until `close`.
 */
export class Executor implements ExternalAgentProtocol {
  readonly name: string;
  readonly secrets: readonly string[];
  readonly profile: ExecutorProfile;
  readonly projectDir: string;
  readonly readRequest = readRequest;
  readonly #options: ExecutorOptions;
  readonly #policy: ExecutorPolicy;
  readonly #supervisor: ProcessSupervisor;
  readonly #warm = new KeptPrograms<ExecutorProcess>();
  #version: Promise<SchemaVersion> | undefined;

  /** @throws HoldfastError `policy_denied`, UsageError for a provider whose configured address is not safe. */
  constructor(options: ExecutorOptions) {
    const { profile, environment, projectDir, policy = OPEN } = options;
    this.name = profile.name;
    this.secrets = secretsOf(profile);
    this.profile = profile;
    this.projectDir = projectDir;
    this.#options = options;
    this.#policy = policy;
    this.#supervisor = new ProcessSupervisor({ environment, namespaces: "if_available" });
    namedProviders(profile.providers, environment, () => "");
    policy.add({ profile, environment });
  }

  capabilities(): ExternalAgentCapabilities {
    return { ...TAKES_NO_MESSAGE, resume: "id", receipts: "none" };
  }

  /** Runs nothing: only a turn has a folder, in which the policy allows the program or not. */
  find(): Promise<{ readonly program: string; readonly version: string }> {
    const { schemaVersion = "unknown" } = this.profile;
    return Promise.resolve({ program: this.locate(), version: schemaVersion });
  }

  locate(): string {
    return this.profile.command[0];
  }

  start(turn: ExternalTurn): Promise<ExecutorTurn> {
    return this.#begin("start", turn);
  }

  sendMessage(turn: ExternalTurn): Promise<ExecutorTurn> {
    return this.#begin("resume", turn);
  }

  resume(turn: ExternalTurn): Promise<ExecutorTurn> {
    return this.#begin("resume", turn);
  }

  /** Executors ask for no permissions. */
  ruledCall({ tool }: { readonly tool: string }): RuledCall {
    return { tool, subjectKind: "text", subject: null };
  }

  async endLost(tag: string): Promise<void> {
    if (!this.#warm.has(tag)) await endTagged(tag);
  }

  endWaiting(tag: string): Promise<void> {
    return this.#warm.end(tag, "its session needs it no more");
  }

  /** The schema version that the executor is invoked with. */
  version({ profile, environment }: AllowedExecutor = this.#options): Promise<SchemaVersion> {
    const { schemaVersion } = profile;
    if (schemaVersion !== undefined) return Promise.resolve(schemaVersion);
    return (this.#version ??= this.#ask(profile.command, environment));
  }

  /** Takes the process that waits for the next turn of a session. */
  takeWarm(tag: string): ExecutorProcess | undefined {
    return this.#warm.take(tag);
  }

  /** Ends all processes. */
  async close(): Promise<void> {
    await this.#warm.close("the runner is closing");
    await this.#supervisor.close("the runner is closing");
  }

  async #begin(mode: "start" | "resume", turn: ExternalTurn): Promise<ExecutorTurn> {
    const folder = folderOf(turn.intent, this.projectDir);
    requireFolder(folder);
    const { environment } = this.#options;
    const allowed = this.#policy.allow({ profile: this.profile, environment }, folder);
    const { sessionId } = turn.task;
    const agent = textOr(turn.intent.sessionFields?.["agent_name"], this.name);
    this.#options.onTurn?.({ sessionId, agent, mode });
    const served = new ExecutorTurn(this.profile, turn, folder);
    const process = await this.#processFor(mode, served, allowed);
    served.work(process, (whole) => this.keepWarm(turn.tag, whole));
    return served;
  }

  async #processFor(
    mode: "start" | "resume",
    served: ExecutorTurn,
    { profile, environment }: AllowedExecutor,
  ): Promise<ExecutorProcess> {
    const { turn, projectDir: cwd } = served;
    const warm = this.takeWarm(turn.tag);
    const parameters = parametersOf(turn);
    const fields = { prompt: promptOf(parameters), parameters };
    if (warm !== undefined && (await warm.nextTurn(served, fields))) return warm;
    await warm?.stop("it no longer reads its input");
    const options: ProcessOptions = {
      profile,
      supervisor: this.#supervisor,
      environment,
      cwd,
      network: this.#policy.network,
      stopStepMs: this.#options.stopStepMs,
    };
    const version = await this.version({ profile, environment });
    const blueprint = await this.#blueprintOf(turn);
    return ExecutorProcess.start(options, turn, served, (variables) => {
      const invocation = invocationOf(version, mode, turn, cwd, profile.config);
      return blueprint === undefined
        ? invocation
        : { ...invocation, agent_blueprint: resolveBlueprint(blueprint, valuesOf(served, variables)) };
    });
  }

  /** The blueprint that the session brings, or that of the agent that it names. */
  async #blueprintOf({ intent }: ExternalTurn): Promise<Fields | undefined> {
    const { agent_blueprint: given, agent_name: name } = intent.sessionFields ?? {};
    if (isFields(given)) return given;
    return typeof name === "string" ? this.#options.blueprint?.(name) : undefined;
  }

  /** Lets a process wait for the next turn of a session. */
  keepWarm(tag: string, process: ExecutorProcess): void {
    this.#warm.keep(tag, process, this.#options.warmMs ?? WARM_MS);
  }

  async #ask(command: ExecutorProfile["command"], environment: Environment): Promise<SchemaVersion> {
    const asked = await this.#supervisor.start({
      argv: [...command, "--schema"],
      cwd: this.projectDir,
      env: scrubEnvironment(environment),
      timeoutMs: SCHEMA_MS,
      killGraceMs: 0,
    });
    const { end, stdout } = await asked.ended;
    return end.type === "exit" && end.exitCode === 0 ? newestVersionIn(stdout) : "2.0";
  }
}

function valuesOf(
  { turn, projectDir: folder }: ExecutorTurn,
  variables: Readonly<Record<string, string>>,
): BlueprintValues {
  const { sessionId, taskId } = turn.task;
  return {
    sessionId,
    runId: taskId,
    folder,
    apiUrl: variables["AGENT_ORCHESTRATOR_API_URL"] ?? "",
    toolsUrl: variables["AGENT_ORCHESTRATOR_MCP_URL"] ?? "",
    parameters: parametersOf(turn),
    variables,
  };
}

/** The agent whose name is that of the executor's profile. */
export function executorAgent(executor: Executor): Agent<unknown, ExecutorResult> {
  return externalAgent<ExecutorResult>(executor, {
    folder: executor.projectDir,
    permissionModes: ["default"],
    agents: "any",
    conversationTtlMs: executor.profile.conversationTtlMs,
    output: ({ text, data }) => ({ result_text: text === "" ? null : text, result_data: data ?? null }),
  });
}
