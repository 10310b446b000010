// The calls of a turn that was cut off, as the program's own record has them (`countTask`, `countRecorded`).
//
//   - Only what was added to the record since the last count is read. A call that the turn has reported is
//     not counted again.
//   - The count is the outcome of a durable task, and is charged with it once.
//   - The record cannot tell all where it is not there, or is shorter than at the last count. The same holds
//     where its last line is half of one, or a request is without its answer. The rest is unknown then, and
//     never zero.

import { readFile, stat } from "node:fs/promises";
import { MIB, type TokenUsage } from "@holdfast/core";
import { defineTask, type AgentContext } from "@holdfast/runtime";

import type { ExternalAgentProtocol, ExternalEnd, ExternalIntent } from "../external-agent-protocol.ts";
import { parseFields } from "../fields.ts";
import { OWN_ID } from "../raw/raw-lines.ts";
import { findSessionFile } from "../receipt/read-receipt.ts";
import { priced } from "./budget-fence.ts";

/** A larger record is not read. */
const RECORD_BYTES_MAX = 256 * MIB;

export interface CountRequest {
  readonly intent: ExternalIntent;
  readonly boundId: string | null;
  /** The bytes of the record whose calls were counted before; `null` where that is not known. */
  readonly from: number | null;
  /** The calls that the turn has reported, as the record names them. */
  readonly reported: readonly string[];
}

export interface CountedCalls {
  /** The usage of the calls that were not reported. */
  readonly usage: readonly TokenUsage[];
  /** Whether these are all of them. */
  readonly isComplete: boolean;
  /** As `from` of the next count. */
  readonly bytes: number | null;
}

/** A usage that nobody has counted. */
export const UNKNOWN_USAGE: TokenUsage = { model: "unknown", inputTokens: 0, outputTokens: 0 };

/** The ends after which a program may not have reported all of its calls. */
export const CUT_OFF_ENDS: readonly ExternalEnd["type"][] = ["died", "broken", "aborted"];

/** Whether calls of a turn may be missing. Before its session is open a program has asked no model. */
export function isCutOff({ type }: ExternalEnd, { hasStarted }: { readonly hasStarted: boolean }): boolean {
  return CUT_OFF_ENDS.includes(type) && hasStarted;
}

/** Counts the reported calls of a lost attempt, whose end tells of none. */
export async function countReported(
  ctx: Pick<AgentContext, "run">,
  usage: readonly TokenUsage[],
): Promise<void> {
  if (usage.length === 0) return;
  await ctx.run("count_usage", (task) => {
    for (const one of usage) task.reportUsage(one);
  });
}

/** Counts the calls that a turn which was cut off has not reported, in its session. */
export async function countCutOff(
  ctx: Pick<AgentContext, "scheduleTask" | "run">,
  task: ReturnType<typeof countTask>,
  request: CountRequest,
): Promise<CountedCalls> {
  const counted = await ctx.scheduleTask(task, request);
  // A report of its own: added to the others it would make their cost unknown.
  if (!counted.isComplete) await ctx.run("count_unknown", (inner) => inner.reportUsage(UNKNOWN_USAGE));
  return counted;
}

/** All usage of a turn. Without a report it has cost something nevertheless. */
export function usageOfTurn({
  entries: { usage },
  counted,
  isUnbilled = false,
}: {
  readonly entries: { readonly usage: readonly TokenUsage[] };
  readonly counted?: CountedCalls;
  /** The vendor refused the turn before anything was used. */
  readonly isUnbilled?: boolean;
}): readonly TokenUsage[] {
  if (counted === undefined) return usage.length === 0 && !isUnbilled ? [UNKNOWN_USAGE] : usage;
  return [...usage, ...counted.usage, ...(counted.isComplete ? [] : [UNKNOWN_USAGE])];
}

export function countTask(protocol: ExternalAgentProtocol) {
  return defineTask<CountRequest, CountedCalls>({
    name: `${protocol.name}:count`,
    description: `Counts the calls of ${protocol.name} that a turn which was cut off has not reported.`,
    async run(request, task) {
      const counted = await countRecorded(protocol, request);
      for (const usage of counted.usage) task.reportUsage(usage);
      return counted;
    },
  });
}

export async function countRecorded(
  protocol: ExternalAgentProtocol,
  { intent, boundId, from, reported }: CountRequest,
): Promise<CountedCalls> {
  const record = await readRecord(protocol, { intent, boundId });
  if (record === undefined) return { usage: [], isComplete: false, bytes: from };
  const bytes = record.length;
  if (from === null || bytes < from) return { usage: [], isComplete: false, bytes };
  const lines = linesOf(record.subarray(from));
  const before = linesOf(record.subarray(0, from));
  const all = [...before, ...lines].map((line) => parseFields(line));
  const { calls, isComplete } = protocol.recordedCalls!(
    all.map((line) => line ?? {}),
    before.length,
    intent.profile,
  );
  const isWhole = lines.length === 0 || all.at(-1) !== undefined;
  const usage = calls
    .filter(({ recordId }) => !reported.includes(recordId))
    .map((call) => priced(call.usage));
  return { usage, isComplete: isComplete && isWhole, bytes };
}

async function readRecord(
  protocol: ExternalAgentProtocol,
  session: Pick<CountRequest, "intent" | "boundId">,
): Promise<Buffer | undefined> {
  if (protocol.recordedCalls === undefined || !OWN_ID.test(session.intent.agentSessionId)) return undefined;
  const traces = protocol.traces?.(session);
  const path = traces && (await findSessionFile(traces));
  if (path === undefined) return undefined;
  try {
    return (await stat(path)).size > RECORD_BYTES_MAX ? undefined : await readFile(path);
  } catch {
    return undefined; // It was removed meanwhile, or belongs to another user.
  }
}

function linesOf(record: Buffer): readonly string[] {
  return record
    .toString()
    .split("\n")
    .filter((line) => line !== "");
}
