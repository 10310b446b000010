// `judge`: the verdict on a session when a simulation is over. The session did what its program says, and
// nothing else.

import { decodeJson, isEnded, isReservedName, type AgentStorage, type Session } from "@holdfast/core";
import type { Subject } from "./clients.ts";
import type { Effects } from "../programs/effects.ts";
import { HANDED_OVER } from "../programs/nodes.ts";
import { PARTIAL } from "../programs/program-agent.ts";
import { NEVER, type Value } from "../programs/program.ts";
import type { Violated } from "../world/account-checks.ts";
import { journalText, type SessionAccount } from "../world/watched-storage.ts";

export interface JudgeOptions {
  readonly storage: AgentStorage;
  readonly effects: Effects;
  /** Whether no fault could have made a task run twice. */
  readonly isExact: boolean;
  readonly violated: Violated;
}

/** Whether the session can do nothing more: it has ended, or waits for a signal that nobody sends. */
export function isAtRest(row: Session | undefined, { program }: Subject): boolean {
  if (row === undefined) return false;
  return (
    isEnded(row.status) ||
    (program.end.type === "never" &&
      row.parent === undefined &&
      row.status === "waiting" &&
      row.waits.some(({ type, ...wait }) => type === "signal" && "name" in wait && wait.name === NEVER))
  );
}

export async function judge(
  subject: Subject,
  account: SessionAccount | undefined,
  options: JudgeOptions,
): Promise<void> {
  const { storage, violated } = options;
  const { sessionId, expected } = subject;
  const row = await storage.reader.session(sessionId);
  if (row === undefined || account === undefined)
    return violated("H1", `${sessionId} was acknowledged and is not there`);
  if (!isAtRest(row, subject)) {
    const holder = account.owner === undefined ? "nobody" : account.owner;
    return violated(
      "L3",
      `${sessionId} is ${row.status} and does not come to rest, held by ${holder}, waiting for ${JSON.stringify(row.waits)}`,
    );
  }
  const isWhole = row.status === "completed";
  if (row.status === "failed" ? !subject.fails : subject.fails && isWhole)
    violated("H5", `${sessionId} is ${row.status}: ${row.error?.message}`);
  const mayFail = row.status === "failed" && subject.fails;
  if (account.isCancelAcknowledged ? row.status !== "cancelled" && !mayFail : row.status === "cancelled")
    violated(
      "L2",
      `${sessionId} is ${row.status}, and its cancellation was ${account.isCancelAcknowledged ? "" : "not "}acknowledged`,
    );
  if (isWhole) {
    if (row.output !== textOf(expected.output, row))
      violated("H9", `${sessionId} gave ${row.output}, expected ${textOf(expected.output, row)}`);
    judgeSignals(subject, account, violated);
  } else if (
    row.output !== undefined &&
    decodeJson(row.output) !== PARTIAL &&
    row.output !== textOf(expected.output, row)
  ) {
    violated("H9", `${sessionId} was ${row.status} and gave ${row.output}`);
  }
  // Tasks in a fork's journal were performed by the fork's origin.
  if (!subject.isFork) judgeTasks(subject, isWhole, options);
  await judgeEntries(subject, isWhole, options);
  await judgeJournal(account, options);
}

function textOf(output: Value, { handedOffTo }: Session): string {
  return JSON.stringify(output === HANDED_OVER ? { handedOffTo } : output);
}

/** B2. Every payer has spent the reported amounts, and nothing is reserved for ended sessions. */
export function judgeSpending(accounts: ReadonlyMap<string, SessionAccount>, violated: Violated): void {
  for (const { sessionId: payer, row } of accounts.values()) {
    if (row?.account === undefined) continue;
    const { spent, reserved } = row.account;
    const payedFor = [...accounts.values()].filter((each) => each.row?.payers.includes(payer));
    const reported = payedFor.reduce((sum, { reportedTokens }) => sum + reportedTokens, 0);
    if (spent.tokens < reported)
      violated("B2", `${payer} has spent ${spent.tokens} tokens, and ${reported} were reported below it`);
    const isOver = payedFor.every((each) => each.row !== undefined && isEnded(each.row.status));
    if (isOver && reserved.tokens + reserved.costMicroUsd > 0)
      violated("B2", `${payer} still holds ${JSON.stringify(reserved)}, and all it pays for has ended`);
  }
}

/** S1: each signal was consumed, and by the one wait that it was sent for, as the output shows. */
function judgeSignals(
  { sessionId, expected }: Subject,
  { consumed, pending }: SessionAccount,
  violated: Violated,
): void {
  // Sessions may send each other signals that nobody waits for.
  const left = [...pending].filter(([name, ids]) => ids.length > 0 && !isReservedName(name));
  if (left.length > 0)
    violated("S1", `${sessionId} completed, and left ${left.map(([name]) => name).join(", ")}`);
  const count = [...expected.signals.values()].reduce((sum, payloads) => sum + payloads.length, 0);
  if (consumed.size < count) violated("S1", `${sessionId} consumed ${consumed.size} of ${count} signals`);
}

function judgeTasks(
  { sessionId, expected, program }: Subject,
  isWhole: boolean,
  { effects, isExact, violated }: JudgeOptions,
): void {
  for (const [node, { outcome, failures = 0, isPatient = false }] of expected.tasks) {
    const { starts, done } = effects.of(sessionId, node);
    if (outcome === "perhaps" && starts > 1)
      violated("H8", `${sessionId}: ${node} is at most once, and started ${starts} times`);
    if (!isWhole) continue;
    if (outcome === "done" && done === 0)
      violated("H8", `${sessionId} completed, and ${node} was never done`);
    if (outcome === "hopeless" && (starts === 0 || done > 0))
      violated("H8", `${sessionId}: ${node} is hopeless, started ${starts} times, was done ${done} times`);
    if (!isExact || program.prelude !== undefined || outcome !== "done") continue;
    if (done !== 1 || (!isPatient && starts !== failures + 1))
      violated(
        "H7",
        `${sessionId}: ${node} was done ${done} times in ${starts} attempts, and nothing was lost`,
      );
  }
}

/** H4: each expected entry exists once, and the entries of a branch are in order. */
async function judgeEntries(
  { sessionId, expected }: Subject,
  isWhole: boolean,
  { storage, violated }: JudgeOptions,
): Promise<void> {
  const found = new Map<string, number>();
  for (const { content } of await storage.reader.entries(sessionId, 0, 100_000)) {
    const { chain, index } = decodeJson(content) as { chain: string; index: number };
    const next = found.get(chain) ?? 0;
    if (index !== next) violated("H4", `${sessionId}: entry ${index} of ${chain} where ${next} is next`);
    found.set(chain, next + 1);
  }
  for (const [chain, count] of expected.entries) {
    const has = found.get(chain) ?? 0;
    if (has > count || (isWhole && has < count))
      violated("H4", `${sessionId} has ${has} of ${count} entries of ${chain}`);
  }
}

/** H4: the journal is what was committed, and nothing was rewritten. */
async function judgeJournal(
  { sessionId, records }: SessionAccount,
  { storage, violated }: JudgeOptions,
): Promise<void> {
  const journal = await storage.reader.journal(sessionId, 0, 1_000_000);
  if (journalText(journal) !== journalText(records))
    violated(
      "H4",
      `${sessionId}: the journal of ${journal.length} records is not the ${records.length} that were committed`,
    );
}
