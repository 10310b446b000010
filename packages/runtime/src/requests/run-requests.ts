// `RunRequests`: the requests that begin or resume sessions, and run them in this process.
//
// Each answers after the session is stored.

import {
  BEHAVIOUR_FLAGS,
  type Change,
  type ChangeResult,
  checkBudget,
  type CreateSession,
  defined,
  encodeJson,
  forkSession,
  HoldfastError,
  isEnded,
  isSameEnvironment,
  isSessionId,
  JOURNAL_FORMAT,
  type JsonText,
  mintId,
  readOrigin,
  refuseIfLarge,
  refuseNewerSession,
  refuseSignalName,
  type ScheduledAction,
  type GivenEnvironment,
  missingVariablesText,
  toHoldfastError,
  UsageError,
  variablesMissingIn,
  ConflictError,
  type ImportSession,
  type Session,
} from "@holdfast/core";
import { checkBounds, deadlineOf } from "../agents/bounds.ts";
import { inputOf } from "../agents/agent-input.ts";
import type { Agent } from "../agents/define.ts";
import type {
  ExportOptions,
  ForkOptions,
  ImportOptions,
  ResumeOptions,
  ScheduleRequest,
  StartOptions,
} from "../api/runtime-api.ts";
import type { Watchdog } from "../isolation/watchdog.ts";
import { tooLarge } from "../session/session-claim.ts";
import type { Claims } from "../claims/claims.ts";
import type { Trials } from "../claims/trials.ts";
import type { LiveSessions } from "../sessions/live-sessions.ts";
import { exportLines, readSessionFile, storeImported } from "./session-file.ts";
import { payloadText, unexpected, type SessionRequestsHost } from "./session-requests.ts";

export interface RunRequestsHost extends SessionRequestsHost {
  readonly sessions: LiveSessions;
  readonly watchdog: Watchdog | undefined;
  readonly strictBounds: boolean;
  readonly trials: Trials;
  readonly claims: Claims;
  /** Take sessions of this agent, and of the agents that it names, from now on. @throws ConflictError */
  know(agent: Agent): void;
  warn(sessionId: string, message: string): void;
  /** The trace context of the code that calls it, if there is one. */
  callersTraceparent(): string | undefined;
}

/** A stored session. */
export interface Stored {
  readonly sessionId: string;
  /** False when it existed before. */
  readonly created: boolean;
}

export class RunRequests {
  readonly #host: RunRequestsHost;

  constructor(host: RunRequestsHost) {
    this.#host = host;
  }

  async start(
    agent: Agent,
    input: unknown,
    {
      sessionId: wanted,
      title,
      file,
      budget = agent.budget,
      persistence = "full",
      timeoutMs,
      environment,
      traceparent = this.#host.callersTraceparent(), // Before the first await, in the caller's context.
    }: StartOptions,
  ): Promise<Stored> {
    const { clock, random, strictBounds, claims, know, warn } = this.#host;
    const sessionId = this.#idOf(wanted);
    refuseMissingVariables(agent, environment);
    const unbounded = checkBounds(agent, { budget, timeoutMs }, strictBounds);
    know(agent);
    const text = await this.#inputText(agent.name, agent.input, input);
    const { name, version } = agent;
    const creation: CreateSession = {
      type: "create_session",
      sessionId,
      agent: {
        name,
        version,
        ...defined({ file, traceparent }),
      },
      ...defined({ title }),
      input: text,
      seed: random.u32(),
      flags: BEHAVIOUR_FLAGS,
      format: JOURNAL_FORMAT,
      ...(budget === undefined ? {} : { budget: checkBudget(budget) }),
      ...(persistence === "full" ? {} : { persistence }),
      ...defined({ environment }),
      ...deadlineOf(clock.now(), Math.min(timeoutMs ?? Infinity, budget?.ttlMs ?? Infinity)),
      claimFor: claims.terms(sessionId),
    };
    const made = await this.#create(agent, creation);
    const { status } = made;
    if (status === "invalid" && made.isTooLarge === true)
      throw tooLarge(sessionId, made.reason, "start it again");
    if (status !== "created" && status !== "exists") throw unexpected("creating a session", status);
    if (status === "exists")
      await this.runExisting(sessionId, (stored) => refuseOtherStart(stored, creation));
    else if (unbounded !== undefined) warn(sessionId, unbounded);
    return { sessionId, created: status === "created" };
  }

  /**
   * K4a: with a watchdog, which may end the process in the first slice, the session is stored before its
   * agent runs. An ephemeral session is stored first too, as it cannot restart (K11). Another process may
   * claim it before this one does.
   */
  async #create(agent: Agent, creation: CreateSession): Promise<ChangeResult> {
    const { sessions, committer, watchdog, trials } = this.#host;
    if (trials.isTrying) await trials.turn(creation.sessionId);
    const isStoredFirst = watchdog !== undefined || creation.persistence === "ephemeral";
    if (!isStoredFirst) return sessions.create(agent, creation);
    const { claimFor: _, ...unclaimed } = creation;
    const result = await committer.commit(unclaimed);
    if (result.status === "created") await this.runExisting(creation.sessionId);
    return result;
  }

  /**
   * Run a session that exists already, unless another process runs it.
   *
   * @param refuse throws `session_exists` when it is not the wanted one.
   */
  async runExisting(sessionId: string, refuse: (stored: Session) => void = () => {}): Promise<void> {
    const { sessions } = this.#host;
    try {
      const session = await sessions.find(sessionId);
      refuse(session);
      if (isEnded(session.status) || session.status === "paused") return;
      await sessions.activate(sessionId, session);
    } catch (thrown) {
      const error = toHoldfastError(thrown);
      if (error.code === "session_claimed") return;
      if (error.code === "session_exists") throw error;
      sessions.failedToRun(sessionId, error); // We may hold its claim, and then no other process would run it.
      throw error;
    }
  }

  async fork(
    originId: string,
    { at, tasks = "rerun", sessionId: wanted, run = true, ...options }: ForkOptions,
  ): Promise<Stored> {
    this.refuseIfClosed();
    const { storage, committer, sessions, clock, random, lookAt } = this.#host;
    const sessionId = this.#idOf(wanted);
    const origin = await sessions.find(originId);
    const { name } = origin.agent;
    const agent = sessions.agents.latest(name);
    const input =
      options.input === undefined
        ? {}
        : { input: { text: await this.#inputText(name, agent?.input, options.input) } };
    const change = forkSession(await readOrigin(storage.reader, origin), {
      sessionId,
      ...defined({ at }),
      ...input,
      tasks,
      seed: random.u32(),
      now: clock.now(),
    });
    try {
      const result = await committer.commit(change);
      if (result.status === "invalid") throw new HoldfastError("internal", result.reason);
      if (result.status === "exists") refuseOtherFork(await sessions.find(sessionId), change);
      if (run && agent !== undefined) await this.runExisting(sessionId);
      return { sessionId, created: result.status === "created" };
    } catch (error) {
      // The fork may be stored although its answer was lost, and no arrival announces it.
      lookAt?.(clock.now());
      throw error;
    }
  }

  export(sessionId: string, { tree = false }: ExportOptions): AsyncIterable<string> {
    const { storage, limits } = this.#host;
    return exportLines(storage.reader, sessionId, { tree, treeChars: limits.batchChars });
  }

  async import(
    file: AsyncIterable<Uint8Array>,
    { name = "the file", sessionId }: ImportOptions,
  ): Promise<Stored> {
    this.refuseIfClosed();
    const { storage, committer, limits } = this.#host;
    const change = await readSessionFile(file, name, limits.batchChars, sessionId);
    const commit = (storing: Change): Promise<ChangeResult> => committer.commit(storing);
    return {
      sessionId: change.sessionId,
      created: await storeImported(storage.reader, commit, change, name),
    };
  }

  async resume(sessionId: string, { acceptDrift = false }: ResumeOptions): Promise<Stored> {
    this.refuseIfClosed();
    const { sessions, watchdog, committer } = this.#host;
    const session = await sessions.find(sessionId);
    refuseNewerSession(session);
    if (acceptDrift || session.status === "paused") sessions.acceptDrift(sessionId, acceptDrift);
    if (session.status === "paused") {
      watchdog?.clear(sessionId); // A person has read the reason, and wants to try again.
      await committer.commit({ type: "resume_session", sessionId });
    }
    if (!isEnded(session.status)) await sessions.activate(sessionId);
    return { sessionId, created: false };
  }

  /** The action of a schedule, with its input or payload as text. */
  async actionOf<Input, Output>(request: ScheduleRequest<Input, Output>): Promise<ScheduledAction> {
    this.refuseIfClosed();
    const { start, signal } = request;
    if (start === undefined) {
      const { sessionId, name, payload } = signal;
      refuseSignalName(name);
      return { type: "signal", sessionId, name, payload: payloadText(name, payload, this.#host.limits) };
    }
    const { agent, input, file, budget = agent.budget, environment } = start;
    checkBounds(agent, { budget }, this.#host.strictBounds);
    this.#host.know(agent as unknown as Agent);
    const text = await this.#inputText(agent.name, agent.input, input);
    const { name, version } = agent;
    return {
      type: "start",
      agent: { name, version, ...defined({ file }) },
      input: text,
      ...(budget === undefined ? {} : { budget: checkBudget(budget) }),
      ...defined({ environment }),
    };
  }

  refuseIfClosed(): void {
    if (!this.#host.sessions.closed) return;
    throw new UsageError("the runtime is closed", { fix: "make another with createRuntime()" });
  }

  #idOf(wanted = mintId("ses", this.#host.clock.now(), () => this.#host.random.u32())): string {
    if (isSessionId(wanted)) return wanted;
    throw new UsageError(`"${wanted}" cannot be a session id`, {
      expected: "1 to 100 letters, digits, dots, dashes and underscores, starting with a letter or digit",
    });
  }

  /** The input after its schema (defaults, conversions), as it is recorded and as the agent sees it. */
  async #inputText(name: string, schema: Agent["input"], input: unknown): Promise<JsonText | undefined> {
    const what = `input of agent "${name}"`;
    const text = encodeJson(await inputOf({ name, input: schema }, input), what);
    refuseIfLarge(text, what, this.#host.limits.payloadChars);
    this.refuseIfClosed(); // A schema may have taken its time.
    return text;
  }
}

function refuseMissingVariables(
  { name, requiredVariables }: Agent,
  environment: GivenEnvironment | undefined,
): void {
  const missing = variablesMissingIn(environment, requiredVariables);
  if (missing.length === 0) return;
  throw new UsageError(missingVariablesText(name, missing), {
    at: "environment",
    expected: "a value of this start, or of an environment that it names",
    fix: `give it: environment: { values: { ${missing[0]}: "…" } }`,
  });
}

/**
 * Accept the stored session if it is the one that was asked for: the first answer was lost, or the program
 * runs again.
 *
 * @throws ConflictError `session_exists` for another agent, input or environment.
 */
function refuseOtherStart({ sessionId, agent, input, environment }: Session, wanted: CreateSession): void {
  const isSame = agent.name === wanted.agent.name && input === wanted.input;
  if (isSame && isSameEnvironment(environment, wanted.environment)) return;
  const what = isSame ? "another environment" : "another agent or input";
  throw new ConflictError("session_exists", `session ${sessionId} was started with ${what}`, {
    expected: `agent "${agent.name}" with the input and the environment of its start`,
    fix: "choose another id, or leave sessionId out",
  });
}

/**
 * Accept the stored session if it is the fork that was asked for: the first answer was lost, or the caller
 * asked before.
 *
 * @throws ConflictError `session_exists` when the session is another one.
 */
function refuseOtherFork(
  stored: Session,
  { sessionId, session: { fork, input } }: Pick<ImportSession, "sessionId" | "session">,
): void {
  const isSame = stored.fork?.at === fork?.at && stored.fork?.origins[0] === fork?.origins[0];
  if (isSame && stored.input === input) return;
  throw new ConflictError(
    "session_exists",
    `there is a session ${sessionId} already, and it is not this fork`,
    { fix: "choose another id" },
  );
}
