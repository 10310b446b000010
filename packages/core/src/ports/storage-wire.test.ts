// Reading received values: a value is a change or a call of the port only if every field has its type.

import { describe, expect, test } from "vitest";
import {
  ConflictError,
  CorruptRecordError,
  HoldfastError,
  LimitError,
  NotFoundError,
  UnavailableError,
} from "../errors/errors.ts";
import type { Session } from "../session/session.ts";
import { createSession } from "../rules/creation.ts";
import type { Change, CreateSession } from "../session/changes.ts";
import { isStorageCall, parseChange } from "./storage-wire-check.ts";
import { fromWireError, toWireError } from "./storage-wire.ts";

const amount = { tokens: 1, costMicroUsd: 2, steps: 3, turns: 4 };
const agent = { name: "agent", version: "1", traceparent: "t" };
const parent = { sessionId: "ses-0", child: 3, onEnd: "leave" } as const;
const record = { type: "started", seq: 0, at: 1 } as const;
const entry = { id: 0, index: 0, parent: 0, role: "user", turn: 0, content: "1" };
const schedule = {
  scheduleId: "s",
  owner: "anna",
  cron: "* * * * *",
  timeZone: "UTC",
  action: { type: "start", agent, input: "1" },
  nextAt: 1,
  lastAt: 1,
  createdAt: 1,
} as const;

const creation: CreateSession = {
  type: "create_session",
  sessionId: "ses-1",
  agent: { ...agent, file: "/a.ts" },
  input: "1",
  seed: 1,
  flags: 0,
  format: 1,
  parent,
  depth: 1,
  shared: { kind: "conversation", sessionId: "ses-0", leaf: 1 },
  persistence: "minimal",
  budget: { maxTokens: 1, onExhausted: "park" },
  deadlineAt: 1,
  resumedFrom: "1",
  placement: { owner: "anna", demands: { os: "linux" }, priority: -1 },
  claimFor: { owner: "o", leaseMs: 1 },
  first: { records: [record], entries: [entry], session: { status: "working" } },
  under: { sessionId: "ses-0", token: 1, owner: "o" },
};

/** With all its words. */
const failure = { name: "Error", message: "m", code: "c", at: "a", got: "g", expected: "e", fix: "f" };
const exhausted = { payer: "ses-0", limit: "maxTokens", used: 1, max: 1, then: "park" } as const;

const session: Session = {
  ...createSession(creation, 1),
  inbox: 0,
  cancel: { mode: "graceful", deadlineAt: 1, reason: "r", cause: "deadline", exhausted },
  error: { ...failure, cause: failure },
  move: { moveId: "mov-1", to: "there", isDone: true },
  home: { number: 1, moveId: "mov-0" },
};

const imported = {
  sessionId: "ses-1",
  session,
  records: [record],
  entries: [{ ...entry, createdAt: 1 }],
  signals: [{ signalId: "sig", name: "go", payload: "1" }],
};

/** A change of each type, with all its fields. */
const CHANGES: { readonly [type in Change["type"]]: Extract<Change, { type: type }> } = {
  create_session: creation,
  import_session: { type: "import_session", ...imported },
  import_tree: { type: "import_tree", sessionId: "ses-1", sessions: [imported] },
  send_signal: {
    type: "send_signal",
    sessionId: "ses-1",
    signalId: "sig",
    name: "go",
    payload: "1",
    dedupKey: "k",
  },
  request_cancel: {
    type: "request_cancel",
    sessionId: "ses-1",
    mode: "hard",
    graceMs: 1,
    reason: "r",
    cause: "budget_exceeded",
    exhausted: { payer: "ses-1", limit: "maxTokens", used: 1, max: 1, then: "cancel" },
  },
  pause_session: { type: "pause_session", sessionId: "ses-1" },
  resume_session: { type: "resume_session", sessionId: "ses-1" },
  set_budget: { type: "set_budget", sessionId: "ses-1", limits: { maxTokens: 1 } },
  set_title: { type: "set_title", sessionId: "ses-1", title: "t" },
  commit_batch: {
    type: "commit_batch",
    sessionId: "ses-1",
    token: 1,
    firstSeq: 0,
    records: [record],
    entries: [entry],
    consumed: ["sig"],
    session: {
      status: "waiting",
      waits: [
        { type: "signal", id: 0, name: "go", until: 1 },
        { type: "timer", id: 1, at: 1 },
        { type: "input", id: 2, name: "answer:2", prompt: "?", answer: "approval" },
      ],
      wakeAt: 1,
      turn: 1,
      output: "1",
      error: { ...failure, cause: { ...failure, cause: failure } },
      exhausted,
    },
    effects: [creation],
    charges: [
      { type: "reserve", task: 0, amount },
      { type: "settle", task: 0, used: amount },
    ],
  },
  release_claim: {
    type: "release_claim",
    sessionId: "ses-1",
    token: 1,
    ifUnchanged: { nextSeq: 2, updatedAt: 3 },
  },
  put_schedule: { type: "put_schedule", schedule },
  remove_schedule: { type: "remove_schedule", scheduleId: "s" },
  fire_schedule: { type: "fire_schedule", scheduleId: "s", dueAt: 1, nextAt: 2, effect: creation },
  begin_move: { type: "begin_move", sessionId: "ses-1", moveId: "mov-1", to: "there" },
  end_move: { type: "end_move", sessionId: "ses-1", moveId: "mov-1", outcome: "moved" },
  delete_session: { type: "delete_session", sessionId: "ses-1", subtree: "delete" },
  trim_audit: { type: "trim_audit", before: 1, limit: 2, actor: "coordinator" },
  remove_ended: { type: "remove_ended", sessionIds: ["ses-1"], endedBefore: 1 },
  put_document: { type: "put_document", collection: "c", id: "d", body: "1", expected: 1 },
  remove_document: { type: "remove_document", collection: "c", id: "d", expected: 1 },
  audited: {
    type: "audited",
    change: creation,
    audit: { actor: "a", action: "b", object: "c", requestId: "r", outcome: "o" },
  },
};

/**
 * Every value in it replaced, one at a time, by one that nothing of the port is. The kernel judges the other
 * fields of a record.
 */
function* spoiled(value: unknown): Iterable<unknown> {
  if (typeof value !== "object" || value === null) return;
  for (const [field, inner] of Object.entries(value)) {
    if (field === "at" && "seq" in value) continue;
    const set = (to: unknown) =>
      Array.isArray(value) ? value.with(Number(field), to) : { ...value, [field]: to };
    yield set([true]);
    for (const deeper of spoiled(inner)) yield set(deeper);
  }
}

describe("changes", () => {
  for (const [type, change] of Object.entries(CHANGES)) {
    test(`${type} is read back as it was`, () => {
      expect(parseChange(JSON.parse(JSON.stringify(change)))).toEqual(change);
    });

    test(`${type} with any field of another type is refused`, () => {
      const wrong = [...spoiled(change)];
      expect(wrong.length).toBeGreaterThan(1);
      const taken = wrong.filter((value) => parseChange(value) !== undefined);
      expect(taken.map((value) => JSON.stringify(value))).toEqual([]);
    });
  }

  test("a value that is not a change is refused", () => {
    for (const value of [undefined, null, 1, "x", [], {}, { type: "toString" }, { type: "drop" }, [creation]])
      expect(parseChange(value)).toBeUndefined();
  });

  test("an audited change inside an audited change is refused", () => {
    const { audited } = CHANGES;
    expect(parseChange({ ...audited, change: audited })).toBeUndefined();
    expect(parseChange({ type: "audited", audit: audited.audit })).toEqual({
      type: "audited",
      audit: audited.audit,
    });
  });

  test("a lease without end is read back as one, also in an audited change", () => {
    const forEver: CreateSession = { ...creation, claimFor: { owner: "o", leaseMs: Infinity } };
    const sent = (change: Change) => parseChange(JSON.parse(JSON.stringify(change)));
    expect(sent(forEver)).toEqual(forEver);
    const audited = { ...CHANGES.audited, change: forEver };
    expect(sent(audited)).toEqual(audited);
  });

  test("numbers that JSON can write but the port does not have are refused", () => {
    expect(parseChange(JSON.parse('{"type":"release_claim","sessionId":"s","token":1e999}'))).toBeUndefined();
    expect(parseChange({ ...CHANGES.commit_batch, firstSeq: -1 })).toBeUndefined();
    expect(parseChange({ ...CHANGES.commit_batch, firstSeq: 0.5 })).toBeUndefined();
    expect(parseChange({ ...CHANGES.create_session, deadlineAt: 2 ** 53 })).toBeUndefined();
    expect(parseChange({ ...CHANGES.create_session, depth: 2 ** 31 })).toBeUndefined();
    for (const priority of [0.5, 2 ** 31])
      expect(parseChange({ ...CHANGES.create_session, placement: { priority } })).toBeUndefined();
  });

  test("a session id is accepted only if it is safe as a file's name and in a URL", () => {
    const { create_session, import_session } = CHANGES;
    for (const sessionId of ["", "a/b", "../a", "a b", "ä", "a".repeat(257)]) {
      expect(parseChange({ ...create_session, sessionId }), sessionId).toBeUndefined();
      expect(parseChange({ ...import_session, sessionId }), sessionId).toBeUndefined();
    }
    expect(parseChange({ ...create_session, sessionId: `${"a".repeat(100)}-123-45` })).toBeDefined();
  });

  test("text that answers include unchanged must be JSON", () => {
    const { create_session, commit_batch, send_signal, put_schedule } = CHANGES;
    expect(parseChange({ ...create_session, input: "{bad" })).toBeUndefined();
    expect(parseChange({ ...send_signal, payload: '1,"status":2' })).toBeUndefined();
    expect(parseChange({ ...commit_batch, session: { output: "" } })).toBeUndefined();
    expect(parseChange({ ...commit_batch, session: { progress: "{bad" } })).toBeUndefined();
    expect(parseChange({ ...commit_batch, entries: [{ ...entry, content: "{bad" }] })).toBeUndefined();
    const action = { type: "start", agent, input: "{bad" };
    expect(parseChange({ ...put_schedule, schedule: { ...schedule, action } })).toBeUndefined();
  });
});

describe("calls", () => {
  test("a call of a method of the port with its arguments is accepted", () => {
    for (const [method, params] of [
      ["commit", { changes: Object.values(CHANGES), now: 1 }],
      ["claim", { sessionId: "s", owner: "o", now: 1, leaseMs: null }],
      ["heldClaims", { now: 1, limit: 1, sessionId: "s", owner: "o", after: "a" }],
      ["renew", { owner: "o", now: 1, leaseMs: 1 }],
      ["renew", { owner: "o", sessionIds: ["s"], now: 1, leaseMs: 1 }],
      ["due", { now: 1, limit: 1, agents: ["a"] }],
      ["reader.sessions", { limit: 1, owner: "o", agent: "a", status: "working", parent: "p", before: "b" }],
      ["reader.counts", { limit: 1, owner: "o", agent: "a", parent: "p" }],
      ["reader.document", { collection: "c", id: "d" }],
      ["reader.documents", { collection: "c", limit: 1, after: "a" }],
      ["reader.audit", { limit: 1, after: 0 }],
    ] as const) {
      expect(isStorageCall(method, params), method).toBe(true);
      for (const wrong of spoiled(params)) expect(isStorageCall(method, wrong), method).toBe(false);
    }
  });

  test("any other value is refused as a call", () => {
    for (const method of ["close", "constructor", "reader", "reader.all", "", 1, undefined])
      expect(isStorageCall(method, {})).toBe(false);
    expect(isStorageCall("renew", { owner: "o", now: 1, leaseMs: null })).toBe(false);
    expect(isStorageCall("load", undefined)).toBe(false);
  });
});

describe("errors", () => {
  test("an error is read back in the class of its code, with its text", () => {
    const details = { at: "a", got: "g", expected: "e", fix: "f" };
    for (const error of [
      new NotFoundError("session_not_found", "m", details),
      new ConflictError("locked", "m", details),
      new UnavailableError("storage_unavailable", "m", details),
      new CorruptRecordError("a", "m", details),
      new LimitError("batchChars", "m", details),
      new HoldfastError("storage_full", "m", details),
    ]) {
      const back = fromWireError(toWireError(error));
      expect(back).toBeInstanceOf(error.constructor);
      expect(toWireError(back)).toEqual(toWireError(error));
    }
  });

  test("an error with an unknown code is read as an internal error", () => {
    expect(fromWireError({ code: "from_the_future" as never, message: "m" })).toMatchObject({
      code: "internal",
      message: "m",
    });
  });
});
