// `noteSharedFolder`: the warning that another session works in the same folder, and that each may overwrite the work of the other.

import { existsSync } from "node:fs";
import { extname } from "node:path";
import type { AgentRecord } from "@holdfast/agents";
import { NEXT_INPUT, type Session, type SessionStatus } from "@holdfast/core";
import type { Io } from "../../frame/command.ts";
import { plainLine } from "../../frame/plain-text.ts";
import { withReader } from "../../place/find-session.ts";
import type { Database } from "../../place/project.ts";
import { agentPlaces } from "../agent-places.ts";
import { EXTERNAL } from "@holdfast/machine/external-agent-names";
import { findSandboxRoot } from "../sandbox-settings.ts";
import { worktreesOf } from "@holdfast/machine/session-folder";

const AT_WORK: readonly SessionStatus[] = ["submitted", "working", "waiting"];
/** Sessions of one status that are looked at. */
const LOOKED_AT = 100;
const NAMED_MAX = 3;
const NAME_CHARS = 100;

interface WorkingSession {
  readonly sessionId: string;
  readonly file: string;
  /** The record of an agent file. */
  readonly record: AgentRecord | undefined;
  readonly place: Database;
  /** A session that a note has named already. */
  readonly named?: string;
}

/** Says which sessions of this project run and share its folder, before another one begins or continues to. */
export async function noteSharedFolder(working: WorkingSession, io: Io): Promise<void> {
  const { sessionId, file, record, place, named } = working;
  if (!worksInFolder(file) || (record !== undefined && record.workspace !== "shared")) return;
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
      worksInFolder(other.agent.file ?? "") &&
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
  const advice = file.startsWith(EXTERNAL)
    ? `\`${io.call(`run ${file.slice(EXTERNAL.length)} "…" --worktree`)}\` gives an agent its own`
    : "with `holdfast.workspace: worktree` in its file an agent has its own";
  io.note(`${io.notes.symbols.warn} ${names}${more} may work in this folder at the same time; ${advice}`);
}

/** A conversation that waits for its next request changes nothing. */
function isForRequest(wait: Session["waits"][number]): boolean {
  return wait.type === "signal" && wait.name === NEXT_INPUT;
}

/** Whether the agent has tools for the files of a folder. */
function worksInFolder(file: string): boolean {
  return (
    file.startsWith(EXTERNAL) || [".md", ".toml", ".json"].includes(extname(file)) || extname(file) === ""
  );
}
