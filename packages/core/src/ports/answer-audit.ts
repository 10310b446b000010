// `withAnswerDetails`, `findAnswerer`: the audit of answers names the question, the answer and the person.
//
//   - Details hold the question as its journal has it, and the answer as it was given, without what looks
//     like a secret. Long texts are cut; the journal has all of them.
//   - The audit is kept when its session is deleted.

import { decodeJson, encodeJson, type Json, type JsonText } from "../json/json.ts";
import { withoutSecrets } from "../json/secret-looks.ts";
import { isCommand, type JournalRecord, type Question } from "../journal/record.ts";
import { answerSignalName } from "../journal/signal-names.ts";
import type { AuditRow } from "../session/audit/audit.ts";
import type { Change } from "../session/changes.ts";
import type { Session } from "../session/session.ts";
import type { StorageReader } from "./storage.ts";

/** The details of an answer, as JSON of an audit row. */
export interface AnswerDetails {
  /** The number of the question, by which its session names it. */
  readonly id: number;
  readonly question: Question;
  readonly answer: Json | undefined;
}

/** Texts are cut to the first of these lengths with which the details fit. */
const TEXT_CHARS = [20_000, 2_000, 200] as const;
const DETAILS_CHARS = 64 * 1024;
const PAGE_RECORDS = 200;
const PAGE_ROWS = 100;
/** The newest rows in which the person who gave an answer is looked for. */
const ROWS_MAX = 10_000;

/** The change with the details of the answer that it records; any other change as it is. */
export async function withAnswerDetails(reader: StorageReader, asked: Change): Promise<Change> {
  if (!isAuditedAnswer(asked)) return asked;
  const { sessionId, name, payload } = asked.change;
  const session = await reader.session(sessionId);
  const wait = session?.waits.find((one) => one.type === "input" && one.name === name);
  if (session === undefined || wait?.type !== "input") return asked;
  const { question = { prompt: wait.prompt } } =
    (await askedQuestions(reader, session, [wait.id])).get(wait.id) ?? {};
  const details = { id: wait.id, question, answer: decodeJson(payload) as Json | undefined };
  return { ...asked, audit: { ...asked.audit, details: detailsText(details) } };
}

function detailsText({ id, question, answer }: AnswerDetails): JsonText {
  const textOf = (value: unknown, chars: number): JsonText =>
    encodeJson(withoutSecrets(value as Json, chars), "the details of an answer")!;
  for (const chars of TEXT_CHARS) {
    const text = textOf({ id, question, answer }, chars);
    if (text.length <= DETAILS_CHARS) return text;
  }
  const [, , shortest] = TEXT_CHARS;
  const left = { prompt: question.prompt, left: "the rest is too long for the audit" };
  return textOf({ id, question: left, answer: "(too long for the audit)" }, shortest);
}

/** Whether it is an answer that is recorded with its audit row. */
export function isAuditedAnswer(change: Change): change is Extract<Change, { type: "audited" }> & {
  readonly change: Extract<Change, { type: "send_signal" }>;
} {
  return (
    change.type === "audited" &&
    change.change?.type === "send_signal" &&
    change.change.name.startsWith(ANSWER)
  );
}

const ANSWER = answerSignalName(0).slice(0, -1);

export interface Asked {
  readonly question: Question;
  /** The time of the last record before it that has one. */
  readonly at: number | undefined;
}

/** Open questions as they were asked. They stand behind the last checkpoint, which withdraws earlier ones. */
export async function askedQuestions(
  reader: Pick<StorageReader, "journal">,
  session: Pick<Session, "sessionId" | "checkpointSeq" | "nextSeq">,
  ids: readonly number[],
): Promise<ReadonlyMap<number, Asked>> {
  const found = new Map<number, Asked>();
  for (const id of ids) {
    const asked = await findQuestion(reader, session, id);
    if (asked !== undefined) found.set(id, asked);
  }
  return found;
}

/**
 * A turn may have many records. The numbers of commands grow with their positions, so the question is found by
 * halving. The first look is at the end, because a session mostly waits for what it asked last.
 */
async function findQuestion(
  reader: Pick<StorageReader, "journal">,
  { sessionId, checkpointSeq = 0, nextSeq }: Pick<Session, "sessionId" | "checkpointSeq" | "nextSeq">,
  id: number,
): Promise<Asked | undefined> {
  const read = (from: number, to: number) => reader.journal(sessionId, from, to - from);
  let [low, high] = [checkpointSeq, nextSeq];
  let from = Math.max(low, high - PAGE_RECORDS);
  while (low < high) {
    const to = Math.min(high, from + PAGE_RECORDS);
    let records = await read(from, to);
    // Events alone say nothing of the place.
    while (!records.some(isCommand) && from > low) {
      const before = Math.max(low, from - Math.max(PAGE_RECORDS, records.length));
      records = [...(await read(before, from)), ...records];
      from = before;
    }
    const commands = records.filter(isCommand);
    const question = commands.find((command) => command.id === id);
    if (question !== undefined) {
      if (question.type !== "request_input") return undefined;
      const at =
        lastTime(records, question.seq) ?? lastTime(await read(Math.max(low, from - PAGE_RECORDS), from));
      return { question: decodeJson(question.payload) as Question, at };
    }
    if (commands.length > 0 && commands[0]!.id > id) high = from;
    else low = to;
    from = Math.max(low, Math.floor((low + high - PAGE_RECORDS) / 2));
  }
  return undefined;
}

function lastTime(records: readonly JournalRecord[], before = Infinity): number | undefined {
  const last = records.findLast((record) => "at" in record && record.seq < before);
  return last !== undefined && "at" in last ? last.at : undefined;
}

/** The person who gave the answer that counts, where one of the newest rows says it. */
export async function findAnswerer(
  reader: Pick<StorageReader, "audit">,
  sessionId: string,
  id: number,
): Promise<string | undefined> {
  const end = await auditEnd(reader);
  for (let to = end; to > 1 && to > end - ROWS_MAX; to -= PAGE_ROWS) {
    const rows = await auditBefore(reader, to, PAGE_ROWS);
    const found = rows.findLast(
      (row) =>
        row.object === `session:${sessionId}` && row.outcome === "stored" && answerDetails(row)?.id === id,
    );
    if (found !== undefined) return found.actor;
  }
  return undefined;
}

/** The details of a row about an answer. */
function answerDetails({ details }: Pick<AuditRow, "details">): AnswerDetails | undefined {
  if (details === undefined) return undefined;
  const found = decodeJson(details) as Partial<AnswerDetails> | null;
  return typeof found?.id === "number" && found.question !== undefined ? (found as AnswerDetails) : undefined;
}

/** The rows below a number, at most `limit` numbers back, oldest first. Older ones may have been removed. */
export async function auditBefore(
  reader: Pick<StorageReader, "audit">,
  end: number,
  limit: number,
): Promise<readonly AuditRow[]> {
  const after = Math.max(0, end - limit - 1);
  const rows = await reader.audit({ after, limit: end - after - 1 });
  return rows.filter(({ seq }) => seq < end);
}

/** The number behind the newest row, or behind the last one below a number. Found by halving. */
export async function auditEnd(reader: Pick<StorageReader, "audit">, before = 0): Promise<number> {
  const isThere = async (seq: number): Promise<boolean> =>
    (await reader.audit({ after: seq - 1, limit: 1 })).length > 0;
  if (before === 1 || (before > 1 && (await isThere(before - 1)))) return before;
  let above = 1;
  while (await isThere(above)) above *= 2;
  let known = Math.floor(above / 2);
  while (above - known > 1) {
    const middle = Math.floor((known + above) / 2);
    if (await isThere(middle)) known = middle;
    else above = middle;
  }
  return above;
}
