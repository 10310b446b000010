// `check`: compares the observations of a nemesis run with the promises. Each checker is a pure function of
// the observations, and names every violation with its runner, session and time.
//
//   - Two observers may read their clocks a moment apart (`SKEW_MS`), which is never reported as a violation.
//   - A request without an answer may have been performed or not; an acknowledged request was performed.

import { isQueuedTaskAgent } from "@holdfast/core";

import { ATTEMPTS_MAX, SIGNAL_NAMES } from "./agents.ts";
import { Claims } from "./claims.ts";
import type { Effect, FinalSession, Observed, Request } from "./observed.ts";

/** A tolerance: a claim reaches its runner faster, and the database's wall clock is converted with a small error. */
const SKEW_MS = 100;
/** The time that a frozen process may take to notice its losses, and to end the processes that it started. */
const THAW_MS = 3_000;
/** The statuses of a session that has ended. */
export const TERMINAL = new Set(["completed", "failed", "cancelled"]);
/** Codes of errors that pass after a while. */
const PASSING = new Set(["storage_unavailable", "storage_full", "storage_readonly", "unavailable"]);

export const CHECKERS: Readonly<Record<string, (seen: Observed) => readonly string[]>> = {
  "H1, L7: what was started is there, once for each key": startedOnce,
  "H1, S1: what was signalled is received, once and in order": receivedInOrder,
  "L1, L2: an end is final, and nothing that was cancelled completes": endsAreFinal,
  "O1, O2: tokens only rise, and no lease is taken while it lasts": claimsAreExclusive,
  "O4: nothing is done for a session that another one holds": nobodyWorksForOthers,
  "O4: what a task started is gone before its lease passes on": nothingIsLeftRunning,
  "H7: no task begins again after its outcome was committed": committedIsNotRepeated,
  "H8: no task is begun more often than its author allows": attemptsAreLimited,
  "O16: no task is uncertain to the process that never began it": unbegunIsCertain,
  "H4, V1: journals and what watchers are told of them have no gap": journalsAreWhole,
  "L3, L4, H9: everything ends as its program says": everythingEnds,
  "S3: no timer fires early": timersAreNotEarly,
  "A3: no answer and no output tells what only we should see": nothingBreaks,
};

/** @returns each broken promise, with its name. */
export function check(seen: Observed): readonly string[] {
  return Object.entries(CHECKERS).flatMap(([promise, checker]) =>
    checker(seen).map((what) => `${promise}: ${what}`),
  );
}

function startedOnce({ requests, sessions }: Observed): string[] {
  const byKey = Map.groupBy(sessions, ({ key }) => key);
  const answersByKey = Map.groupBy(
    requests.filter(({ op, outcome }) => op === "start" && outcome === "ok"),
    ({ about }) => about,
  );
  const twice = [...byKey].flatMap(([key, found]) =>
    key === undefined || found.length === 1
      ? []
      : [`key ${key} is ${found.length} sessions: ${namesOf(found)}`],
  );
  const lost = [...answersByKey].flatMap(([key, answers]) => {
    const ids = [...new Set(answers.map(({ sessionId }) => sessionId))];
    if (ids.length > 1) return [`key ${key} was answered as several sessions: ${ids.join(", ")}`];
    const isThere = byKey.get(key)?.some(({ sessionId }) => sessionId === ids[0]) === true;
    return isThere ? [] : [`key ${key} was acknowledged as ${ids[0]}, which is not there`];
  });
  return [...twice, ...lost];
}

/**
 * A client sends a signal of a name only after the last was acknowledged, so the signals' order is that of
 * their numbers.
 */
function receivedInOrder({ requests, sessions }: Observed): string[] {
  const sent = Map.groupBy(
    requests.filter(({ op }) => op === "signal"),
    ({ about, name }) => `${about} ${name}`,
  );
  return sessions
    .filter(({ agent, status }) => agent === "collector" && status === "completed")
    .flatMap(({ sessionId, output }) =>
      SIGNAL_NAMES.flatMap((name) => {
        const got = (output as Record<string, readonly number[]>)[name] ?? [];
        const asked = sent.get(`${sessionId} ${name}`) ?? [];
        const acknowledged = asked.filter(({ outcome }) => outcome === "ok").map(({ number }) => number!);
        const wrong = (what: string): string => `${sessionId} "${name}" ${what}: it got ${got.join(",")}`;
        const missing = [...new Set(acknowledged)].filter((number) => !got.includes(number));
        const unasked = got.filter((number) => !asked.some((request) => request.number === number));
        return [
          ...(missing.length > 0 ? [wrong(`never received ${missing.join(",")}, acknowledged`)] : []),
          ...(unasked.length > 0 ? [wrong(`received ${unasked.join(",")}, which nobody sent`)] : []),
          ...(got.some((number, i) => i > 0 && number <= got[i - 1]!)
            ? [wrong("was received twice or out of order")]
            : []),
        ];
      }),
    );
}

function endsAreFinal({ requests, sessions }: Observed): string[] {
  const violations: string[] = [];
  const final = new Map(sessions.map(({ sessionId, status }) => [sessionId, status]));
  const asked = requests.filter(({ op, outcome }) => (op === "read" || op === "cancel") && outcome === "ok");
  for (const [sessionId, answers] of Map.groupBy(asked, ({ about }) => about)) {
    const end = answers.find(({ op, seen }) => op === "read" && TERMINAL.has(seen ?? ""));
    const later = [
      ...answers.filter(({ invokedAt }) => invokedAt > (end?.answeredAt ?? Infinity)).map(({ seen }) => seen),
      final.get(sessionId),
    ];
    if (end !== undefined)
      for (const seen of later)
        if (seen !== end.seen) violations.push(`${sessionId} was ${end.seen}, and then ${seen}`);
    if (answers.some(({ op }) => op === "cancel") && final.get(sessionId) === "completed")
      violations.push(`${sessionId} completed, though its cancel was acknowledged`);
  }
  return violations;
}

function claimsAreExclusive({ claims, batches }: Observed): string[] {
  const violations: string[] = [];
  const highest = new Map<string, number>();
  for (const { at, sessionId, token, holder, before } of claims) {
    const isNew = holder !== undefined && (holder !== before.holder || token !== before.token);
    if (token < (highest.get(sessionId) ?? 0) || (isNew && token <= before.token))
      violations.push(`${sessionId}: token ${token} follows ${before.token}, at ${at}`);
    highest.set(sessionId, Math.max(token, highest.get(sessionId) ?? 0));
    const isTaken = isNew && before.holder !== undefined && before.holder !== holder;
    if (isTaken && before.until > at + SKEW_MS)
      violations.push(
        `${sessionId}: ${holder} took it from ${before.holder} ${Math.round(before.until - at)} ms too early, at ${at}`,
      );
  }
  for (const [sessionId, own] of Map.groupBy(batches, (batch) => batch.sessionId)) {
    const ordered = own.toSorted((a, b) => a.seq - b.seq);
    const wrong = ordered.find(({ token }, i) => i > 0 && token < ordered[i - 1]!.token);
    if (wrong !== undefined)
      violations.push(`${sessionId}: a batch at ${wrong.seq} has the older token ${wrong.token}`);
  }
  return violations;
}

/** `work` is a queued task: its effects name the session that asked for it, which another runner may hold. */
const isOwn = ({ name }: Effect): boolean => name !== "work";

function nobodyWorksForOthers(seen: Observed): string[] {
  const holders = new Claims(seen.claims);
  return seen.effects.filter(isOwn).flatMap((effect) => {
    const holder = otherHolder(seen, holders, effect);
    if (holder === undefined) return [];
    // A suspended process continues where it was until it checks its claims.
    if (effect.phase !== "begin" && isThawing(seen, effect.runner, effect.at)) return [];
    const { runner, sessionId, taskId, attempt, phase, at } = effect;
    return [
      `${runner}: ${phase} of ${taskId} (attempt ${attempt}) at ${at}, while ${holder} holds ${sessionId}`,
    ];
  });
}

function nothingIsLeftRunning(seen: Observed): string[] {
  const holders = new Claims(seen.claims);
  return seen.sightings.flatMap((sighting) => {
    const { at, pid, runner, sessionId } = sighting;
    const holder = otherHolder(seen, holders, { ...sighting, pid: sighting.runnerPid });
    if (holder === undefined) return [];
    if (isThawing(seen, runner, at)) return [];
    return [`${runner} has process ${pid} for ${sessionId} at ${at}, while ${holder} holds it`];
  });
}

/** The holder of a session while a runner did something for it, if that was another runner. */
function otherHolder(
  { runnerIds }: Observed,
  holders: Claims,
  { at, runner, pid, sessionId }: Pick<Effect, "at" | "runner" | "pid" | "sessionId">,
): string | undefined {
  // A trial process that dies at once has a claim for less than the clocks differ.
  const held = holders.holdersBetween(sessionId, at - SKEW_MS, at + SKEW_MS);
  const own = runnerIds[`${runner} ${pid}`] ?? runnerIds[runner];
  return own !== undefined && held.includes(own) ? undefined : held.at(-1);
}

function isThawing({ freezes }: Observed, runner: string, at: number): boolean {
  return freezes.some((freeze) => freeze.runner === runner && at >= freeze.from && at <= freeze.to + THAW_MS);
}

function committedIsNotRepeated({ batches, effects }: Observed): string[] {
  const doneAt = new Map<string, number>();
  for (const { at, sessionId, done } of batches)
    for (const task of done) doneAt.set(`${sessionId}-${task}`, at);
  return effects
    .filter(({ phase, taskId, at }) => phase === "begin" && at > (doneAt.get(taskId) ?? Infinity) + SKEW_MS)
    .map(
      ({ taskId, attempt, runner, at }) =>
        `${taskId} began its attempt ${attempt} at ${runner} ${Math.round(at - doneAt.get(taskId)!)} ms after its outcome`,
    );
}

/** H8. An attempt that was handed over counts toward no limit (decision 83). */
function attemptsAreLimited({ effects, sessions }: Observed): string[] {
  const begun = effects.filter(({ phase, name }) => phase === "begin" && name === "limited");
  const handedOver = sessions.flatMap(({ sessionId, handedOver: tasks }) =>
    tasks.map((task) => `${sessionId}-${task}`),
  );
  return [...Map.groupBy(begun, ({ taskId }) => taskId)].flatMap(([taskId, attempts]) => {
    const most = ATTEMPTS_MAX + handedOver.filter((task) => task === taskId).length;
    return attempts.length > most
      ? [`${taskId} was begun ${attempts.length} times, and may be ${most} times`]
      : [];
  });
}

/**
 * O16. Another process cannot know whether a task began, and the answer to a claim between may be lost. Then
 *     nothing is checked.
 */
function unbegunIsCertain({ sessions, effects, batches, claims, starts, runnerIds }: Observed): string[] {
  const begun = new Set(effects.filter(({ phase }) => phase === "begin").map(({ taskId }) => taskId));
  const isPayer = ({ agent, status }: FinalSession): boolean =>
    agent === "once-payer" && status === "completed";
  return sessions.filter(isPayer).flatMap(({ sessionId, output }) => {
    const own = batches.filter((batch) => batch.sessionId === sessionId);
    const made = claims.filter((claim) => claim.sessionId === sessionId && claim.holder !== undefined);
    const unbegun = (output as readonly string[]).filter((taskId) => !begun.has(taskId));
    return unbegun.flatMap((taskId) => {
      const task = Number(taskId.slice(sessionId.length + 1));
      const asked = own.find((batch) => batch.asked.includes(task));
      const lost = own.find((batch) => batch.done.includes(task));
      if (asked === undefined || lost === undefined) return [];
      const held = made.filter(({ token }) => token >= asked.token && token <= lost.token);
      const holders = new Set(held.map(({ holder }) => holder));
      const [runner, ...others] = Object.keys(runnerIds).filter((name) => holders.has(runnerIds[name]));
      if (runner === undefined || others.length > 0 || holders.size > 1) return [];
      if (new Set(held.map(({ token }) => token)).size > 2) return [];
      if (starts[runner]?.some((at) => at >= asked.at && at <= lost.at) === true) return [];
      return [`${taskId} was asked for by ${runner} at ${asked.at}, never began, and is uncertain to it`];
    });
  });
}

function journalsAreWhole({ sessions, watched }: Observed): string[] {
  const torn = sessions.filter(({ isJournalWhole }) => !isJournalWhole).map(({ sessionId }) => sessionId);
  return [
    ...torn.map((sessionId) => `the journal of ${sessionId} has a gap`),
    ...watched
      .filter(({ seqs }) => seqs.some((seq, i) => seq !== i))
      .map(({ sessionId, seqs }) => `a watcher of ${sessionId} was told ${seqs.join(",")}`),
  ];
}

function everythingEnds({ sessions, requests }: Observed): string[] {
  const cancelled = new Set(
    requests.filter(({ op, outcome }) => op === "cancel" && outcome !== "fail").map(({ about }) => about),
  );
  return sessions.flatMap((session) => {
    const why =
      cancelled.has(session.sessionId) || session.agent === "endless"
        ? unexpectedWhenCancelled(session)
        : unexpected(session);
    return why === undefined ? [] : [`${session.sessionId} (${session.agent}) ${why}`];
  });
}

function unexpectedWhenCancelled({ status }: FinalSession): string | undefined {
  return TERMINAL.has(status) && status !== "failed" ? undefined : `is ${status}, though it was cancelled`;
}

function unexpected({
  agent,
  status,
  pauseReason,
  error,
  waits,
  output,
  input,
  isChild,
}: FinalSession): string | undefined {
  if (agent === "poison")
    return status === "paused" && pauseReason === "poison" ? undefined : `is ${status}, and should be poison`;
  // A task that was queued; it is removed when its outcome has arrived.
  if (isQueuedTaskAgent(agent)) return TERMINAL.has(status) ? undefined : `is ${status}`;
  if (isChild && status === "cancelled") return undefined; // Its parent was.
  if (status !== "completed")
    return `is ${status} (${pauseReason ?? error ?? "no error"}), waiting for ${waits.join(", ") || "nothing"}`;
  const wanted = wantedOutput(agent, input as { readonly count?: number; readonly takesMs?: number });
  if (wanted === undefined || wanted.some((one) => JSON.stringify(one) === JSON.stringify(output)))
    return undefined;
  return `completed with ${JSON.stringify(output)}`;
}

/** The possible outputs of an agent; `undefined` when another checker compares its output. */
function wantedOutput(
  agent: string,
  { count = 0, takesMs }: { count?: number; takesMs?: number },
): readonly unknown[] | undefined {
  const trail = Array.from({ length: count }, (_, step) => step);
  switch (agent) {
    case "walker":
      return [trail];
    case "parent":
      return [[trail, trail]];
    case "keeper":
      return ["kept"];
    case "limited":
      return ["done", "given up"];
    case "errand":
      return [takesMs];
    default:
      return undefined;
  }
}

function timersAreNotEarly({ sessions }: Observed): string[] {
  return sessions
    .filter(({ agent, status }) => agent === "sleeper" && status === "completed")
    .flatMap(({ sessionId, input, output }) => {
      const { sleepMs } = input as { readonly sleepMs: number };
      const early = (output as readonly number[]).filter((slept) => slept < sleepMs - SKEW_MS);
      return early.map((slept) => `${sessionId} slept ${Math.round(slept)} ms of ${sleepMs}`);
    });
}

/** As Node writes one. */
const STACK = /^\s+at (?:.+ \()?(?:file|node):\S+:\d+:\d+\)?$/m;

function nothingBreaks({ requests, outputs }: Observed): string[] {
  const isWrong = ({ status = 0, code = "", said = "" }: Request): boolean =>
    (status >= 500 && !PASSING.has(code)) || STACK.test(said);
  return [
    ...requests
      .filter(isWrong)
      .map(
        ({ op, about, status, code, said }) => `${op} of ${about} was answered ${status} ${code}: ${said}`,
      ),
    ...Object.entries(outputs).flatMap(([name, text]) => {
      const at = text.search(STACK);
      return at < 0 ? [] : [`${name} wrote a stack trace: ${text.slice(Math.max(0, at - 300), at + 300)}`];
    }),
  ];
}

function namesOf(sessions: readonly FinalSession[]): string {
  return sessions.map(({ sessionId }) => sessionId).join(", ");
}
