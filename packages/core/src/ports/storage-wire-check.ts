// `parseChange`, `isStorageCall`: whether a received value belongs to the storage port, by every field that
// we use.
//
// On an owner's socket the peer is a process of the same user, so the check is no defence against an attacker
// there. It keeps a mistake, such as another version or a hand-made client, from becoming a record that
// cannot be read back. Permissions are not decided here.

import { isRecordType } from "../journal/record.ts";
import type { Charge } from "../budget/budget.ts";
import { PERIODS } from "../budget/windows.ts";
import { SESSION_STATUSES, type Wait } from "../session/session.ts";
import type { Change, Effect, Entry } from "../session/changes.ts";
import {
  isText,
  isNewId,
  isCount,
  isToken,
  isSmall,
  isTime,
  isJson,
  isOneOf,
  isTrue,
  listOf,
  optional,
  isLease,
  isObject,
  hasShape,
  isOfType,
  isOfTypeBy,
  type Check,
} from "./shape-checks.ts";
import { withLease, type StorageMethod } from "./storage-wire.ts";

const isStatus = isOneOf(...SESSION_STATUSES);
const WAITS: { readonly [type in Wait["type"]]: Check } = {
  timer: hasShape({ id: isCount, at: isTime }),
  signal: hasShape({ id: isCount, name: isText, until: optional(isTime) }),
  input: hasShape({
    id: isCount,
    name: isText,
    prompt: isText,
    answer: optional(isText),
    life: optional(isCount),
    until: optional(isTime),
  }),
};
const isWait = isOfType(WAITS);
/**
 * The kernel judges the further fields that a record of its type must have; they are kept unchanged.
 * Checkpoints are an exception, because rows are made of them.
 */
const isAnyRecord = hasShape({ type: isRecordType, seq: isCount, payload: optional(isText) });
const isCheckpoint = hasShape({ turn: isSmall, entryCount: isSmall });
const isRecord: Check = (value) =>
  isAnyRecord(value) && ((value as { readonly type: string }).type !== "checkpoint" || isCheckpoint(value));

const isError: Check = hasShape({
  name: isText,
  message: isText,
  code: optional(isText),
  at: optional(isText),
  got: optional(isText),
  expected: optional(isText),
  fix: optional(isText),
  cause: optional((value) => isError(value)),
});

const isEntry = hasShape({
  id: isCount,
  index: isCount,
  parent: optional(isCount),
  role: isText,
  turn: isSmall,
  content: isJson,
});

const isAmount = hasShape({ tokens: isCount, costMicroUsd: isCount, steps: isCount, turns: isCount });
const isLimit = optional((value) => isCount(value) && value !== 0);
const LIMITS = { maxTokens: isLimit, maxCostMicroUsd: isLimit, maxSteps: isLimit, maxTurns: isLimit };
const isPer = isOneOf(...PERIODS);
const isBudget = hasShape({
  ...LIMITS,
  windows: optional(listOf(hasShape({ ...LIMITS, per: isPer }))),
  maxTokensPerCall: isLimit,
  ttlMs: isLimit,
  onExhausted: optional(isOneOf("park", "cancel")),
});
const isExhausted = hasShape({
  payer: isText,
  limit: isText,
  per: optional(isPer),
  used: isCount,
  max: isCount,
  asked: optional(isCount),
  until: optional(isTime),
  then: isOneOf("park", "cancel"),
});
const isQuota = hasShape({ pool: isText, resetsAt: optional(isTime), resumesAt: optional(isTime) });
const isLedgerSum: Check = (value) =>
  Array.isArray(value) && value.length === 5 && isTime(value[0]) && value.slice(1).every(isCount);
const isAccount = hasShape({
  limits: isBudget,
  spent: isAmount,
  reserved: isAmount,
  ledgers: optional(hasShape(Object.fromEntries(PERIODS.map((per) => [per, optional(listOf(isLedgerSum))])))),
  lost: optional(isAmount),
  low: (value) => typeof value === "boolean",
});
const CHARGES: { readonly [type in Charge["type"]]: Check } = {
  reserve: hasShape({ task: isCount, amount: isAmount }),
  settle: hasShape({ task: isCount, used: isAmount, lost: optional(isTrue) }),
  spend: hasShape({ used: isAmount }),
  turn: isObject,
};
const isCharge = isOfType(CHARGES);

const isAgent = hasShape({
  name: isText,
  version: isText,
  file: optional(isText),
  traceparent: optional(isText),
});
const isParent = hasShape({
  sessionId: isText,
  child: isCount,
  onEnd: isOneOf("cancel", "wait", "leave"),
  notify: optional(isOneOf("end", "callback")),
});
const isShared = isOfTypeBy("kind", {
  conversation: hasShape({ sessionId: isText, leaf: optional(isCount) }),
  conversation_read_only: hasShape({ sessionId: isText, leaf: optional(isCount) }),
  custom: hasShape({ value: isText }),
});
const isEnvironment = hasShape({
  references: optional(listOf(isText)),
  values: optional((value) => isObject(value) && Object.values(value).every(isText)),
});
const isPersistence = isOneOf("minimal", "ephemeral");
const isPlacement = hasShape({
  owner: optional(isText),
  demands: optional((value) => isObject(value) && Object.values(value).every(isText)),
  priority: optional(
    (value) => isTime(value) && Number.isInteger(value) && Math.abs(value as number) < 2 ** 31,
  ),
});
const isCause = isOneOf("parent", "deadline", "input_timeout", "budget_exceeded");

const isPatch = hasShape({
  status: isStatus,
  pauseReason: optional(isText),
  exhausted: optional(isExhausted),
  quota: optional(isQuota),
  progress: optional(isJson),
  handedOffTo: optional(isText),
  persistence: optional(isOneOf("full")),
  resumedFrom: optional(isText),
  waits: optional(listOf(isWait)),
  wakeAt: optional(isTime),
  turn: optional(isSmall),
  output: optional(isJson),
  error: optional(isError),
});

const isRunNote = hasShape({ holder: isText, since: optional(isTime) });

const EFFECTS: { readonly [type in Effect["type"]]: Check } = {
  create_session: hasShape({
    sessionId: isNewId,
    agent: isAgent,
    title: optional(isText),
    input: optional(isJson),
    seed: isTime,
    flags: isCount,
    format: isCount,
    parent: optional(isParent),
    depth: optional(isSmall),
    shared: optional(isShared),
    environment: optional(isEnvironment),
    persistence: optional(isPersistence),
    budget: optional(isBudget),
    deadlineAt: optional(isTime),
    resumedFrom: optional(isText),
    placement: optional(isPlacement),
    claimFor: optional(hasShape({ owner: isText, leaseMs: isLease })),
    first: optional((value) => isFirstBatch(value)),
    under: optional(hasShape({ sessionId: isText, token: isToken, owner: optional(isText) })),
  }),
  send_signal: hasShape({
    sessionId: isText,
    signalId: isText,
    name: isText,
    payload: optional(isJson),
    dedupKey: optional(isText),
    spends: optional(isAmount),
  }),
  request_cancel: hasShape({
    sessionId: isText,
    mode: isOneOf("graceful", "hard"),
    graceMs: isTime,
    reason: optional(isText),
    cause: optional(isCause),
    exhausted: optional(isExhausted),
  }),
};
const isEffect = isOfType(EFFECTS);

const FIRST_BATCH = {
  records: listOf(isRecord),
  entries: listOf(isEntry),
  session: optional(isPatch),
  effects: optional(listOf(isEffect)),
  charges: optional(listOf(isCharge)),
};
const isFirstBatch = hasShape(FIRST_BATCH);

const isSession = hasShape({
  sessionId: isText,
  agent: isAgent,
  title: optional(isText),
  input: optional(isJson),
  status: isStatus,
  pauseReason: optional(isText),
  exhausted: optional(isExhausted),
  quota: optional(isQuota),
  waits: listOf(isWait),
  wakeAt: optional(isTime),
  nextSeq: isCount,
  checkpointSeq: optional(isCount),
  entryCount: isSmall,
  turn: isSmall,
  inbox: isCount,
  seed: isTime,
  flags: isCount,
  format: isCount,
  cancel: optional(
    hasShape({
      mode: isOneOf("graceful", "hard"),
      deadlineAt: isTime,
      reason: optional(isText),
      cause: optional(isCause),
      exhausted: optional(isExhausted),
    }),
  ),
  output: optional(isJson),
  error: optional(isError),
  parent: optional(isParent),
  detachedFrom: optional(isParent),
  depth: isSmall,
  children: isSmall,
  handedOffTo: optional(isText),
  shared: optional(isShared),
  environment: optional(isEnvironment),
  placement: optional(isPlacement),
  move: optional(hasShape({ moveId: isText, to: isText, isDone: optional(isTrue) })),
  home: optional(hasShape({ number: isCount, moveId: isText })),
  persistence: optional(isPersistence),
  deadlineAt: optional(isTime),
  account: optional(isAccount),
  cost: optional(
    hasShape({
      calls: isCount,
      unpriced: isCount,
      costMicroUsd: isCount,
      inputTokens: isCount,
      outputTokens: isCount,
    }),
  ),
  fork: optional(
    hasShape({
      origins: listOf(isText),
      at: isCount,
      seed: isTime,
      tasks: isOneOf("rerun", "cancel"),
      parent: optional(isParent),
    }),
  ),
  payers: listOf(isText),
  progress: optional(isJson),
  resumedFrom: optional(isText),
  createdAt: isTime,
  updatedAt: isTime,
  endedAt: optional(isTime),
});

const isSchedule = hasShape({
  scheduleId: isText,
  owner: optional(isText),
  cron: isText,
  timeZone: isText,
  action: isOfType({
    start: hasShape({
      agent: isAgent,
      input: optional(isJson),
      budget: optional(isBudget),
      placement: optional(isPlacement),
      environment: optional(isEnvironment),
    }),
    signal: hasShape({ sessionId: isText, name: isText, payload: optional(isJson) }),
  }),
  nextAt: isTime,
  isPaused: optional((value) => typeof value === "boolean"),
  lastAt: optional(isTime),
  unread: optional(isText),
  createdAt: isTime,
});

const IMPORTED = {
  sessionId: isNewId,
  session: isSession,
  records: listOf(isRecord),
  entries: listOf((value) => isEntry(value) && isTime((value as Entry).createdAt)),
  signals: optional(listOf(hasShape({ signalId: isText, name: isText, payload: optional(isJson) }))),
  holds: optional(listOf(hasShape({ task: isCount, amount: isAmount }))),
  seen: optional(hasShape({ ids: listOf(isText), dedupKeys: listOf(listOf(isText)) })),
};

const UNAUDITED: { readonly [type in Exclude<Change["type"], "audited">]: Check } = {
  ...EFFECTS,
  import_session: hasShape(IMPORTED),
  import_tree: hasShape({ sessionId: isNewId, sessions: listOf(hasShape(IMPORTED)) }),
  pause_session: hasShape({ sessionId: isText }),
  resume_session: hasShape({ sessionId: isText }),
  set_budget: hasShape({
    sessionId: isText,
    limits: isBudget,
    releaseLost: optional(isTrue),
    grant: optional(isPer),
  }),
  set_title: hasShape({ sessionId: isText, title: optional(isText) }),
  commit_batch: hasShape({
    ...FIRST_BATCH,
    sessionId: isText,
    token: isToken,
    firstSeq: isCount,
    consumed: listOf(isText),
    run: optional(isRunNote),
  }),
  release_claim: hasShape({
    sessionId: isText,
    token: isToken,
    ifUnchanged: optional(hasShape({ nextSeq: isCount, updatedAt: isTime })),
    run: optional(isRunNote),
    isLost: optional(isTrue),
    diverged: optional(isTrue),
  }),
  put_schedule: hasShape({ schedule: isSchedule }),
  remove_schedule: hasShape({ scheduleId: isText }),
  fire_schedule: hasShape({
    scheduleId: isText,
    dueAt: isTime,
    nextAt: isTime,
    effect: isOfType({ create_session: EFFECTS.create_session, send_signal: EFFECTS.send_signal }),
  }),
  begin_move: hasShape({ sessionId: isText, moveId: isText, to: isText }),
  end_move: hasShape({ sessionId: isText, moveId: isText, outcome: isOneOf("moved", "stayed") }),
  delete_session: hasShape({ sessionId: isText, subtree: isOneOf("refuse", "delete") }),
  remove_ended: hasShape({ sessionIds: listOf(isText), endedBefore: isTime }),
  trim_audit: hasShape({ before: isTime, limit: isCount, actor: isText }),
  put_document: hasShape({ collection: isText, id: isText, body: isText, expected: optional(isCount) }),
  remove_document: hasShape({ collection: isText, id: isText, expected: optional(isCount) }),
};

const ACTION = { actor: isText, action: isText, object: isText };
const MORE_OF_ACTION = { requestId: optional(isText), details: optional(isJson), outcome: optional(isText) };

const isChange = isOfType({
  ...UNAUDITED,
  audited: hasShape({
    change: optional(isOfType(UNAUDITED)),
    audit: hasShape({ ...ACTION, ...MORE_OF_ACTION }),
  }),
} satisfies { readonly [type in Change["type"]]: Check });

const ofSession = hasShape({ sessionId: isText });

const PARAMS: { readonly [method in StorageMethod]: Check } = {
  commit: hasShape({ changes: listOf(isChange), now: isTime }),
  claim: hasShape({
    sessionId: isText,
    owner: isText,
    now: isTime,
    leaseMs: isLease,
    unlessHeld: optional((value) => typeof value === "boolean"),
  }),
  renew: hasShape({ owner: isText, sessionIds: optional(listOf(isText)), now: isTime, leaseMs: isTime }),
  heldClaims: hasShape({
    now: isTime,
    limit: isCount,
    sessionId: optional(isText),
    owner: optional(isText),
    after: optional(isText),
  }),
  load: ofSession,
  arrivals: hasShape({ sessionId: isText, after: isTime }),
  conversation: hasShape({ sessionId: isText, leaf: isCount }),
  due: hasShape({ now: isTime, limit: isCount, agents: optional(listOf(isText)) }),
  subscribe: isObject,
  "reader.sessions": hasShape({
    limit: isCount,
    before: optional(isText),
    oldestFirst: optional(isTrue),
    status: optional(isStatus),
    owner: optional(isText),
    agent: optional(isText),
    parent: optional(isText),
  }),
  "reader.counts": hasShape({
    limit: isCount,
    owner: optional(isText),
    agent: optional(isText),
    parent: optional(isText),
  }),
  "reader.session": ofSession,
  "reader.journal": hasShape({ sessionId: isText, fromSeq: isCount, limit: isCount }),
  "reader.entries": hasShape({ sessionId: isText, from: isCount, limit: isCount }),
  "reader.pendingSignals": ofSession,
  "reader.seenSignals": ofSession,
  "reader.schedules": isObject,
  "reader.document": hasShape({ collection: isText, id: isText }),
  "reader.documents": hasShape({ collection: isText, after: optional(isText), limit: isCount }),
  "reader.audit": hasShape({ after: optional(isCount), limit: isCount }),
};

/** Whether a call names a method of the port and has that method's arguments. */
export function isStorageCall(method: unknown, params: unknown): method is StorageMethod {
  return (
    typeof method === "string" && Object.hasOwn(PARAMS, method) && PARAMS[method as StorageMethod](params)
  );
}

/** The change that the sender meant; `undefined` for a value that is no change. */
export function parseChange(value: unknown): Change | undefined {
  return isChange(value) ? withLease(value as Change) : undefined;
}
