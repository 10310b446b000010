// The options and the handle of a runner: `RunnerOptions`, `Runner`.

import type { AgentTracer, Clock, HoldfastError, Random } from "@holdfast/core";
import type { Agent, CloseOptions, TaskDefinition, Watchdog } from "@holdfast/runtime";
import type { SecretSource } from "@holdfast/system";
import type { ConnectionOptions } from "@holdfast/storage/remote";
import type { CatalogueAgents } from "./catalogue-sync.ts";
import type { Health } from "./health.ts";
import type { RunnerEvent } from "./runner-event.ts";
import type { WorkOfSessions } from "./polls/work-answers.ts";
import type { SessionEnvironments } from "./secrets/session-environments.ts";

/** Options of `startRunner`. */
export interface RunnerOptions extends Omit<ConnectionOptions, "token"> {
  /**
   * A registration token for the first start. Later starts need none. The runner's own token works as well.
   */
  readonly token?: string;
  /**
   * The folder of the runner's own token. Without one the token stays in memory, and every process is a new
   * runner.
   */
  readonly stateFolder?: string;
  /** The project's folder. Folder, URL and name identify this runner. */
  readonly workspace: string;
  /** The name that people see. It distinguishes runners of one project on one machine. */
  readonly name?: string;
  /** The agents whose sessions this runner runs. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a list of agents of any input and output has no other type.
  readonly agents?: readonly Agent<any, any>[];
  /** Tasks that this runner also performs for sessions of other runners. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the same for tasks.
  readonly tasks?: readonly TaskDefinition<any, any>[];
  /**
   * Makes further agents of the catalogue of the coordinator, again after each change. Without it the
   * catalogue is not read.
   */
  readonly catalogueAgents?: CatalogueAgents;
  /** Values of the secrets that agents and tasks declare. By default, environment variables. */
  readonly secrets?: SecretSource;
  /** Environments of the coordinator for agents of its catalogue, as the policy of the machine allows. */
  readonly environments?: SessionEnvironments;
  /** Labels that sessions may demand. Every runner also has `machine`, `hostname` and `runner`. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly hostname?: string;
  /** The most sessions held at once. */
  readonly maxRuns?: number;
  /** How long running tasks may take to end when the runner is stopped: 25 s by default. */
  readonly graceMs?: number;
  /** How often claims are renewed, at most a third of the lease. By default, the coordinator decides. */
  readonly renewMs?: number;
  /** How long a poll waits. By default, the coordinator decides. */
  readonly pollTimeoutMs?: number;
  /** Serve `/healthz` on this port of this machine. By default there is no such port. */
  readonly healthPort?: number;
  /** The runner takes suspects alone, beside the runner whose token it was given (rules-6 of the coordinator). */
  readonly forTrials?: boolean;
  /**
   * Starts a runner for trials in a process of its own, if there is room for one. It is given this runner's
   * token. Without this, a suspect runs in this process, and nothing else meanwhile. Must not throw.
   */
  readonly startTrial?: (trial: WantedTrial) => void;
  /** The work of sessions in their folders, which admins of the coordinator see. By default they see none. */
  readonly work?: WorkOfSessions;
  /** The runner asks for sessions once this has resolved. By default, at once. */
  readonly begin?: Promise<void>;
  /** Called with each event. Must not throw. */
  readonly log?: (event: RunnerEvent) => void;
  /** An observer of all sessions of this runner. */
  readonly tracer?: AgentTracer;
  readonly watchdog?: Watchdog;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Ends registering when aborted. */
  readonly signal?: AbortSignal;
}

/** A suspect that waits for a process of its own. */
export interface WantedTrial {
  readonly sessionId: string;
  readonly token: string;
}

/** A runner in this process. `startRunner` starts one. */
export interface Runner {
  readonly runnerId: string;
  /**
   * The process of a runner for trials that this runner started has ended, with all that it had started. Its
   * claims are lost at once. Never rejects.
   */
  trialEnded(runnerId: string): Promise<void>;
  /** The state of the runner now. */
  health(): Health;
  /**
   * Newer code has replaced this runner's code (runner-6). Resolves when the coordinator knows it, or when
   * the runner stops. The runner ends later, as if it was drained.
   */
  supersede(): Promise<void>;
  /** Tasks that have begun here and have not ended. */
  readonly running: number;
  /**
   * Begins nothing more, lets running tasks end within the grace, hands the sessions back, and deregisters. A
   * second call may shorten the grace.
   */
  stop(options?: CloseOptions): Promise<void>;
  /** Resolves when the runner has stopped, with an error if the coordinator refused it. Never rejects. */
  readonly ended: Promise<HoldfastError | undefined>;
}
