// `recordedRecord`: the agent that a session of an agent file began with. Its call may have named
// environments that its file does not name, and the file may be gone, so the file alone does not tell.

import { decodeJson, type JournalRecord, type Session, type StorageReader } from "@holdfast/core";
import type { AgentRecord } from "@holdfast/agents";

/**
 * The record of the agent is among the first ones: its first task reads it, and a fork begins with a
 * checkpoint that has it.
 */
const RECORDS = 20;

/** @returns nothing for a session that has not read its agent yet. */
export async function recordedRecord(
  { sessionId }: Pick<Session, "sessionId">,
  reader: StorageReader | undefined,
): Promise<AgentRecord | undefined> {
  const records = (await reader?.journal(sessionId, 0, RECORDS)) ?? [];
  return records.map(agentIn).find((agent) => agent !== undefined);
}

function agentIn(record: JournalRecord): AgentRecord | undefined {
  if (record.type !== "task_completed" && record.type !== "checkpoint") return undefined;
  const found = record.payload === undefined ? undefined : decodeJson(record.payload);
  const { agent } = fieldsOf(found);
  const { secrets, name, prompt } = fieldsOf(agent);
  const isList = Array.isArray(secrets) && secrets.every((one) => typeof one === "string");
  const isRecord = isList && typeof name === "string" && typeof prompt === "string";
  return isRecord ? (agent as AgentRecord) : undefined;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
