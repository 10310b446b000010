// `noteSharedFolder`: the warning that another session works in the same folder, and that each may overwrite the work of the other.

import { existsSync } from "node:fs";
import type { AgentRecord } from "@holdfast/agents";
import { NEXT_INPUT, type Session, type SessionStatus } from "@holdfast/core";
import type { Io } from "../../frame/command.ts";
import { plainLine } from "../../frame/plain-text.ts";
import { withReader } from "../../place/find-session.ts";
import type { Database } from "../../place/project.ts";
import { agentPlaces } from "../agent-places.ts";
import { readAgentSource, type AgentSource } from "@holdfast/machine/agent-source";
import { findSandboxRoot } from "../sandbox-settings.ts";
import { worktreesOf } from "@holdfast/machine/session-folder";

const AT_WORK: readonly SessionStatus[] = ["submitted", "working", "waiting"];
/** Sessions of one status that are looked at. */
const LOOKED_AT = 100;
const NAMED_MAX = 3;
const NAME_CHARS = 100;

interface WorkingSession {
  readonly sessionId: string;
  readonly source: AgentSource;
  /** The record of an agent file. */
  readonly record: AgentRecord | undefined;
  readonly place: Database;
  /** A session that a note has named already. */
  readonly named?: string;
}

/** Says which sessions of this project run and share its folder, before another one begins or continues to. */
export async function noteSharedFolder(working: WorkingSession, io: Io): Promise<void> {
  const { sessionId, source, record, place, named } = working;
  if (!worksInFolder(source) || (record !== undefined && record.workspace !== "shared")) return;
  if (place.coordinator !== undefined || !existsSync(place.path)) return;
  const running = await withReader(place, async (reader) => {
    const found: Session[] = [];
    for (const status of AT_WORK)
      found.push(...((await reader?.sessions({ status, limit: LOOKED_AT })) ?? []));
    return found;
  });
  const mayShare = running.filter(
    (other) =>
      other.sessionId !== sessionId &&
      other.sessionId !== named &&
      other.parent === undefined &&
      worksInFolder(sourceOf(other)) &&
      !other.waits.some(isForRequest),
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
  const advice =
    source.kind === "program"
      ? `\`${io.call(`run ${source.name} "…" --worktree`)}\` gives an agent its own`
      : "with `holdfast.workspace: worktree` in its file an agent has its own";
  io.note(`${io.notes.symbols.warn} ${names}${more} may work in this folder at the same time; ${advice}`);
}

/** A conversation that waits for its next request changes nothing. */
function isForRequest(wait: Session["waits"][number]): boolean {
  return wait.type === "signal" && wait.name === NEXT_INPUT;
}

/** Whether the agent has tools for the files of a folder. A session without a source began in a program of the user, and may have such an agent. */
function worksInFolder(source: AgentSource | undefined): boolean {
  return source?.kind !== "code";
}

function sourceOf({ agent }: Session): AgentSource | undefined {
  return agent.file === undefined ? undefined : readAgentSource(agent.file);
}
