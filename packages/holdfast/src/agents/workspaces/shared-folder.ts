// `noteSharedFolder`: the warning that another session works in the same folder, and that each may overwrite
// the work of the other.

import { existsSync } from "node:fs";
import type { AgentRecord } from "@holdfast/agents";
import { NEXT_INPUT, type Session, type SessionStatus, type StorageReader } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { withReader } from "@holdfast/place/find-session";
import type { Database } from "@holdfast/place/project";
import { agentPlaces } from "../agent-places.ts";
import { agentSourceText, readAgentSource, type AgentSource } from "@holdfast/machine/agent-source";
import { findSandboxRoot } from "../sandbox-settings.ts";
import { worktreesOf } from "@holdfast/machine/session-folder";
import { CHANGING_TASKS, worksInFolder, type PlacedAgent } from "./works-in-folder.ts";

const AT_WORK: readonly SessionStatus[] = ["submitted", "working", "waiting"];
/** Sessions of one status that are looked at. */
const LOOKED_AT = 100;
/** The newest records of a session that are looked at. */
const RECORDS_MAX = 500;
const NAMED_MAX = 3;
const NAME_CHARS = 100;

interface WorkingSession extends PlacedAgent {
  readonly sessionId: string;
  /** The record of an agent file. */
  readonly record: AgentRecord | undefined;
  readonly place: Database;
  /** A session that a note has named already. */
  readonly named?: string;
}

/** Says which sessions of this project run and share its folder, before another one begins or continues to. */
export async function noteSharedFolder(working: WorkingSession, io: Io): Promise<void> {
  const { sessionId, source, record, place } = working;
  if (!worksInFolder(working) || (record !== undefined && record.workspace !== "shared")) return;
  if (place.coordinator !== undefined || !existsSync(place.path)) return;
  const mayShare = await withReader(place, async (reader) =>
    reader === undefined ? [] : othersAtWork(working, reader),
  );
  if (mayShare.length === 0) return;
  const ids = [sessionId, ...mayShare.map((other) => other.sessionId)];
  const worktrees = await worktreesOf(agentPlaces(io)).lookUpAll(findSandboxRoot(io).value, ids);
  if (worktrees.has(sessionId)) return; // It is continued, and has one.
  const others = mayShare.filter((other) => !worktrees.has(other.sessionId));
  if (others.length === 0) return;
  const names = others
    .slice(0, NAMED_MAX)
    .map(({ sessionId: id, agent }) => `${id} (${plainLine(agent.name, NAME_CHARS)})`)
    .join(", ");
  const more = others.length > NAMED_MAX ? ` and ${others.length - NAMED_MAX} more` : "";
  const advice = adviceFor(source, io);
  io.note(`${io.notes.symbols.warn} ${names}${more} may work in this folder at the same time; ${advice}`);
}

async function othersAtWork(working: WorkingSession, reader: StorageReader): Promise<readonly Session[]> {
  const others: Session[] = [];
  for (const status of AT_WORK)
    for (const other of await reader.sessions({ status, limit: LOOKED_AT })) {
      const { sessionId, parent, waits } = other;
      const isOwn = sessionId === working.sessionId || sessionId === working.named || parent !== undefined;
      if (!isOwn && !waits.some(isForRequest) && (await mayChangeFiles(other, working, reader)))
        others.push(other);
    }
  return others;
}

/** A conversation that waits for its next request changes nothing. */
function isForRequest(wait: Session["waits"][number]): boolean {
  return wait.type === "signal" && wait.name === NEXT_INPUT;
}

/**
 * Whether another session may change files. Code of other agents is not loaded for that: its session has
 * asked for such a task. A session without a source began in a program of the user, and may have any agent.
 */
async function mayChangeFiles(
  { sessionId, agent: { name, file }, nextSeq }: Session,
  { agent, source }: PlacedAgent,
  reader: StorageReader,
): Promise<boolean> {
  if (file === undefined || readAgentSource(file).kind !== "code") return true;
  if (file === agentSourceText(source) && name === agent.name) return true;
  const records = await reader.journal(sessionId, Math.max(0, nextSeq - RECORDS_MAX), RECORDS_MAX);
  return records.some((record) => record.type === "schedule_task" && CHANGING_TASKS.includes(record.kind));
}

function adviceFor(source: AgentSource, io: Io): string {
  switch (source.kind) {
    case "program":
      return `\`${io.call(`run ${source.name} "…" --worktree`)}\` gives an agent its own`;
    case "file":
      return "with `holdfast.workspace: worktree` in its file an agent has its own";
    case "code":
      return "an agent of code chooses the folder of its tasks itself";
  }
}
