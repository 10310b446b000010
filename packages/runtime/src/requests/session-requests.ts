// `SessionRequests`: the requests to a stored session, in any process, such as a signal, a cancel or a pause.
//
// Each request is one change, answered once it is durable. The storage rules decide its effect.

import {
  addAmounts,
  type AgentStorage,
  type Amount,
  answerKey,
  type Budget,
  checkBudget,
  checkGrace,
  checkPer,
  type Clock,
  ConflictError,
  defined,
  encodeJson,
  HoldfastError,
  LIMITS,
  type Limits,
  mintId,
  NO_AMOUNT,
  noSuchQuestion,
  openQuestion,
  type PauseSession,
  type Per,
  type Prices,
  type Random,
  refuseAnswer,
  refuseIfLarge,
  refuseSignalName,
  type RemainingBudget,
  type ResumeSession,
  type SessionStatus,
  type SetBudget,
  type SignalReceipt,
  type SignalSource,
  titleFrom,
  toHoldfastError,
  UsageError,
} from "@holdfast/core";
import { GroupCommitter } from "../loop/group-committer.ts";
import { clockFor, systemRandom } from "../node/node-ports.ts";
import type { TaskSignalOptions } from "../agents/define.ts";
import { sessionMoved, sessionNotFound } from "../session/session-errors.ts";
import { findSession } from "../claims/find-session.ts";
import type {
  AnswerOptions,
  CancelOptions,
  CancelReceipt,
  Runtime,
  SignalOptions,
} from "../api/runtime-api.ts";

export interface SessionRequestsHost {
  readonly storage: AgentStorage;
  readonly committer: GroupCommitter;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: Limits;
  /** The prices of models, for signals that spend. */
  readonly prices?: Prices | undefined;
  /** Look for due sessions at this time, in a process that drives sessions. */
  lookAt?(at: number): void;
}

/** The requests to the sessions of a storage, in a process that drives none. */
export function requestsOver(storage: AgentStorage): SessionRequests {
  const clock = clockFor(storage);
  const committer = new GroupCommitter(storage, clock);
  return new SessionRequests({ storage, committer, clock, random: systemRandom(), limits: LIMITS });
}

export class SessionRequests {
  readonly #host: SessionRequestsHost;

  constructor(host: SessionRequestsHost) {
    this.#host = host;
  }

  async answer(
    sessionId: string,
    answer: unknown,
    { question, ...options }: AnswerOptions = {},
  ): Promise<SignalReceipt> {
    const { reader } = this.#host.storage;
    const session = await findSession(reader, sessionId);
    const pending = question === undefined ? await reader.pendingSignals(sessionId) : [];
    const wait = openQuestion(session, question, new Set(pending.map(({ name }) => name)));
    if (wait === undefined) return { status: "refused", reason: noSuchQuestion(session, question) };
    refuseAnswer(wait, answer);
    return this.#send(sessionId, wait.name, answer, { ...options, dedupKey: answerKey(wait) });
  }

  async signal(
    sessionId: string,
    name: string,
    payload?: unknown,
    options: SignalOptions = {},
  ): Promise<SignalReceipt> {
    refuseSignalName(name);
    return this.#send(sessionId, name, payload, options);
  }

  /** A signal of a task to its session. */
  async taskSignal(
    sessionId: string,
    name: string,
    payload: unknown,
    { spends = [], ...options }: TaskSignalOptions,
  ): Promise<SignalReceipt & { readonly unspent?: RemainingBudget }> {
    refuseSignalName(name);
    const { prices } = this.#host;
    const used = spends.map((usage) => ({
      ...NO_AMOUNT,
      tokens: usage.inputTokens + usage.outputTokens,
      costMicroUsd: prices?.(usage) ?? usage.costMicroUsd ?? 0,
    }));
    const charged = used.length === 0 ? {} : { spends: used.reduce(addAmounts) };
    return this.#send(sessionId, name, payload, { ...options, ...charged });
  }

  async #send(
    sessionId: string,
    name: string,
    payload: unknown,
    { dedupKey, signalId, spends }: SignalOptions & { readonly spends?: Amount },
  ): Promise<SignalReceipt & { readonly unspent?: RemainingBudget }> {
    const { committer, clock, random, limits } = this.#host;
    const result = await committer.commit({
      type: "send_signal",
      sessionId,
      signalId: signalId ?? mintId("sig", clock.now(), () => random.u32()),
      name,
      payload: payloadText(name, payload, limits),
      ...defined({ dedupKey, spends }),
    });
    switch (result.status) {
      case "stored":
      case "duplicate": {
        const { status, unspent } = result;
        return unspent === undefined ? { status } : { status, unspent };
      }
      case "ended":
        return { status: "refused", reason: `session ${sessionId} has ended (${result.sessionStatus})` };
      case "moved":
        throw sessionMoved(sessionId, result.to);
      case "not_found":
        throw sessionNotFound(sessionId);
      case "invalid":
        return { status: "refused", reason: result.reason };
      default:
        throw unexpected("sending a signal", result.status);
    }
  }

  async cancel(
    sessionId: string,
    { hard = false, graceMs: patienceMs = this.#host.limits.cancelGraceMs, reason }: CancelOptions = {},
  ): Promise<CancelReceipt> {
    const graceMs = checkGrace(patienceMs, "a session");
    const result = await this.#host.committer.commit({
      type: "request_cancel",
      sessionId,
      mode: hard ? "hard" : "graceful",
      graceMs,
      ...defined({ reason }),
    });
    switch (result.status) {
      case "requested":
        // The session ends at the deadline at the latest, even if its agent does not.
        if (!hard) this.#host.lookAt?.(this.#host.clock.now() + graceMs);
        return { status: "requested", sessionStatus: result.sessionStatus };
      case "ended":
        return { status: "already_ended", sessionStatus: result.sessionStatus };
      case "moved":
        throw sessionMoved(sessionId, result.to);
      case "not_found":
        throw sessionNotFound(sessionId);
      default:
        throw unexpected("cancelling", result.status);
    }
  }

  pause(sessionId: string): Promise<SessionStatus> {
    return this.#ask({ type: "pause_session", sessionId }, "pausing");
  }

  unpause(sessionId: string): Promise<SessionStatus> {
    return this.#ask({ type: "resume_session", sessionId }, "resuming");
  }

  /** Commit a change that affects only the status of a session. Answers the new status. */
  async #ask(change: PauseSession | ResumeSession | SetBudget, doing: string): Promise<SessionStatus> {
    const result = await this.#host.committer.commit(change);
    switch (result.status) {
      case "requested":
        return result.sessionStatus;
      case "ended":
        if (change.type === "set_budget") throw nobodyToPayFor(change.sessionId, result.sessionStatus);
        return result.sessionStatus;
      case "moved":
        throw sessionMoved(change.sessionId, result.to);
      case "not_found":
        throw sessionNotFound(change.sessionId);
      case "invalid":
        throw new UsageError(result.reason);
      default:
        throw unexpected(doing, result.status);
    }
  }

  async setTitle(sessionId: string, title: string): Promise<void> {
    if (typeof title !== "string")
      throw new UsageError("the title of a session is a text", { got: typeof title });
    const { storage, committer } = this.#host;
    const wanted = titleFrom({ title, input: (await findSession(storage.reader, sessionId)).input });
    const result = await committer.commit({ type: "set_title", sessionId, ...defined({ title: wanted }) });
    switch (result.status) {
      case "done":
        return;
      case "moved":
        throw sessionMoved(sessionId, result.to);
      case "not_found":
        throw sessionNotFound(sessionId);
      default:
        throw unexpected("changing the title", result.status);
    }
  }

  async setBudget(sessionId: string, limits: Budget): Promise<SessionStatus> {
    return this.#ask({ type: "set_budget", sessionId, limits: checkBudget(limits) }, "raising the budget");
  }

  async grantWindow(sessionId: string, per: Per): Promise<SessionStatus> {
    const change = { type: "set_budget", sessionId, limits: {}, grant: checkPer(per) } as const;
    return this.#ask(change, "granting a window");
  }

  releaseLost(sessionId: string): Promise<SessionStatus> {
    const change = { type: "set_budget", sessionId, limits: {}, releaseLost: true } as const;
    return this.#ask(change, "releasing what was lost");
  }
}

/** @throws UsageError when it is no JSON or too large. */
export function payloadText(name: string, payload: unknown, limits: Limits): string | undefined {
  const what = `payload of signal "${name}"`;
  const text = encodeJson(payload, what);
  refuseIfLarge(text, what, limits.payloadChars);
  return text;
}

/** Send the signals that a source receives. Answers a function that closes the source. */
export function openSource(source: SignalSource, send: Runtime["signal"]): () => Promise<void> {
  const opening = source.open(async ({ sessionId, name, payload, dedupKey }) => {
    try {
      return await send(sessionId, name, payload, dedupKey === undefined ? {} : { dedupKey });
    } catch (error) {
      return { status: "refused", reason: toHoldfastError(error).message };
    }
  });
  return async () => (await opening).close();
}

function nobodyToPayFor(sessionId: string, status: SessionStatus): ConflictError {
  return new ConflictError(
    "session_ended",
    `session ${sessionId} has ended (${status}), and nothing that it paid for goes on`,
    { fix: "start another session with a budget" },
  );
}

export function unexpected(doing: string, status: string): HoldfastError {
  return new HoldfastError("internal", `${doing}: storage answered "${status}"`);
}
