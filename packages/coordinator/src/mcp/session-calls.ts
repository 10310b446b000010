// `SessionCalls` starts and continues sessions for the tools, waits for the end of a turn, lists sessions and
// deletes them.
//
//   - A start that is repeated finds the session of the first (`start-id.ts`), also while the first call
//     still waits.
//   - A wait ends with the turn, when a person is needed, or after `WAIT_MS`. The session continues in any
//     case.
//   - Only ended sessions of the same caller are deleted.
//   - With tags the caller sees and starts the agents that have all of them. Sessions have no tags.

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { defined, didYouMean, HoldfastError, MINUTE_MS, NEXT_INPUT, UsageError } from "@holdfast/core";
import type { Session } from "@holdfast/proto";

import type { Orchestrator } from "./orchestrator.ts";
import { turnAfter, turnOf, type SessionTurn } from "../endpoint/session-turn.ts";
import { idPrefix, startId } from "./start-id.ts";

/** The longest wait of one call. */
const WAIT_MS = 10 * MINUTE_MS;
const RECONNECT_MS = 1_000;
/** An answer about a session that ended longer ago was received, or is not waited for any more. */
const REPEAT_MS = 10 * MINUTE_MS;
/** Equal requests of one caller that are told apart by their round. */
const ROUNDS_MAX = 64;
const LIST_MAX = 100;
const DELETE_PAGE = 1_000;
const DELETE_PAGES_MAX = 10;
const ENDED = ["completed", "failed", "cancelled"] as const;
const encoder = new TextEncoder();

export interface StartCall {
  readonly agent: string;
  readonly input: unknown;
  readonly key: string | undefined;
  /** Whether the calling session is resumed with the result. */
  readonly callsBack: boolean;
  /** The session is cancelled after this time; `undefined` for no limit. */
  readonly seconds: number | undefined;
}

export class SessionCalls {
  readonly #orchestrator: Orchestrator;

  constructor(orchestrator: Orchestrator) {
    this.#orchestrator = orchestrator;
  }

  /** The agent that is meant. @throws UsageError when it is not clear. */
  async agentNamed(name: string | undefined): Promise<string> {
    const { tags } = this.#orchestrator;
    if (name !== undefined && tags.length === 0) return name;
    const names = (await this.agents()).map((agent) => agent.name);
    const [only] = names;
    if (name !== undefined && names.includes(name)) return name;
    if (name !== undefined)
      throw new UsageError(`there is no agent "${name}" with the tags ${tags.join(", ")}`, {
        at: "X-Agent-Tags",
        expected: names.length === 0 ? "an agent that has them" : `one of ${names.join(", ")}`,
        fix: "give the name of another agent, or leave tags out",
      });
    if (only !== undefined && names.length === 1) return only;
    throw new UsageError("no agent is named", {
      expected: names.length === 0 ? "a runner that offers an agent" : `one of ${names.join(", ")}`,
      fix: names.length === 0 ? "start a runner, such as `holdfast runner --agents FILE`" : "give agent_name",
    });
  }

  async agents() {
    const { runners, tags } = this.#orchestrator;
    const { agents } = await this.#ask(() => runners.listAgents({}));
    return agents.filter((agent) => tags.every((tag) => agent.tags.includes(tag)));
  }

  /** @returns the id of the session. */
  async start({ agent, input, key, callsBack, seconds }: StartCall): Promise<string> {
    const { sessions, demands, parentSessionId } = this.#orchestrator;
    const sessionId = await this.#idFor({ agent, input, callsBack, parentSessionId }, key);
    await this.#refuseUnknown(agent, sessionId);
    await this.#ask(() =>
      sessions.start({
        agent,
        input: encoder.encode(JSON.stringify(input)),
        sessionId,
        demands,
        invocation: callsBack ? "async_callback" : "async_poll",
        ...defined({ parentSessionId }),
        ...(seconds === undefined ? {} : { timeoutMs: BigInt(seconds * 1_000) }),
      }),
    );
    return sessionId;
  }

  /**
   * Refuses an agent that no runner offers, which would wait for a runner longer than a client waits for its
   * answer. A repeated start finds its session in any case.
   */
  async #refuseUnknown(agent: string, sessionId: string): Promise<void> {
    const names = (await this.agents()).map(({ name }) => name);
    if (names.includes(agent) || (await this.get(sessionId)) !== undefined) return;
    throw new UsageError(`no runner offers the agent "${agent}"${didYouMean(agent, names)}`, {
      at: "agent_name",
      expected: names.length === 0 ? "a runner that offers an agent" : `one of ${names.join(", ")}`,
      fix: "give the name of another agent, or start a runner that offers it",
    });
  }

  /** Sends the next prompt of a conversation. @returns the length of its journal before. */
  async prompt(sessionId: string, parameters: unknown, key: string | undefined): Promise<bigint> {
    const { sessions, caller } = this.#orchestrator;
    const session = await this.get(sessionId);
    if (session === undefined) throw sessionNotFound(sessionId);
    if (ENDED.some((status) => status === session.status))
      throw new HoldfastError("session_ended", `session ${sessionId} has ended and takes no prompt`, {
        got: session.status,
        fix: "start a new session",
      });
    // The journal is part of the key: an equal prompt after the next turn is a new prompt.
    const asked = startId({
      caller,
      key,
      request: [sessionId, parameters, String(session.nextSeq)],
      round: 0,
    });
    const payload = encoder.encode(JSON.stringify(parameters));
    await this.#ask(() => sessions.signal({ sessionId, name: NEXT_INPUT, payload, dedupKey: asked }));
    return session.nextSeq;
  }

  async get(sessionId: string): Promise<Session | undefined> {
    try {
      return await this.#ask(() => this.#orchestrator.sessions.get({ sessionId }));
    } catch (error) {
      if (HoldfastError.is(error) && error.code === "session_not_found") return undefined;
      throw error;
    }
  }

  async answer(sessionId: string, question: string, answer: unknown): Promise<void> {
    const given = encoder.encode(JSON.stringify(answer));
    await this.#ask(() => this.#orchestrator.sessions.answer({ sessionId, question, answer: given }));
  }

  async cancel(sessionId: string): Promise<void> {
    await this.#ask(() =>
      this.#orchestrator.sessions.cancel({
        sessionId,
        reason: "a client of the orchestrator's tools cancelled it",
      }),
    );
  }

  /** @param after the length of the journal that the turn has to exceed. */
  async turn(
    sessionId: string,
    signal: AbortSignal,
    { after = -1n, waitMs = WAIT_MS }: { readonly after?: bigint | undefined; readonly waitMs?: number } = {},
  ): Promise<SessionTurn> {
    const deadline = AbortSignal.timeout(waitMs);
    for (;;) {
      try {
        return await this.#follow(sessionId, AbortSignal.any([signal, deadline]), after);
      } catch (thrown) {
        signal.throwIfAborted();
        if (deadline.aborted) return { type: "running" };
        const error = await this.#orchestrator.explained(thrown);
        if (error.code !== "unavailable" && error.code !== "storage_unavailable") throw error;
        await delay(RECONNECT_MS, undefined, { signal });
      }
    }
  }

  async list(cursor: string | undefined) {
    const { sessions } = this.#orchestrator;
    return this.#ask(() => sessions.list({ limit: LIST_MAX, ...defined({ cursor }) }));
  }

  async deleteEnded(): Promise<{ readonly deleted: number; readonly kept: number }> {
    let [deleted, kept] = [0, 0];
    for (const status of ENDED) {
      for (const { sessionId } of await this.#ownSessions(status)) {
        const isDeleted = await this.#delete(sessionId);
        if (isDeleted) deleted++;
        else kept++;
      }
    }
    return { deleted, kept };
  }

  async #ownSessions(status: string): Promise<readonly Session[]> {
    const { sessions, caller } = this.#orchestrator;
    const own: Session[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < DELETE_PAGES_MAX; page++) {
      const request = { limit: DELETE_PAGE, status, ...defined({ cursor }) };
      const found = await this.#ask(() => sessions.list(request));
      own.push(...found.sessions.filter(({ sessionId }) => sessionId.startsWith(idPrefix(caller))));
      cursor = found.nextCursor;
      if (cursor === undefined) break;
    }
    return own;
  }

  /** @returns whether it is gone. A session with children stays. */
  async #delete(sessionId: string): Promise<boolean> {
    try {
      await this.#ask(() => this.#orchestrator.sessions.delete({ sessionId }));
      return true;
    } catch (error) {
      if (HoldfastError.is(error) && error.code === "session_has_children") return false;
      throw error;
    }
  }

  /** start-id-1, start-id-2. */
  async #idFor(request: unknown, key: string | undefined): Promise<string> {
    const { caller, memory } = this.#orchestrator;
    if (key !== undefined) return startId({ caller, key, request, round: 0 });
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const sessionId = startId({ caller, key, request, round });
      const session = await this.get(sessionId);
      if (session === undefined || turnOf(session).type !== "finished") return sessionId;
      const isRecent = Date.now() - Number(session.endedAt ?? session.updatedAt) < REPEAT_MS;
      if (isRecent && !memory.hasAnswered(sessionId)) return sessionId;
    }
    return `${idPrefix(caller)}${randomUUID()}`;
  }

  async #follow(sessionId: string, signal: AbortSignal, after: bigint): Promise<SessionTurn> {
    const session = await this.get(sessionId);
    if (session === undefined) throw sessionNotFound(sessionId);
    const afterSeq = session.nextSeq - 1n;
    const events = this.#orchestrator.sessions.watch({ sessionId, afterSeq }, { signal, timeoutMs: 0 });
    for await (const { event } of events) {
      if (event.case !== "session") continue;
      const turn = turnAfter(event.value, after);
      if (turn.type !== "running") return turn;
    }
    // The stream of a session that has ended before is empty.
    return turnOf((await this.get(sessionId)) ?? session);
  }

  async #ask<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (thrown) {
      throw await this.#orchestrator.explained(thrown);
    }
  }
}

function sessionNotFound(sessionId: string): HoldfastError {
  return new HoldfastError("session_not_found", `there is no session ${sessionId.slice(0, 100)}`, {
    fix: "call list_agent_sessions",
  });
}
