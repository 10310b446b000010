// The executors of `holdfast runner`: the one that it offers as an agent (`RunnerExecutors`), the list of
// all, and the check of one.

import { findAgent, type AgentRecord } from "@holdfast/agents";
import {
  blueprintOf,
  checkExecutor,
  DEFAULT_EXECUTOR,
  Executor,
  executorAgent,
  executorAt,
  findExecutor,
  hasExecutor,
  isBuiltIn,
  listExecutors,
  type CheckedClause,
  type ExecutorProfile,
} from "@holdfast/programs";
import { isIncluded, type IncludedName } from "@holdfast/programs/included-programs";
import { executorPolicy, requireExecutor, requireFolder, type RunnerPolicy } from "@holdfast/runner";
import type { Agent } from "@holdfast/runtime";
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { agentPlaces, type AgentSearch } from "../../agents/agent-places.ts";
import { loadExternalAgent } from "../../agents/external-agents.ts";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { count, plainLine } from "@holdfast/terminal/frame/plain-text";

/** The folder of the project, and the one whose `executors` and `profiles` count. */
interface ExecutorFolders {
  readonly workspace: string;
  readonly executorsFolder: string;
}

const LINE_CHARS = 200;

export class RunnerExecutors {
  readonly #args: Arguments;
  readonly #io: Io;
  /** The records of the coordinator's agent files that the policy allows, by name. */
  #offered: ReadonlyMap<string, AgentRecord> = new Map();
  #executor: Executor | undefined;

  constructor(args: Arguments, io: Io) {
    this.#args = args;
    this.#io = io;
  }

  /** The agent files of the coordinator that the runner offers now, for the blueprints of executors. */
  noteOffered(records: readonly AgentRecord[]): void {
    this.#offered = new Map(records.map((record) => [record.name, record]));
  }

  /**
   * The agent of the chosen executor. A runner that is given nothing else offers the executor that comes with
   * Holdfast.
   *
   * @throws HoldfastError when there is no such executor, its profile is wrong, or the policy does not allow
   *   it.
   */
  async agents(
    folders: ExecutorFolders,
    isAlone: boolean,
    policy: RunnerPolicy,
    search: AgentSearch,
  ): Promise<readonly Agent[]> {
    const { workspace, executorsFolder } = folders;
    const chosen =
      this.#chosen(folders) ?? (isAlone ? findExecutor(executorsFolder, DEFAULT_EXECUTOR) : undefined);
    if (chosen === undefined) return [];
    if (typeof chosen === "string") {
      requireExecutor(policy, chosen);
      requireFolder(policy, workspace);
      return [await loadExternalAgent(chosen, { ...search, cwd: workspace }, false)];
    }
    this.#executor = new Executor({
      profile: chosen,
      environment: this.#io.env,
      projectDir: workspace,
      policy: executorPolicy(policy, workspace, (command) => isBuiltIn({ command })),
      blueprint: (name) =>
        blueprintOf(this.#offered.get(name) ?? findAgent(name, agentPlaces({ ...search, cwd: workspace }))),
      onTurn: ({ sessionId, agent, mode }) => this.#logTurn(sessionId, agent, mode),
    });
    return [executorAgent(this.#executor)];
  }

  async close(): Promise<void> {
    await this.#executor?.close();
  }

  /** The profile of the chosen executor, or the name of the included program that has its name. */
  #chosen({ workspace, executorsFolder }: ExecutorFolders): ExecutorProfile | IncludedName | undefined {
    const { cwd, env } = this.#io;
    const name = this.#args.text("executor");
    if (name !== undefined && isIncluded(name) && !hasExecutor(executorsFolder, name)) return name;
    if (name !== undefined) return findExecutor(executorsFolder, name);
    const path = this.#args.text("executor-path");
    if (path !== undefined) return executorAt(resolve(cwd, path));
    const given = env["AGENT_EXECUTOR_PATH"];
    return given === undefined || given === "" ? undefined : executorAt(resolve(workspace, given));
  }

  #logTurn(sessionId: string, agent: string, mode: string): void {
    const io = this.#io;
    if (io.isJson) return io.result({ type: "turn", sessionId, agent, mode }, "");
    const verb = mode === "resume" ? "Resuming" : "Starting";
    io.note(
      `${io.notes.symbols.begin} ${verb} session ${sessionId} with agent ${plainLine(agent, LINE_CHARS)}`,
    );
  }
}

/** `--executor-list`. @returns the exit code. */
export function listRunnerExecutors(executorsFolder: string, io: Io): number {
  const executors = listExecutors(executorsFolder);
  const width = Math.max(...executors.map(({ name }) => name.length));
  const lines = executors.map(
    ({ name, path, problem }) => `${name.padEnd(width)}  ${plainLine(problem ?? path ?? "", LINE_CHARS)}`,
  );
  io.result({ executors }, lines.join("\n"));
  return 0;
}

/** Checks an executor by its name, or any by its path. @returns exit code 1 when a clause failed. */
export async function checkRunnerExecutor(
  given: string,
  { workspace, executorsFolder }: ExecutorFolders,
  io: Io,
): Promise<number> {
  const path = resolve(io.cwd, given);
  const isPath = given.includes("/") || statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  const profile = isPath ? executorAt(path) : findExecutor(executorsFolder, given);
  io.note(`Checking ${profile.command.join(" ")}`);
  const onClause = (clause: CheckedClause): void => io.note(lineOf(clause, io));
  const clauses = await checkExecutor(profile, { environment: io.env, projectDir: workspace, onClause });
  const failed = clauses.filter(({ status }) => status === "failed").length;
  io.result(
    { executor: profile.name, clauses },
    failed === 0
      ? "the executor conforms"
      : `${count(failed, "clause")} failed; docs/executors.md describes the protocol`,
  );
  return failed === 0 ? 0 : 1;
}

function lineOf({ clause, what, status, detail }: CheckedClause, { notes }: Io): string {
  const { paint, symbols } = notes;
  const mark = {
    passed: paint.green(symbols.done),
    failed: paint.red(symbols.failed),
    skipped: symbols.wait,
  };
  const why = detail === undefined ? "" : `: ${plainLine(detail, LINE_CHARS)}`;
  return `${mark[status]} ${clause} ${what}${why}`;
}
