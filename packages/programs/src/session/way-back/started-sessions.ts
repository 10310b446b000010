// The sessions that an external agent has started by the tools of its session (`StartedSessions`), as the
// orchestrator's tools show them.
//
//   - They are children of the session. The tools reach these and no others, whatever id is given.
//   - The turn of a conversation ends with its answer, and that of another session with the session. A prompt
//     is work under way until a turn has taken it, so that no result of the turn before stands for its own.
//   - Only ended ones are deleted, and only where the host of the agent gives the means.
//   started-sessions-4. A session in a sandbox starts others in the same one alone.
//   - A second start with the same key is answered for the session of the first, in later turns as well. A
//     second prompt with the key of the last one is not sent.

import {
  decodeJson,
  defined,
  HoldfastError,
  NEXT_INPUT,
  type ChildHandle,
  type Session,
} from "@holdfast/core";
import type { SessionToolInput } from "@holdfast/proto/session-tools";
import { local, remote, type Agent, type AgentContext, type TaskContext } from "@holdfast/runtime";

import { requestText } from "@holdfast/agents";
import { fieldsOf, isFields, textOrJson } from "../fields.ts";
import type { CallResult } from "./way-back.ts";

export interface StartedSession {
  readonly sessionId: string;
  readonly agent: string;
  readonly isConversation: boolean;
  /** Its end is told in a turn of its own, and is still to come. */
  readonly callsBack?: true;
  /** The key of the call that has started it. */
  readonly key?: string;
  /** The length of its journal at the last prompt to it. Absent before one. */
  readonly promptedAt?: number;
  /** The key of the last prompt to it. Absent before one, or without a key. */
  readonly promptKey?: string;
}

/** A start that may be made. An agent of another process has only its name. */
interface AskedStart {
  readonly agent: Agent | string;
  readonly input: unknown;
  readonly isConversation: boolean;
}

/** Deletes an ended session with all below it. @returns whether it is deleted. */
export type DeleteSession = (sessionId: string, task: TaskContext) => Promise<boolean>;

type Context = Pick<
  AgentContext,
  "run" | "spawnAgent" | "waitForChild" | "waitForChildEvent" | "child" | "signalChild" | "sleep"
>;

/** The state of a session at the end of its last record. */
interface Looked {
  readonly status: "running" | "finished" | "not_existent";
  readonly detail?: string;
  readonly result?: string;
  readonly isError?: boolean;
  /** The length of the journal. */
  readonly length: number;
}

/** The errors of a start that are answers for the agent. */
const REFUSALS: readonly string[] = ["child_failed", "invalid_input", "limit_exceeded"];
const ENDLESS = "A conversation does not end by itself, so it does not call back. Use async_poll.";
const RESULT_CHARS = 50_000;
/** A conversation reports its answer before it waits for the next request. */
const LOOK_MS = 200;
const LOOKS = 10;
const ENDS: readonly string[] = ["completed", "failed", "cancelled", "timed_out"];

/** The agents that a session may start: these, or every one by its name. */
export type StartableAgents = readonly Agent[] | "any";

export interface StartedParts {
  /** The agents that may be started. */
  readonly agents: StartableAgents;
  readonly deleteSession: DeleteSession | undefined;
  /** The sandbox of the session; `undefined` without one. */
  readonly sandbox: string | undefined;
}

export class StartedSessions {
  readonly #ctx: Context;
  readonly #agents: StartableAgents;
  readonly #delete: DeleteSession | undefined;
  readonly #sandbox: string | undefined;
  /** The next event of each session, which several calls may wait for. */
  readonly #next = new Map<string, Promise<unknown>>();
  #started: readonly StartedSession[];

  /** @param started those of earlier turns. */
  constructor(ctx: Context, parts: StartedParts, started: readonly StartedSession[]) {
    this.#ctx = ctx;
    this.#agents = parts.agents;
    this.#delete = parts.deleteSession;
    this.#sandbox = parts.sandbox;
    this.#started = started;
  }

  get started(): readonly StartedSession[] {
    return this.#started;
  }

  /** The agents that may be started. */
  agents(): CallResult {
    if (this.#agents === "any")
      return failed("The agents are not listed here. Start one by the name that you were given.");
    return succeeded(JSON.stringify(this.#agents.map(({ name, description }) => ({ name, description }))));
  }

  /** A child of the session, with its share of the budget. */
  async start(call: SessionToolInput<"start_agent_session">): Promise<CallResult> {
    try {
      const key = call.idempotency_key;
      const known = this.#started.find((one) => key !== undefined && one.key === key);
      const started = known ?? this.#begin(call);
      if (typeof started === "string") return failed(started);
      if (call.mode !== "sync") return running(started.sessionId);
      const child = this.#ctx.child(started.sessionId);
      if (started.isConversation) return await this.#turn(child);
      return succeeded(textOrJson(await this.#ctx.waitForChild(child)));
    } catch (error) {
      if (!HoldfastError.is(error) || !REFUSALS.includes(error.code)) throw error;
      return failed((error.cause as Error | undefined)?.message ?? error.message);
    }
  }

  /** @returns the new child, or the reason of its refusal. @throws HoldfastError for one that the session may not have. */
  #begin(call: SessionToolInput<"start_agent_session">): StartedSession | string {
    const asked = this.#asked(call);
    if (typeof asked === "string") return asked;
    const { agent, input, isConversation } = asked;
    const callsBack = call.mode === "async_callback";
    const notify = callsBack ? "callback" : isConversation ? "events" : "end";
    const patience = call.timeout_seconds === undefined ? {} : { timeoutMs: call.timeout_seconds * 1_000 };
    const target = typeof agent === "string" ? remote(agent) : local(agent);
    const started: StartedSession = {
      sessionId: this.#ctx.spawnAgent(target, input, { notify, ...patience }).sessionId,
      agent: target.name,
      isConversation,
      ...(callsBack ? { callsBack } : {}),
      ...defined({ key: call.idempotency_key }),
    };
    this.#started = [...this.#started, started];
    return started;
  }

  /** The start that a call asks for, or the reason of its refusal. */
  #asked(call: SessionToolInput<"start_agent_session">): AskedStart | string {
    const { parameters, input = parameters, mode } = call;
    const agents = this.#agents;
    if (input === undefined || (parameters !== undefined && call.input !== undefined))
      return "Give either `parameters` or `input`.";
    if (call.project_dir !== undefined)
      return "Leave `project_dir` out: an agent that you start works where its machine lets it.";
    const name = call.agent_name ?? (agents.length === 1 && agents !== "any" ? agents[0]!.name : undefined);
    if (name === undefined) return "Name the agent in `agent_name`. list_agent_blueprints lists them.";
    const agent = agents === "any" ? name : agents.find((one) => one.name === name);
    if (agent === undefined) return `There is no agent "${name}" that you may start.`;
    const isConversation = fieldsOf(input)["conversation"] === true;
    if (isConversation && mode === "async_callback") return ENDLESS;
    // started-sessions-4.
    const sandbox = this.#sandbox;
    if (sandbox === undefined) return { agent, input, isConversation };
    const { sandbox: wanted = sandbox } = fieldsOf(input);
    if (!isFields(input) || wanted !== sandbox)
      return `You work in the sandbox "${sandbox}", and so do the sessions that you start.`;
    return { agent, input: { ...input, sandbox }, isConversation };
  }

  async resume(call: SessionToolInput<"resume_agent_session">): Promise<CallResult> {
    const { session_id: id, parameters, mode, idempotency_key: key } = call;
    if (mode === "async_callback") return failed(ENDLESS);
    const known = this.#find(id);
    if (known === undefined) return unknown(id);
    const child = this.#ctx.child(id);
    const answer = (): CallResult | Promise<CallResult> =>
      mode === "async_poll" ? running(id) : this.#turn(child);
    if (key !== undefined && known.promptKey === key) return answer();
    const { status, detail, length } = await this.#look(id);
    if (ENDS.includes(detail ?? ""))
      return failed(`Session ${id} has ended (${detail}) and takes no prompt. Start a new one.`);
    if (!known.isConversation)
      return failed(
        `Session ${id} is no conversation and ends with its answer. Start one with {"conversation": true} in its parameters.`,
      );
    // Another prompt may have been sent since this look began.
    if (status !== "finished" || length <= this.#promptedAt(id))
      return failed(`Session ${id} still works on its last prompt.`);
    this.#ctx.signalChild(child, NEXT_INPUT, requestText(parameters));
    const { promptKey: _earlier, ...others } = known;
    const prompted = { ...others, promptedAt: length, ...defined({ promptKey: key }) };
    this.#started = this.#started.map((one) => (one.sessionId === id ? prompted : one));
    return answer();
  }

  async list(): Promise<CallResult> {
    const sessions = this.#started.map(async ({ sessionId, agent }) => {
      const { status, detail } = await this.#look(sessionId);
      return { session_id: sessionId, agent_name: agent, status, detail };
    });
    const found = await Promise.all(sessions);
    return shown({ sessions: found.filter(({ status }) => status !== "not_existent") });
  }

  async status(id: string): Promise<CallResult> {
    if (this.#find(id) === undefined) return shown({ session_id: id, status: "not_existent" });
    const { status, detail, isError } = await this.#look(id);
    return shown({ session_id: id, status, detail, ...defined({ failed: isError }) });
  }

  async result(id: string): Promise<CallResult> {
    const looked = this.#find(id) === undefined ? undefined : await this.#look(id, { withResult: true });
    return looked === undefined || looked.status === "not_existent" ? unknown(id) : resultOf(id, looked);
  }

  async deleteEnded(): Promise<CallResult> {
    const remove = this.#delete;
    if (remove === undefined) return failed("Deleting sessions is not enabled here.");
    let deleted: readonly string[] = [];
    for (const { sessionId } of this.#started) {
      const { detail = "" } = await this.#look(sessionId);
      if (!ENDS.includes(detail)) continue;
      const isDeleted = await this.#ctx.run("delete_session", (task) => remove(sessionId, task));
      if (isDeleted) deleted = [...deleted, sessionId];
    }
    this.#started = this.#started.filter(({ sessionId }) => !deleted.includes(sessionId));
    return shown({ deleted: deleted.length, kept: this.#started.length });
  }

  #find(id: string): StartedSession | undefined {
    return this.#started.find(({ sessionId }) => sessionId === id);
  }

  /** Events of the child say when to look. */
  async #turn(child: ChildHandle): Promise<CallResult> {
    for (;;) {
      for (let looks = 0; looks < LOOKS; looks++) {
        const looked = await this.#look(child.sessionId, { withResult: true });
        if (looked.status !== "running") return resultOf(child.sessionId, looked);
        await this.#ctx.sleep(LOOK_MS);
      }
      await this.#event(child);
    }
  }

  #event(child: ChildHandle): Promise<unknown> {
    const { sessionId } = child;
    const open = this.#next.get(sessionId);
    if (open !== undefined) return open;
    const next = this.#ctx.waitForChildEvent(child).then(() => this.#next.delete(sessionId));
    this.#next.set(sessionId, next);
    return next;
  }

  #promptedAt(id: string): number {
    return this.#find(id)?.promptedAt ?? 0;
  }

  async #look(id: string, { withResult = false }: { readonly withResult?: boolean } = {}): Promise<Looked> {
    const looked = await this.#ctx.run("look_at_session", async (task) =>
      lookedAt(await task.readSession(id), withResult),
    );
    const isEarlier = looked.status === "finished" && looked.length <= this.#promptedAt(id);
    return isEarlier ? { ...looked, status: "running" } : looked;
  }
}

/** A conversation that waits for its next request has finished its turn, although it has not ended. */
function lookedAt(session: Session | undefined, withResult: boolean): Looked {
  if (session === undefined) return { status: "not_existent", length: 0 };
  const { status: detail, waits, nextSeq: length, output, progress, error } = session;
  const common = { detail, length };
  const isWaiting =
    detail === "waiting" && waits.some((wait) => wait.type === "signal" && wait.name === NEXT_INPUT);
  if (isWaiting || detail === "completed") {
    const text = answerIn(isWaiting ? progress : output);
    return { ...common, status: "finished", isError: false, ...(withResult ? { result: text } : {}) };
  }
  if (!ENDS.includes(detail)) return { ...common, status: "running" };
  const why = error === undefined ? "" : `: ${error.message}`;
  return {
    ...common,
    status: "finished",
    isError: true,
    ...(withResult ? { result: `The session ${detail}${why}` } : {}),
  };
}

/** The answer in an output, or in the progress that a turn reported. */
function answerIn(json: Session["output"]): string {
  if (json === undefined) return "";
  const value = decodeJson(json);
  const { answer } = (value ?? {}) as { readonly answer?: unknown };
  const text = textOrJson(answer ?? value);
  if (text.length <= RESULT_CHARS) return text;
  return `${text.slice(0, RESULT_CHARS)}\n[cut: the result has ${text.length} characters, and ${RESULT_CHARS} is the limit]`;
}

function resultOf(id: string, { status, result, isError = false }: Looked): CallResult {
  const { text } = shown({ session_id: id, status, ...(status === "finished" ? { result } : {}) });
  return { text, isError };
}

function unknown(id: string): CallResult {
  return failed(`You have started no session ${id}. list_agent_sessions lists yours.`);
}

function running(id: string): CallResult {
  return shown({ session_id: id, status: "running" });
}

function shown(value: Readonly<Record<string, unknown>>): CallResult {
  return succeeded(JSON.stringify(value));
}

export const succeeded = (text: string): CallResult => ({ text, isError: false });
export const failed = (text: string): CallResult => ({ text, isError: true });
