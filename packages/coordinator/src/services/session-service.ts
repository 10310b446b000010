// `SessionService` serves sessions over the API: requests become changes to storage, and rows become answers.
//
//   X14. Every request that changes something is one audited change.
//   session-service-1. A request that is repeated is answered again: cancelling a cancelled session is no
//       error. Cancelling a session that ended otherwise is one, because it will never be cancelled.
//
// This service decides nothing about a session. The rules of core do, in the transaction.

import { createHash } from "node:crypto";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  answerKey,
  type Change,
  checkBudget,
  checkPer,
  ConflictError,
  type CreateSession,
  decodeJson,
  defined,
  exportLines,
  isEnded,
  LIMITS,
  NotFoundError,
  type Per,
  type RecordedError,
  refuseAnswer,
  refuseIfLarge,
  refuseSignalName,
  type Session,
  titleFrom,
  UsageError,
} from "@holdfast/core";
import {
  budgetOf,
  type AnswerRequest,
  type CancelRequest,
  type DeleteSessionRequest,
  type ExportRequest,
  type ForkRequest,
  type GetResultRequest,
  type GetSessionRequest,
  type GrantWindowRequest,
  type ImportRequest,
  type CountSessionsRequest,
  type ListCostsRequest,
  type ListEntriesRequest,
  type ListEventsRequest,
  type ListSessionsRequest,
  type PauseRequest,
  type ReleaseLostRequest,
  type SetTitleRequest,
  type SessionService as Contract,
  type SetBudgetRequest,
  type SignalRequest,
  type StartRequest,
  type UnpauseRequest,
  type WatchAllRequest,
  type WatchRequest,
} from "@holdfast/proto";
import { bytesOf, bytesOfValue, textOf } from "../call/json-field.ts";
import { NO_CONTENT, setRestStatus } from "../call/caller.ts";
import { auditOf, callOf, type Call } from "../call/call.ts";
import { AllChanges } from "../store/all-changes.ts";
import { SessionCosts } from "../store/session-costs.ts";
import { audited, sessionNotFound, sessionObject, unexpected, type ServiceHost } from "./service-host.ts";
import { entryMessage, errorMessage, type SessionMessage } from "./session-message.ts";
import { mayTouch, ownSession } from "./session-scope.ts";
import { countSessions, listCosts, listedMessage, listSessions } from "./session-lister.ts";
import { creationOf, notHeld, refuseOther } from "./session-start.ts";
import { untilEnded, watchAll, watchSession } from "./session-watch.ts";
import { forkOf, storeImported } from "./sessions/imports.ts";
import {
  answeredBefore,
  answeredByMessage,
  answeredQuestion,
  pendingNames,
  refuseOtherAnswer,
} from "./sessions/questions.ts";
import { AFTER_END, sendSignal } from "./sessions/signals.ts";
import { scopeChange } from "./storage-scope.ts";
import { readLines } from "./storage-wire.ts";

const PAGE = 100;
/** How long `sync` waits by default. */
const WAIT_MS = 30_000;

export class SessionService implements ServiceImpl<typeof Contract> {
  readonly #host: ServiceHost;
  readonly #costs: SessionCosts;
  readonly #changes: AllChanges;

  constructor(host: ServiceHost) {
    this.#host = host;
    this.#costs = new SessionCosts(host.storage.reader);
    this.#changes = new AllChanges(host.storage, host.clock);
  }

  async start(request: StartRequest, context: HandlerContext): Promise<SessionMessage> {
    const call = callOf(context);
    const session = await this.#create(request, await creationOf(this.#host, request, call), call);
    if (request.invocation !== "sync") return this.#messageFor(session);
    const { sessionId } = session;
    return this.#messageFor(await untilEnded(this.#host, sessionId, request.waitMs ?? WAIT_MS, call));
  }

  async get({ sessionId }: GetSessionRequest, context: HandlerContext): Promise<SessionMessage> {
    return this.#messageFor(await ownSession(this.#host, callOf(context).caller, sessionId));
  }

  list(request: ListSessionsRequest, context: HandlerContext): ReturnType<typeof listSessions> {
    return listSessions(this.#host, request, callOf(context).caller);
  }

  count(request: CountSessionsRequest, context: HandlerContext): ReturnType<typeof countSessions> {
    return countSessions(this.#host, request, callOf(context).caller);
  }

  listCosts(request: ListCostsRequest, context: HandlerContext): ReturnType<typeof listCosts> {
    return listCosts(this.#host, this.#costs, request, callOf(context));
  }

  async getResult({ sessionId, waitMs = 0 }: GetResultRequest, context: HandlerContext) {
    const session = await untilEnded(this.#host, sessionId, waitMs, callOf(context));
    const { status, output, error = cancelError(session) } = session;
    return {
      sessionId,
      status,
      ended: isEnded(status),
      ...(output === undefined ? {} : { output: bytesOf(output) }),
      ...(error === undefined ? {} : { error: errorMessage(error) }),
    };
  }

  async signal(request: SignalRequest, context: HandlerContext) {
    const { sessionId, name, payload, dedupKey, messageId } = request;
    const call = callOf(context);
    refuseSignalName(name);
    const text = textOf(payload, "payload");
    refuseIfLarge(text, `payload of signal "${name}"`, LIMITS.payloadChars);
    await ownSession(this.#host, call.caller, sessionId);
    return sendSignal(this.#host, { sessionId, name, text, dedupKey, messageId }, "session.signal", call);
  }

  async answer({ sessionId, question, answer, messageId }: AnswerRequest, context: HandlerContext) {
    const host = this.#host;
    const call = callOf(context);
    const text = textOf(answer, "answer");
    refuseIfLarge(text, "answer", LIMITS.payloadChars);
    const session = await ownSession(host, call.caller, sessionId);
    const answered =
      messageId === undefined ? undefined : await answeredByMessage(host, sessionId, messageId);
    if (answered !== undefined) return { question: answered };
    const wait = await answeredQuestion(host, session, question);
    if (wait === undefined) return { question: await answeredBefore(host, session, question, text) };
    refuseAnswer(wait, decodeJson(text));
    const dedupKey = answerKey(wait); // The first of several answers counts.
    const sent = { sessionId, name: wait.name, text, dedupKey, messageId };
    const { status } = await sendSignal(host, sent, "session.answer", call).catch(async (error: unknown) => {
      await refuseOtherAnswer(host, session, wait, text); // It may have ended the session.
      throw error;
    });
    if (status === "duplicate") await refuseOtherAnswer(host, session, wait, text);
    return { question: wait.name };
  }

  async cancel(request: CancelRequest, context: HandlerContext): Promise<SessionMessage> {
    const { sessionId, mode = "graceful", graceMs, reason } = request;
    const call = callOf(context);
    const before = await ownSession(this.#host, call.caller, sessionId);
    const isHard = mode === "hard";
    const message = await this.#ask(
      {
        type: "request_cancel",
        sessionId,
        mode: isHard ? "hard" : "graceful",
        graceMs: graceMs === undefined ? LIMITS.cancelGraceMs : Number(graceMs),
        ...defined({ reason }),
      },
      "session.cancel",
      call,
    );
    const { dispatcher } = this.#host;
    const holder = dispatcher.holdings.find(sessionId)?.runnerId;
    if (isHard && holder !== undefined) dispatcher.stop(holder, sessionId);
    if (before.cancel !== undefined) setRestStatus(context, 200); // session-service-1: nothing new was accepted.
    return message;
  }

  pause({ sessionId }: PauseRequest, context: HandlerContext): Promise<SessionMessage> {
    return this.#ask({ type: "pause_session", sessionId }, "session.pause", callOf(context));
  }

  unpause({ sessionId }: UnpauseRequest, context: HandlerContext): Promise<SessionMessage> {
    return this.#ask({ type: "resume_session", sessionId }, "session.unpause", callOf(context));
  }

  async setTitle({ sessionId, title }: SetTitleRequest, context: HandlerContext): Promise<SessionMessage> {
    const call = callOf(context);
    const { input } = await ownSession(this.#host, call.caller, sessionId);
    const wanted = titleFrom({ title, input });
    const change = { type: "set_title", sessionId, ...defined({ title: wanted }) } as const;
    const result = await audited(this.#host, change, auditOf(call, "session.title", sessionObject(change)));
    if (result.status === "not_found") throw sessionNotFound(sessionId);
    if (result.status !== "done") throw unexpected("changing the title", result);
    return this.#messageFor(await found(this.#host, sessionId));
  }

  async setBudget({ sessionId, budget }: SetBudgetRequest, context: HandlerContext): Promise<SessionMessage> {
    if (budget === undefined) throw new UsageError("no limit is given", { at: "budget" });
    const limits = checkBudget(budgetOf(budget));
    return this.#ask({ type: "set_budget", sessionId, limits }, "session.budget", callOf(context));
  }

  grantWindow({ sessionId, per }: GrantWindowRequest, context: HandlerContext): Promise<SessionMessage> {
    const grant = checkPer(per as Per);
    const change = { type: "set_budget", sessionId, limits: {}, grant } as const;
    return this.#ask(change, "session.grant_window", callOf(context));
  }

  releaseLost({ sessionId }: ReleaseLostRequest, context: HandlerContext): Promise<SessionMessage> {
    const change = { type: "set_budget", sessionId, limits: {}, releaseLost: true } as const;
    return this.#ask(change, "session.release_lost", callOf(context));
  }

  async fork(request: ForkRequest, context: HandlerContext): Promise<SessionMessage> {
    const call = callOf(context);
    const origin = await ownSession(this.#host, call.caller, request.sessionId);
    const change = await forkOf(this.#host, origin, request);
    return this.#messageFor(await storeImported(this.#host, change, "session.fork", call));
  }

  async delete({ sessionId, subtree = "refuse" }: DeleteSessionRequest, context: HandlerContext) {
    const call = callOf(context);
    await ownSession(this.#host, call.caller, sessionId);
    const result = await audited(
      this.#host,
      { type: "delete_session", sessionId, subtree: subtree === "delete" ? "delete" : "refuse" },
      auditOf(call, "session.delete", sessionObject({ sessionId })),
    );
    switch (result.status) {
      case "deleted":
        return { sessions: result.sessions };
      case "not_ended":
        throw new ConflictError(
          "session_not_ended",
          `session ${result.sessionId} has not ended (${result.sessionStatus})`,
          {
            fix: "cancel it first",
          },
        );
      case "has_children":
        throw new ConflictError("session_has_children", `there are sessions below ${sessionId}`, {
          fix: "delete them with it: subtree=delete",
        });
      case "not_found":
        throw sessionNotFound(sessionId);
      default:
        throw unexpected("deleting", result);
    }
  }

  async listEntries({ sessionId, from, limit = PAGE }: ListEntriesRequest, context: HandlerContext) {
    await ownSession(this.#host, callOf(context).caller, sessionId);
    const entries = await this.#host.storage.reader.entries(sessionId, Number(from ?? 0), limit);
    const next = entries.length < limit ? undefined : entries.at(-1);
    return {
      entries: entries.map(entryMessage),
      ...(next === undefined ? {} : { nextFrom: BigInt(next.index + 1) }),
    };
  }

  async listEvents({ sessionId, fromSeq, limit = PAGE }: ListEventsRequest, context: HandlerContext) {
    await ownSession(this.#host, callOf(context).caller, sessionId);
    const records = await this.#host.storage.reader.journal(sessionId, Number(fromSeq ?? 0), limit);
    const next = records.length < limit ? undefined : records.at(-1);
    return {
      records: records.map(bytesOfValue),
      ...(next === undefined ? {} : { nextFromSeq: BigInt(next.seq + 1) }),
    };
  }

  watchAll(_request: WatchAllRequest, context: HandlerContext): ReturnType<typeof watchAll> {
    return watchAll(this.#host, this.#changes, callOf(context));
  }

  watch(
    { sessionId, afterSeq, drafts }: WatchRequest,
    context: HandlerContext,
  ): ReturnType<typeof watchSession> {
    return watchSession(
      this.#host,
      { sessionId, afterSeq: Number(afterSeq ?? -1), withDrafts: drafts },
      callOf(context),
      (session) => this.#messageFor(session),
      () => setRestStatus(context, NO_CONTENT),
    );
  }

  async *export({ sessionId }: ExportRequest, context: HandlerContext) {
    await ownSession(this.#host, callOf(context).caller, sessionId);
    const { reader } = this.#host.storage;
    for await (const line of exportLines(reader, sessionId, createHash("sha256")))
      yield { line: bytesOf(line.trimEnd()) };
  }

  async import({ lines, sessionId }: ImportRequest, context: HandlerContext): Promise<SessionMessage> {
    const call = callOf(context);
    const scoped = await scopeChange(this.#host, call.caller, readLines(lines, sessionId));
    const change = "change" in scoped ? scoped.change : undefined;
    if (change?.type !== "import_session" && change?.type !== "import_tree")
      throw new UsageError("the session shares the conversation of a session that does not exist", {
        at: "lines",
        expected: "a session whose shared conversation is yours, or that has none",
      });
    return this.#messageFor(await storeImported(this.#host, change, "session.import", call));
  }

  /** Creates a session, or finds the one that an equal request has created. */
  async #create(request: StartRequest, change: CreateSession, call: Call): Promise<Session> {
    const host = this.#host;
    const { sessionId, under } = change;
    const result = await audited(host, change, auditOf(call, "session.start", sessionObject(change)));
    if (result.status === "invalid") throw new UsageError(result.reason);
    if (result.status === "fenced" && under !== undefined) throw notHeld(under.sessionId);
    if (result.status === "duplicate")
      throw new NotFoundError(
        "session_not_found",
        `the queued task ${sessionId} existed before and was removed: it is not done again`,
      );
    if (result.status !== "created" && result.status !== "exists") throw unexpected("starting", result);
    const session = await found(host, sessionId);
    if (result.status === "created") host.dispatcher.created(session);
    else if (await mayTouch(host, call.caller, session)) refuseOther(session, change, request);
    else
      throw new ConflictError("session_exists", `session ${sessionId} cannot be created`, {
        fix: "choose another id, or none",
      });
    return session;
  }

  /** Commits a change of a session's state, and answers with the session after it. */
  async #ask(
    change: Extract<Change, { type: "request_cancel" | "pause_session" | "resume_session" | "set_budget" }>,
    action: string,
    call: Call,
  ): Promise<SessionMessage> {
    await ownSession(this.#host, call.caller, change.sessionId);
    const result = await audited(this.#host, change, auditOf(call, action, sessionObject(change)));
    if (result.status === "invalid")
      throw new UsageError(result.reason, { fix: "get the session first; nothing was changed" });
    if (result.status === "not_found") throw sessionNotFound(change.sessionId);
    if (result.status !== "requested" && result.status !== "ended") throw unexpected(action, result);
    const isSo = change.type === "request_cancel" && result.sessionStatus === "cancelled";
    if (result.status === "ended" && !isSo) {
      const message = `session ${change.sessionId} has ended (${result.sessionStatus})`;
      throw new ConflictError("run_terminal", message, { fix: AFTER_END });
    }
    return this.#messageFor(await found(this.#host, change.sessionId)); // session-service-1.
  }

  async #messageFor(session: Session): Promise<SessionMessage> {
    const waits = session.waits.filter((wait) => wait.type !== "timer");
    if (waits.length === 0) return listedMessage(this.#host, session);
    const { sessionId } = session;
    const stored = await pendingNames(this.#host, sessionId);
    // A signal that was taken between both reads is no longer stored, and no longer waited for.
    const later = (await this.#host.storage.reader.session(sessionId))?.waits ?? [];
    const taken = waits.filter(({ id }) => !later.some((wait) => wait.id === id));
    return listedMessage(this.#host, session, new Set([...stored, ...taken.map(({ name }) => name)]));
  }
}

async function found({ storage }: ServiceHost, sessionId: string): Promise<Session> {
  const session = await storage.reader.session(sessionId);
  if (session === undefined) throw sessionNotFound(sessionId);
  return session;
}

/** The reason of a cancel, as the error of a session that it has ended. */
function cancelError({ status, cancel }: Session): RecordedError | undefined {
  if (status !== "cancelled" || cancel?.reason === undefined) return undefined;
  return { name: "CancelledError", message: cancel.reason, code: "cancelled" };
}
