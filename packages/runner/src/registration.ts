// `register` makes this process a runner, or the same runner again after a restart.
//
//   - A registration token admits one process. The runner's own token, which it brings, is stored before
//     anything else happens. If the answer is lost, the same process gets the same token again.
//   - Registration waits without limit for a coordinator that cannot be reached. A refusal ends it.
//   - When registration is given up, it does not wait for a pending answer, unless that answer may bring the
//     runner's own token.
//   registration-4. The error `duplicate_runner` says that another process is this runner. Registration
//       retries while that may be a dead predecessor, and then gives up. The retries start over after a
//       coordinator was away, because it renews the claims of dead runners when it returns.

import {
  BEHAVIOUR_FLAGS,
  type Clock,
  defined,
  HoldfastError,
  type Random,
  toHoldfastError,
  UsageError,
  VERSION,
} from "@holdfast/core";
import { budgetMessage, RunnerService, type RegisterResponse } from "@holdfast/proto";
import {
  announcedRefusals,
  announcementOf,
  SCHEMA_BYTES,
  type AnnouncedAgent,
  type RefusedAgent,
} from "./announced-agent.ts";
import type { Agent } from "@holdfast/runtime";
import type { CoordinatorConnection } from "@holdfast/storage/remote";
import { hostname as osHostname } from "node:os";
import { isPassing, pause, pauseMs } from "./polls/poll-loop.ts";
import type { RunnerOptions } from "./runner-api.ts";
import type { TokenStore } from "./token-file.ts";

const encoder = new TextEncoder();
/** The version of the protocol between runners and coordinators. */
const PROTOCOL = 1;
export const MAX_RUNS = 32;
/** registration-4. Longer than a coordinator's default lease. */
const PREDECESSOR_MS = 20_000;
const PREDECESSOR_PAUSE_MS = 1_000;

export interface Offers {
  /** The runner's name. By default the coordinator uses the host's. */
  readonly name?: string;
  readonly hostname: string;
  readonly project: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly agents: readonly AnnouncedAgent[];
  readonly taskKinds: readonly string[];
  readonly maxRuns: number;
  /** The agents of the catalogue that the runner does not offer. */
  readonly refusedAgents?: readonly RefusedAgent[];
  /** The runner takes suspects alone. */
  readonly forTrials?: boolean;
}

/** The options of a runner that decide what it offers. */
interface Offering {
  readonly name?: string;
  readonly hostname?: string;
  readonly workspace: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly agents?: readonly Agent[];
  readonly catalogueAgents?: unknown;
  readonly refusedAgents?: readonly RefusedAgent[];
  readonly environmentsOf?: (agent: Agent) => readonly string[] | undefined;
  readonly tasks?: readonly { readonly name: string }[];
  readonly maxRuns?: number;
  readonly forTrials?: boolean;
}

export interface RegistrationOptions {
  readonly connection: CoordinatorConnection;
  /** The store of the runner's own token. */
  readonly tokens: TokenStore;
  /** A registration token, or the runner's own token. A runner that has registered before needs neither. */
  readonly token: string | undefined;
  readonly offers: Offers;
  /** The secret name of this process, for the coordinator alone: see `nameProcess`. */
  readonly process: string;
  /** How often to renew and how long a poll waits, instead of what the coordinator says. */
  readonly renewMs?: number | undefined;
  readonly pollTimeoutMs?: number | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
  /** Called once, when the coordinator cannot be reached. */
  readonly lost: (error: HoldfastError) => void;
  /** Called when `renewMs` is above a third of the lease, and lower in effect. */
  readonly lowered: (askedMs: number, renewMs: number) => void;
}

export interface Registered {
  readonly runnerId: string;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly pollTimeoutMs: number;
}

/**
 * The name of a process from its start to its end: 256 random bits, because a runner's token is derived from
 * it.
 */
export function nameProcess(random: Random): string {
  return Array.from({ length: 8 }, () => random.u32().toString(16).padStart(8, "0")).join("");
}

/** @throws HoldfastError when the coordinator refuses, or when registration was given up. */
export async function register(options: RegistrationOptions): Promise<Registered> {
  const { connection, clock, random, signal, lost } = options;
  /** registration-4. */
  let refusedSince: number | undefined;
  for (let failures = 0; ; failures++) {
    try {
      return await registerOnce(options);
    } catch (thrown) {
      const error = toHoldfastError(thrown);
      const isSecond = error.code === "duplicate_runner";
      refusedSince = isSecond ? (refusedSince ?? clock.monotonic()) : undefined;
      const mayPass =
        refusedSince === undefined ? isPassing(error) : clock.monotonic() - refusedSince < PREDECESSOR_MS;
      if (signal.aborted || !mayPass) throw explained(error, error.at ?? connection.url);
      if (failures === 0) lost(error);
      const ms = isSecond ? PREDECESSOR_PAUSE_MS : pauseMs(failures, random);
      await pause(ms, clock, signal);
      if (signal.aborted) throw error;
    }
  }
}

async function registerOnce(options: RegistrationOptions): Promise<Registered> {
  const { tokens, token } = options;
  const own = tokens.read();
  if (own === undefined) return registerWith(options, required(token));
  try {
    // The pending answer may bring the runner's own token.
    return await registerWith(options, own, { signal: options.signal });
  } catch (thrown) {
    const error = toHoldfastError(thrown);
    // The runner of the stored token was deleted: another registration token makes a new runner.
    const isForgotten = error.code === "unauthenticated" || error.code === "token_revoked";
    if (token === undefined || token === "" || token === own || !isForgotten) throw error;
    return registerWith(options, token);
  }
}

async function registerWith(
  options: RegistrationOptions,
  token: string,
  call: { readonly signal?: AbortSignal } = {},
): Promise<Registered> {
  const { connection, tokens, offers, process } = options;
  const { name, hostname, project, labels, agents, taskKinds, maxRuns, refusedAgents = [] } = offers;
  connection.useToken(token);
  const request = {
    protocol: PROTOCOL,
    ...defined({ name }),
    hostname,
    project,
    labels: { ...labels },
    agents: agents.map(({ inputSchema, budget, ...agent }) => ({
      ...agent,
      ...(budget === undefined ? {} : { budget: budgetMessage(budget) }),
      ...(inputSchema === undefined ? {} : { inputSchema: encoder.encode(inputSchema) }),
    })),
    taskKinds: [...taskKinds],
    maxRuns,
    process,
    behaviourFlags: BEHAVIOUR_FLAGS,
    version: VERSION,
    refusedAgents: [...refusedAgents],
    forTrials: offers.forTrials === true,
  };
  const answer: RegisterResponse = await connection.time.asking(() =>
    connection.ask(() => connection.client(RunnerService).register(request, call)),
  );
  const own = answer.token ?? token;
  tokens.write(own); // Before anything else: if it is lost, the registration token is used up.
  connection.useToken(own);
  const leaseMs = Number(answer.leaseMs);
  const { renewMs: askedMs = Number(answer.renewMs), pollTimeoutMs = Number(answer.pollTimeoutMs) } = options;
  const renewMs = Math.min(askedMs, Math.floor(leaseMs / 3)); // One renewal may be lost.
  if (renewMs < askedMs) options.lowered(askedMs, renewMs);
  return { runnerId: answer.runnerId, leaseMs, renewMs, pollTimeoutMs };
}

function required(token: string | undefined): string {
  if (token !== undefined && token !== "") return token;
  throw new HoldfastError(
    "unauthenticated",
    "this machine is not registered yet, and no registration token was given",
    {
      expected: "a registration token (hf_reg_…), once",
      fix: "have an admin make one (`holdfast token create NAME --kind registration`), and give it as HOLDFAST_TOKEN, with --token-file or on standard input",
    },
  );
}

function explained(error: HoldfastError, url: string): HoldfastError {
  if (error.code !== "unsupported_protocol" && error.code !== "version_unsupported") return error;
  return new HoldfastError(
    "unsupported_protocol",
    `the coordinator at ${url} refuses this runner: ${error.message}`,
    {
      got: `Holdfast ${VERSION} with protocol ${PROTOCOL} here`,
      ...defined({ expected: error.expected }),
      fix: error.fix ?? "use the same version of Holdfast for both",
      cause: error,
    },
  );
}

/** The offers of a runner with these options. @throws UsageError */
export function offersOf(options: Offering): Offers {
  const { maxRuns = MAX_RUNS, labels = {}, agents = [], tasks = [] } = options;
  if (!Number.isSafeInteger(maxRuns) || maxRuns < 1)
    throw new UsageError(`a runner cannot hold ${maxRuns} sessions`, { expected: "a whole number above 0" });
  if (agents.length + tasks.length === 0 && options.catalogueAgents === undefined)
    throw new UsageError("a runner without agents and tasks has nothing to do", {
      fix: "give it files of agents, with --agents FILE",
    });
  const offered = new Map<string, AnnouncedAgent>();
  let schemaBytes = 0;
  const add = (agent: Agent): void => {
    const key = JSON.stringify([agent.name, agent.version]);
    if (offered.has(key)) return;
    const announced = announcementOf(agent, SCHEMA_BYTES - schemaBytes, options.environmentsOf?.(agent));
    schemaBytes += encoder.encode(announced.inputSchema ?? "").length;
    offered.set(key, announced);
    for (const child of agent.agents) add(child);
  };
  for (const agent of agents) add(agent);
  return {
    ...defined({ name: options.name }),
    hostname: options.hostname ?? osHostname(),
    project: options.workspace,
    labels,
    agents: [...offered.values()],
    taskKinds: tasks.map((task) => task.name),
    maxRuns,
    refusedAgents: announcedRefusals(options.refusedAgents ?? []),
    ...defined({ forTrials: options.forTrials }),
  };
}

/** Characters that a terminal would not show as they are: they could hide or forge a line. */
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/** @throws UsageError for a text that the coordinator would refuse, before any request. */
export function checkNames({ name, hostname, labels = {} }: RunnerOptions): void {
  const texts = { name, hostname, ...labels };
  for (const [what, text] of Object.entries(texts)) {
    if (text === undefined || !CONTROL.test(text)) continue;
    const isLabel = Object.hasOwn(labels, what);
    throw new UsageError(
      `${isLabel ? `the label ${what}` : `the runner's ${what}`} has a control character`,
      {
        at: isLabel ? "labels" : what,
        got: JSON.stringify(text),
        expected: "one line of text, without control characters",
        fix: "leave the character out",
      },
    );
  }
}
