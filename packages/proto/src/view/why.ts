// `whyText`, `inLiveOrder`: why a session stands where it is, and which live sessions come first.
//
// Pure, over plain JSON, so that `holdfast top` and the page say the same. Nothing here makes text safe for a
// terminal or for HTML.

import { visibleText } from "./text/visible-text.ts";
import { exactUsdText } from "./cost.ts";
import type { Status } from "./status.ts";
import { isBlameless, pauseText, waitText, type PlainPause, type PlainWait } from "./wait.ts";

/** The row of a session, as far as it says why the session stands where it is. */
export interface PlainSession {
  readonly sessionId: string;
  readonly status: Status;
  readonly pauseReason?: string;
  readonly waits: readonly PlainWait[];
  readonly error?: { readonly message: string; readonly code?: string; readonly fix?: string };
  readonly exhausted?: PlainExhausted;
  readonly quota?: PlainQuota;
  /** When a paused session continues without a person. Epoch milliseconds. */
  readonly resumesAt?: number;
  readonly progress?: unknown;
  readonly output?: unknown;
  /** The need of the session that no runner meets. */
  readonly blocked?: string;
  readonly movedTo?: string;
}

export interface WhyContext {
  /** Whether the session is at a coordinator, whose runners continue it. */
  readonly isElsewhere: boolean;
  /** Whether a process that could run the session has its database. */
  readonly isDriven?: boolean;
  readonly when: (at: number) => string;
}

/**
 * The reason why a session waits, with its questions first, the place it moved to, its progress, or its output.
 * Empty when there is nothing to say.
 */
export function whyText(session: PlainSession, { isElsewhere, isDriven = true, when }: WhyContext): string {
  const { status, pauseReason, waits, error, blocked, movedTo, sessionId, output, progress } = session;
  if (movedTo !== undefined) return `moved to ${movedTo}`;
  if (status === "failed") return error?.message ?? "";
  if (status === "paused") {
    if (!isWhyOfCause(session)) return pauseText(pauseReason as PlainPause, isElsewhere, false);
    return [restartText(session, when), causeText(session)].filter((text) => text !== "").join("; ");
  }
  if (status === "completed") return valueText(output);
  if (blocked !== undefined) return blocked;
  if (status !== "waiting" && status !== "input_required")
    return isDriven || status === "cancelled"
      ? valueText(progress)
      : `no process runs it: holdfast resume ${sessionId}`;
  return waits
    .toSorted((a, b) => Number(b.type === "input") - Number(a.type === "input"))
    .map((wait) => {
      const until = wait.type === "timer" ? wait.at : wait.until;
      const time = until === undefined ? "" : `, ${wait.type === "timer" ? "due" : "until"} ${when(until)}`;
      return `${wait.type === "input" ? visibleText(wait.prompt ?? "") : `waits for ${waitText(wait, sessionId)}`}${time}`;
    })
    .join("; ");
}

/** Whether the reason of a pause is in the row's error, or in its figures, and not in the name of the reason. */
export function isWhyOfCause(session: Pick<PlainSession, "status" | "pauseReason" | "error">): boolean {
  const { status, pauseReason } = session;
  if (status !== "paused") return false;
  return pauseReason === undefined || !PAUSES.has(pauseReason) || isBlameless(session);
}

/** When a paused session continues without a person, or when its limit is reset. Empty where nobody knows. */
export function restartText(
  { resumesAt, quota }: Pick<PlainSession, "resumesAt" | "quota">,
  when: (at: number) => string,
): string {
  if (resumesAt !== undefined) return `it continues by itself ${when(resumesAt)}`;
  return quota?.resetsAt === undefined ? "" : `the limit is reset ${when(quota.resetsAt)}`;
}

/** The thing that is used up or missing, and how it is supplied, in the words of the task that paused the session. */
export function causeText({
  sessionId,
  pauseReason,
  exhausted,
  error,
}: Pick<PlainSession, "sessionId" | "pauseReason" | "exhausted" | "error">): string {
  if (pauseReason === "budget_exceeded") return exhaustedText(sessionId, exhausted);
  if (error !== undefined)
    return error.fix === undefined ? error.message : `${error.message.replace(/[.\s]+$/, "")}: ${error.fix}`;
  if (pauseReason === "quota") return "a usage limit is reached";
  return pauseReason === "auth_required" ? "credentials are missing" : "";
}

/** The usage limit that a session waits for. Times are epoch milliseconds. */
export interface PlainQuota {
  readonly pool: string;
  readonly resetsAt?: number;
  readonly resumesAt?: number;
}

/** The limit that a session is paused for. */
export interface PlainExhausted {
  readonly payer: string;
  readonly limit: string;
  readonly per?: string;
  readonly used: number;
  readonly max: number;
  readonly asked?: number;
}

function exhaustedText(sessionId: string, exhausted: PlainExhausted | undefined): string {
  if (exhausted === undefined) return "its budget has too little left";
  const { payer, limit, per, used, max, asked = 0 } = exhausted;
  const isCost = limit === "maxCostMicroUsd";
  const amount = (value: number): string => (isCost ? exactUsdText(value) : value.toLocaleString("en"));
  const unit = isCost ? "" : ` ${limit.replace(/^max/, "").toLowerCase()}`;
  const whose = payer === sessionId ? "its budget" : `the budget of ${payer}`;
  const need =
    asked === 0 || !/Cost|Tokens/.test(limit) ? "" : `, and the next call may need ${amount(asked)}`;
  const window = per === undefined ? "" : ` per ${per}`;
  return `${whose} has too little left: ${amount(used)} of ${amount(max)}${unit} spent${window}${need}`;
}

/** A limit that is enough: twice the old one, or twice what is spent or needed if that is more. */
export function raisedLimit({
  used,
  max,
  asked = 0,
}: Pick<PlainExhausted, "used" | "max" | "asked">): number {
  return Math.min(2 * Math.max(used, max, used + asked), Number.MAX_SAFE_INTEGER);
}

const PAUSES: ReadonlySet<string> = new Set<PlainPause>([
  "by_user",
  "nondeterminism",
  "agent_fault",
  "poison",
  "no_matching_runner",
]);

function valueText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** The statuses of sessions that have not ended: those that need a person come first, and those that only wait come last. */
export const LIVE_STATUSES = [
  "input_required",
  "paused",
  "cancelling",
  "working",
  "submitted",
  "waiting",
] as const satisfies readonly Status[];

/** Live sessions by status, and in each status the ones that changed last first. */
export function inLiveOrder<S extends { readonly status: Status; readonly updatedAt: number }>(
  sessions: readonly S[],
): readonly S[] {
  const rank = ({ status }: S): number => (LIVE_STATUSES as readonly Status[]).indexOf(status);
  return sessions.toSorted((a, b) => rank(a) - rank(b) || b.updatedAt - a.updatedAt);
}
