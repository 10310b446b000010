// `recordedSecrets`: the names of the secrets that a session of an agent file began with. Its call may have named environments that its file
// does not name, so the file alone does not tell.

import { decodeJson, type JournalRecord, type Session, type StorageReader } from "@holdfast/core";

/** The record of the agent is among the first ones: its first task reads it, and a fork begins with a checkpoint that has it. */
const RECORDS = 20;

/** @returns no names for a session that has not read its agent yet. */
export async function recordedSecrets(
  { sessionId }: Pick<Session, "sessionId">,
  reader: StorageReader | undefined,
): Promise<readonly string[]> {
  const records = (await reader?.journal(sessionId, 0, RECORDS)) ?? [];
  return records.map(secretsIn).find((names) => names !== undefined) ?? [];
}

function secretsIn(record: JournalRecord): readonly string[] | undefined {
  if (record.type !== "task_completed" && record.type !== "checkpoint") return undefined;
  const found = record.payload === undefined ? undefined : decodeJson(record.payload);
  const { agent } = fieldsOf(found);
  const { secrets } = fieldsOf(agent);
  const isList = Array.isArray(secrets) && secrets.every((name) => typeof name === "string");
  return isList ? secrets : undefined;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
