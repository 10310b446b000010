// Starts processes and owns their trees: `ProcessSupervisor`. Everything of this package that runs a program
// uses it.
//
//   - A program is started by its argument list, never through a shell.
//   - A tree runs in a PID namespace where that was asked for and the machine allows it. Elsewhere its
//     process group and its marker find it, as far as `process-tree.ts` can.
//   - When our process ends, its trees end with it, also after SIGKILL: by their namespace or by
//     `ProgramGuard`.
//
// It is no isolation: a program may do whatever its user may.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";

import type { Environment } from "./environment.ts";
import {
  findNamespaceSupport,
  openPidNamespace,
  type NamespaceSupport,
  type PidNamespace,
} from "./pid-namespace.ts";
import { endTree, EXECUTION_MARKER, isMarkedAnywhere, TAG_MARKER } from "./process-tree.ts";
import { ENDING_MARKER, programGuard, waitForGuards, type ProgramGuard } from "./program-guard.ts";
import { SupervisedProcess, type Spawned, type StartOptions } from "./supervised-process.ts";

export interface SupervisorOptions {
  /** The environment of our own process: its marker is the beginning of the markers given to trees. */
  readonly environment: Environment;
  /** `if_available`: each tree gets a PID namespace of its own where the machine allows it. */
  readonly namespaces: "if_available" | "never";
}

interface Failure {
  readonly error: unknown;
}

/** From SIGTERM to SIGKILL for what an earlier process left running; git, for one, removes its locks in this time. */
const LEFTOVER_GRACE_MS = 300;

export class ProcessSupervisor {
  readonly #guard: ProgramGuard;
  readonly #marker: string;
  readonly #namespaces: SupervisorOptions["namespaces"];
  readonly #running = new Set<SupervisedProcess>();
  #support: Promise<NamespaceSupport> | undefined;

  constructor(options: SupervisorOptions) {
    this.#guard = programGuard(options.environment);
    this.#marker = executionMarker(options.environment);
    this.#namespaces = options.namespaces;
  }

  /** How its trees are held together, for people. */
  async describe(): Promise<string> {
    const support = await this.#supportOnce();
    return "unavailable" in support
      ? `process group and marker: ${support.unavailable}`
      : "a PID namespace for each process tree";
  }

  /** Never rejects: a process that could not start ends at once with `not_started`. */
  async start(options: StartOptions): Promise<SupervisedProcess> {
    const isCwdThere = existsSync(options.cwd);
    const namespace = isCwdThere ? await this.#openNamespace() : undefined;
    // mutant: unguarded
    this.#guard.watch();
    // Without an await between: a program that is not there reports it in the next tick.
    const started = new SupervisedProcess(options, { ...this.#spawn(options, namespace), isCwdThere });
    const { pid } = started;
    if (pid !== undefined) this.#guard.add(pid);
    // One listener however many processes run.
    if (this.#running.size === 0) process.on("exit", this.#onExit);
    this.#running.add(started);
    void started.ended.then(() => {
      if (pid !== undefined) this.#guard.remove(pid);
      this.#running.delete(started);
      if (this.#running.size === 0) process.off("exit", this.#onExit);
    });
    return started;
  }

  /** Stops everything that still runs. */
  async close(reason: string): Promise<void> {
    await Promise.all([...this.#running].map((started) => started.stop(reason)));
  }

  #spawn(options: StartOptions, namespace: PidNamespace | Failure | undefined): Omit<Spawned, "isCwdThere"> {
    const execution = `${this.#marker}/${randomUUID()}`;
    const marker = `${EXECUTION_MARKER}=${execution}`;
    if (namespace !== undefined && "error" in namespace)
      return { child: namespace, marker, namespace: undefined };
    const { argv, cwd, env, input, keepsInputOpen = false, handover, tag } = options;
    const [program, ...args] = namespace?.enter(argv, cwd) ?? argv;
    try {
      const child = spawn(program, args, {
        cwd,
        env: { ...env, [EXECUTION_MARKER]: execution, ...(tag === undefined ? {} : { [TAG_MARKER]: tag }) },
        detached: true, // supervised-process-1.
        stdio: [
          input === undefined && !keepsInputOpen ? "ignore" : "pipe",
          "pipe",
          "pipe",
          ...(handover === undefined ? [] : (["pipe"] as const)),
        ],
        windowsHide: true,
      });
      return { child, marker, namespace };
    } catch (error) {
      return { child: { error }, marker, namespace }; // E2BIG comes here, ENOENT as an event.
    }
  }

  async #openNamespace(): Promise<PidNamespace | Failure | undefined> {
    const support = await this.#supportOnce();
    if ("unavailable" in support) return undefined;
    return openPidNamespace(support).catch((error: unknown) => ({ error }));
  }

  #supportOnce(): Promise<NamespaceSupport> {
    this.#support ??=
      this.#namespaces === "never"
        ? Promise.resolve({ unavailable: "namespaces are off" })
        : findNamespaceSupport();
    return this.#support;
  }

  readonly #onExit = (): void => {
    for (const started of this.#running) started.killNow();
  };
}

/** The beginning of the markers that this process gives to its programs, by which its guard finds them. */
function executionMarker(environment: Environment): string {
  const above = environment[EXECUTION_MARKER];
  const { id } = programGuard(environment);
  return above === undefined ? id : `${above}/${id}`;
}

/** The variable of a program that is started without a supervisor. The guard of this process ends it (`ProgramGuard`). */
export function guardedMarker(environment: Environment): Readonly<Record<string, string>> {
  programGuard(environment).watch();
  return { [EXECUTION_MARKER]: executionMarker(environment) };
}

/**
 * Ends what runs under a tag, whichever process started it, after the guards of dead processes have done
 * their work.
 *
 * @returns whether nothing is left.
 */
export async function endTagged(tag: string): Promise<boolean> {
  const marker = `${TAG_MARKER}=${tag}`;
  // Nearly always nothing is left, and one look says that of the guards, too.
  if (!(await isMarkedAnywhere([ENDING_MARKER, marker]))) return true;
  await waitForGuards();
  return endTree({ marker }, LEFTOVER_GRACE_MS);
}

/** Ends everything below an execution marker, as its value stands in the environment of a dead process. */
export function endExecution(execution: string): Promise<boolean> {
  return endTree({ marker: `${EXECUTION_MARKER}=${execution}` }, LEFTOVER_GRACE_MS);
}
