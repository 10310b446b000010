// `sessionService` serves sessions over the API: requests become changes to storage, and rows become answers.
//
//   X14. Every request that changes something is one audited change.
//   session-service-1. A request that is repeated is answered again: cancelling a cancelled session is no
//       error. Cancelling a session that ended otherwise is one, because it will never be cancelled.
//
// This service decides nothing about a session. The rules of core do, in the transaction.

import { createHash } from "node:crypto";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  answerSignalName,
  checkBudget,
  checkPer,
  ConflictError,
  decodeJson,
  forkSession,
  HoldfastError,
  isEnded,
  LIMITS,
  mintId,
  NotFoundError,
  UsageError,
  type Change,
  type Per,
  type ChangeResult,
  type ImportSession,
  type Session,
} from "@holdfast/core";
import {
  answerKey,
  exportLines,
  noSuchQuestion,
  openQuestion,
  readOrigin,
  refuseAnswer,
  refuseIfLarge,
  refuseSignalName,
  type FileImport,
} from "@holdfast/core/internal";
import type { ForkRequest, SessionService, SignalResponse } from "@holdfast/proto";
import { unnamedAnswer } from "@holdfast/proto/view";
import { bytesOf, bytesOfValue, textOf } from "../call/json-field.ts";
import { NO_CONTENT, setRestStatus } from "../call/caller.ts";
import { auditOf, callOf, type Call } from "../call/call.ts";
import {
  audited,
  notifyImported,
  sessionNotFound,
  sessionObject,
  unexpected,
  type ServiceHost,
} from "./service-host.ts";
import { budgetOf, entryMessage, errorMessage, type SessionMessage } from "./session-message.ts";
import { mayTouch, ownSession } from "./session-scope.ts";
import { listedMessage, sessionLister } from "./session-lister.ts";
import { creationOf, notHeld, refuseOther } from "./session-start.ts";
import { allWatcher, untilEnded, watchSession } from "./session-watch.ts";
import { scopeChange } from "./storage-scope.ts";
import { readLines } from "./storage-wire.ts";

const PAGE = 100;
const JOURNAL_PAGE = 500;
/** How long `sync` waits by default. */
const WAIT_MS = 30_000;

export function sessionService(host: ServiceHost): ServiceImpl<typeof SessionService> {
  const messageFor = async (session: Session): Promise<SessionMessage> =>
    listedMessage(
      host,
      session,
      openQuestion(session, undefined) && (await pendingNames(host, session.sessionId)),
    );
  const found = async (sessionId: string): Promise<Session> => {
    const session = await host.storage.reader.session(sessionId);
    if (session === undefined) throw sessionNotFound(sessionId);
    return session;
  };

  /** Commits a change of a session's state, and answers with the session after it. */
  const ask = async (
    change: Extract<Change, { type: "request_cancel" | "pause_session" | "resume_session" | "set_budget" }>,
    action: string,
    call: Call,
  ): Promise<SessionMessage> => {
    await ownSession(host, call.caller, change.sessionId);
    const result = await audited(host, change, auditOf(call, action, sessionObject(change)));
    if (result.status === "invalid")
      throw new UsageError(result.reason, { fix: "get the session first; nothing was changed" });
    if (result.status === "not_found") throw sessionNotFound(change.sessionId);
    if (result.status !== "requested" && result.status !== "ended") throw unexpected(action, result);
    const isSo = change.type === "request_cancel" && result.sessionStatus === "cancelled";
    if (result.status === "ended" && !isSo) {
      const message = `session ${change.sessionId} has ended (${result.sessionStatus})`;
      throw new ConflictError("run_terminal", message, { fix: AFTER_END });
    }
    return messageFor(await found(change.sessionId)); // session-service-1.
  };

  return {
    async start(request, context) {
      const call = callOf(context);
      const change = await creationOf(host, request, call);
      const { sessionId } = change;
      const result = await audited(host, change, auditOf(call, "session.start", sessionObject(change)));
      if (result.status === "invalid") throw new UsageError(result.reason);
      if (result.status === "fenced" && change.under !== undefined) throw notHeld(change.under.sessionId);
      if (result.status === "duplicate")
        throw new NotFoundError(
          "session_not_found",
          `the queued task ${sessionId} existed before and was removed: it is not done again`,
        );
      if (result.status !== "created" && result.status !== "exists") throw unexpected("starting", result);
      const session = await found(sessionId);
      if (result.status === "exists") {
        if (!(await mayTouch(host, call.caller, session)))
          throw new ConflictError("session_exists", `session ${sessionId} cannot be created`, {
            fix: "choose another id, or none",
          });
        refuseOther(session, change, request);
      }
      if (result.status === "created") host.dispatcher.created(session);
      if (request.invocation !== "sync") return messageFor(session);
      return messageFor(await untilEnded(host, sessionId, request.waitMs ?? WAIT_MS, call));
    },

    async get({ sessionId }, context) {
      return messageFor(await ownSession(host, callOf(context).caller, sessionId));
    },

    ...sessionLister(host),

    async getResult({ sessionId, waitMs = 0 }, context) {
      const session = await untilEnded(host, sessionId, waitMs, callOf(context));
      const { status, output, error } = session;
      return {
        sessionId,
        status,
        ended: isEnded(status),
        ...(output === undefined ? {} : { output: bytesOf(output) }),
        ...(error === undefined ? {} : { error: errorMessage(error) }),
      };
    },

    async signal({ sessionId, name, payload, dedupKey }, context) {
      const call = callOf(context);
      refuseSignalName(name);
      const text = textOf(payload, "payload");
      refuseIfLarge(text, `payload of signal "${name}"`, LIMITS.payloadChars);
      await ownSession(host, call.caller, sessionId);
      return send(host, { sessionId, name, text, dedupKey }, "session.signal", call);
    },

    async answer({ sessionId, question, answer }, context) {
      const call = callOf(context);
      const text = textOf(answer, "answer");
      refuseIfLarge(text, "answer", LIMITS.payloadChars);
      const session = await ownSession(host, call.caller, sessionId);
      const id = question === undefined ? undefined : numberOf(question);
      const wait =
        question === undefined
          ? onlyQuestion(session, await pendingNames(host, sessionId))
          : openQuestion(session, id ?? NO_QUESTION);
      if (wait === undefined) {
        const given = id === undefined ? undefined : answerSignalName(id);
        if (
          given !== undefined &&
          (await wasConsumed(host, sessionId, keyedSignalId(sessionId, given, given, text)))
        )
          return { question: given }; // session-service-1.
        if (isEnded(session.status)) throw hasEnded(session);
        throw new NotFoundError("question_not_found", noSuchQuestion(session, question), {
          at: "question",
          fix: "get the session to see its open questions; omit `question` to answer the only one",
        });
      }
      refuseAnswer(wait, decodeJson(text));
      const dedupKey = answerKey(wait); // The first of several answers counts.
      await send(host, { sessionId, name: wait.name, text, dedupKey }, "session.answer", call);
      return { question: wait.name };
    },

    async cancel({ sessionId, mode = "graceful", graceMs, reason }, context) {
      const call = callOf(context);
      const before = await ownSession(host, call.caller, sessionId);
      const isHard = mode === "hard";
      const message = await ask(
        {
          type: "request_cancel",
          sessionId,
          mode: isHard ? "hard" : "graceful",
          graceMs: graceMs === undefined ? LIMITS.cancelGraceMs : Number(graceMs),
          ...(reason === undefined ? {} : { reason }),
        },
        "session.cancel",
        call,
      );
      const holder = host.dispatcher.holdings.find(sessionId)?.runnerId;
      if (isHard && holder !== undefined) host.dispatcher.stop(holder, sessionId);
      if (before.cancel !== undefined) setRestStatus(context, 200); // session-service-1: nothing new was accepted.
      return message;
    },

    pause: ({ sessionId }, context) =>
      ask({ type: "pause_session", sessionId }, "session.pause", callOf(context)),

    unpause: ({ sessionId }, context) =>
      ask({ type: "resume_session", sessionId }, "session.unpause", callOf(context)),

    async setBudget({ sessionId, budget }, context) {
      if (budget === undefined) throw new UsageError("no limit is given", { at: "budget" });
      const limits = checkBudget(budgetOf(budget));
      return ask({ type: "set_budget", sessionId, limits }, "session.budget", callOf(context));
    },

    grantWindow: ({ sessionId, per }, context) =>
      ask(
        { type: "set_budget", sessionId, limits: {}, grant: checkPer(per as Per) },
        "session.grant_window",
        callOf(context),
      ),

    releaseLost: ({ sessionId }, context) =>
      ask(
        { type: "set_budget", sessionId, limits: {}, releaseLost: true },
        "session.release_lost",
        callOf(context),
      ),

    async fork(request, context) {
      const call = callOf(context);
      const origin = await ownSession(host, call.caller, request.sessionId);
      const change = await forkOf(host, origin, request);
      return messageFor(await store(host, change, "session.fork", call));
    },

    async delete({ sessionId, subtree = "refuse" }, context) {
      const call = callOf(context);
      await ownSession(host, call.caller, sessionId);
      const result = await audited(
        host,
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
    },

    async listEntries({ sessionId, from, limit = PAGE }, context) {
      await ownSession(host, callOf(context).caller, sessionId);
      const entries = await host.storage.reader.entries(sessionId, Number(from ?? 0), limit);
      const next = entries.length < limit ? undefined : entries.at(-1);
      return {
        entries: entries.map(entryMessage),
        ...(next === undefined ? {} : { nextFrom: BigInt(next.index + 1) }),
      };
    },

    async listEvents({ sessionId, fromSeq, limit = PAGE }, context) {
      await ownSession(host, callOf(context).caller, sessionId);
      const records = await host.storage.reader.journal(sessionId, Number(fromSeq ?? 0), limit);
      const next = records.length < limit ? undefined : records.at(-1);
      return {
        records: records.map(bytesOfValue),
        ...(next === undefined ? {} : { nextFromSeq: BigInt(next.seq + 1) }),
      };
    },

    watchAll: allWatcher(host),
    watch: ({ sessionId, afterSeq }, context) =>
      watchSession(host, sessionId, Number(afterSeq ?? -1), callOf(context), messageFor, () =>
        setRestStatus(context, NO_CONTENT),
      ),

    async *export({ sessionId }, context) {
      await ownSession(host, callOf(context).caller, sessionId);
      for await (const line of exportLines(host.storage.reader, sessionId, createHash("sha256")))
        yield { line: bytesOf(line.trimEnd()) };
    },

    async import({ lines, sessionId }, context) {
      const call = callOf(context);
      const scoped = await scopeChange(host, call.caller, readLines(lines, sessionId));
      const change = "change" in scoped ? scoped.change : undefined;
      if (change?.type !== "import_session" && change?.type !== "import_tree")
        throw new UsageError("the session shares the conversation of a session that does not exist", {
          at: "lines",
          expected: "a session whose shared conversation is yours, or that has none",
        });
      return messageFor(await store(host, change, "session.import", call));
    },
  };
}

/** A number that no command has. */
const NO_QUESTION = -1;

/**
 * The question for an answer that names none: the only one without an answer. If all have one, it is the oldest, whose first answer counts.
 *
 * @throws UsageError where there are several.
 */
function onlyQuestion(session: Session, pending: ReadonlySet<string>): ReturnType<typeof openQuestion> {
  const unanswered = session.waits
    .filter((wait) => wait.type === "input")
    .filter(({ name }) => !pending.has(name));
  if (unanswered.length < 2) return openQuestion(session, undefined, pending);
  const { message, ...details } = unnamedAnswer(session.sessionId, unanswered);
  throw new UsageError(message, { at: "question", ...details });
}

/** The number of a question, given alone or as the name of the signal that answers it. */
function numberOf(question: string): number | undefined {
  const digits = /^(?:answer:)?(\d+)$/.exec(question)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** The names of stored signals that are not read. */
async function pendingNames({ storage }: ServiceHost, sessionId: string): Promise<ReadonlySet<string>> {
  return new Set((await storage.reader.pendingSignals(sessionId)).map(({ name }) => name));
}

type Receipt = Pick<SignalResponse, "status" | "signalId">;

interface Sent {
  readonly sessionId: string;
  readonly name: string;
  readonly text: string | undefined;
  readonly dedupKey: string | undefined;
}

/** Sends a signal. It is stored before the answer. */
async function send(host: ServiceHost, sent: Sent, action: string, call: Call): Promise<Receipt> {
  const { sessionId, name, text, dedupKey } = sent;
  const signalId =
    dedupKey === undefined
      ? mintId("sig", host.clock.now(), () => host.random.u32())
      : keyedSignalId(sessionId, name, dedupKey, text);
  const result = await audited(
    host,
    {
      type: "send_signal",
      sessionId,
      signalId,
      name,
      payload: text,
      ...(dedupKey === undefined ? {} : { dedupKey }),
    },
    auditOf(call, action, sessionObject({ sessionId })),
  );
  switch (result.status) {
    case "stored":
    case "duplicate":
      return { status: result.status, signalId };
    case "ended":
      // session-service-1. The first answer may have been lost, and may have ended the session.
      if (dedupKey !== undefined && (await wasConsumed(host, sessionId, signalId)))
        return { status: "duplicate", signalId };
      throw hasEnded({ sessionId, status: result.sessionStatus });
    case "not_found":
      throw sessionNotFound(sessionId);
    case "invalid":
      throw new HoldfastError("limit_exceeded", result.reason);
    default:
      throw unexpected(action, result);
  }
}

/** An id that stays the same for a repeated signal, so that it is recognised after the session's end, too. */
function keyedSignalId(sessionId: string, name: string, key: string, text: string | undefined): string {
  const sent = JSON.stringify([sessionId, name, key, text ?? null]);
  return `sig_${createHash("sha256").update(sent).digest("hex").slice(0, 32)}`;
}

async function wasConsumed({ storage }: ServiceHost, sessionId: string, signalId: string): Promise<boolean> {
  for (let from = 0; ;) {
    const page = await storage.reader.journal(sessionId, from, JOURNAL_PAGE);
    const isThere = page.some((record) =>
      record.type === "take_signals"
        ? record.signalIds.includes(signalId)
        : record.type === "signal_received" && record.signalId === signalId,
    );
    if (isThere || page.length < JOURNAL_PAGE) return isThere;
    from += page.length;
  }
}

const AFTER_END = "fork it to continue from where it was, or start another session";

function hasEnded({ sessionId, status }: Pick<Session, "sessionId" | "status">): ConflictError {
  return new ConflictError("session_ended", `session ${sessionId} has ended (${status})`, {
    expected: "a session that has not ended",
    fix: AFTER_END,
  });
}

async function forkOf(host: ServiceHost, origin: Session, request: ForkRequest): Promise<ImportSession> {
  const { clock, random, storage } = host;
  const input = textOf(request.input, "input");
  refuseIfLarge(input, "input", LIMITS.payloadChars);
  return forkSession(await readOrigin(storage.reader, origin), {
    sessionId: request.newSessionId ?? mintId("ses", clock.now(), () => random.u32()),
    ...(request.at === undefined ? {} : { at: Number(request.at) }),
    ...(input === undefined ? {} : { input: { text: input } }),
    tasks: request.tasks === "cancel" ? "cancel" : "rerun",
    seed: random.u32(),
    now: clock.now(),
  });
}

/** Stores sessions that are imported, or one that is forked. Returns the first one. */
async function store(host: ServiceHost, change: FileImport, action: string, call: Call): Promise<Session> {
  const { sessionId } = change;
  const result: ChangeResult = await audited(host, change, auditOf(call, action, sessionObject(change)));
  switch (result.status) {
    case "created": {
      await notifyImported(host, change);
      const session = await host.storage.reader.session(sessionId);
      if (session === undefined) throw sessionNotFound(sessionId);
      return session;
    }
    case "exists":
      throw new ConflictError("session_exists", `there is a session ${sessionId} already`, {
        fix: "choose another id, or none",
      });
    case "invalid":
      throw new UsageError(result.reason);
    default:
      throw unexpected(action, result);
  }
}
