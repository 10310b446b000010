// The verdict on a session when a simulation is over: what its program says, and nothing else, has come of it.

import { decodeJson, isEnded, type AgentStorage, type Session } from "@holdfast/core";
import type { Subject } from "./clients.ts";
import type { Effects } from "./effects.ts";
import { PARTIAL } from "./program-agent.ts";
import { NEVER } from "./program.ts";
import { journalText, type SessionAccount, type Violated } from "./watched-storage.ts";

export interface JudgeOptions {
  readonly storage: AgentStorage;
  readonly effects: Effects;
  /** Whether no fault could have made a task run twice. */
  readonly isExact: boolean;
  readonly violated: Violated;
}

/** Whether nothing more can come of it: it has ended, or waits for what nobody does. */
export function isAtRest(row: Session | undefined, { waitsForEver }: Subject): boolean {
  if (row === undefined) return false;
  return (
    isEnded(row.status) ||
    (waitsForEver &&
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
  if (!isAtRest(row, subject))
    return violated(
      "L3",
      `${sessionId} is ${row.status} and nothing happens to it, waiting for ${JSON.stringify(row.waits)}`,
    );
  const isWhole = row.status === "completed";
  if (account.isCancelAcknowledged ? row.status !== "cancelled" : row.status === "cancelled")
    violated(
      "L2",
      `${sessionId} is ${row.status}, and its cancellation was ${account.isCancelAcknowledged ? "" : "not "}acknowledged`,
    );
  if (isWhole) {
    if (row.output !== JSON.stringify(expected.output))
      violated("H9", `${sessionId} gave ${row.output}, expected ${JSON.stringify(expected.output)}`);
    judgeSignals(subject, account, violated);
  } else if (
    row.output !== undefined &&
    decodeJson(row.output) !== PARTIAL &&
    row.output !== JSON.stringify(expected.output)
  ) {
    violated("H9", `${sessionId} was ${row.status} and gave ${row.output}`);
  }
  judgeTasks(subject, isWhole, options);
  await judgeEntries(subject, isWhole, options);
  await judgeJournal(account, options);
}

/** S1: each was consumed, and by the one wait it was for, as the output says. */
function judgeSignals(
  { sessionId, expected }: Subject,
  { consumed, pending }: SessionAccount,
  violated: Violated,
): void {
  const left = [...pending].filter(([, ids]) => ids.length > 0);
  if (left.length > 0)
    violated("S1", `${sessionId} completed, and left ${left.map(([name]) => name).join(", ")}`);
  const count = [...expected.signals.values()].reduce((sum, payloads) => sum + payloads.length, 0);
  if (consumed.size < count) violated("S1", `${sessionId} consumed ${consumed.size} of ${count} signals`);
}

function judgeTasks(
  { sessionId, expected }: Subject,
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
    if (!isExact || outcome !== "done") continue;
    if (done !== 1 || (!isPatient && starts !== failures + 1))
      violated(
        "H7",
        `${sessionId}: ${node} was done ${done} times in ${starts} attempts, and nothing was lost`,
      );
  }
}

/** H4: all of them, each once, those of a branch in its order. */
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
