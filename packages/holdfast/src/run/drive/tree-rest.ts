// When a session and the sessions below it have nothing to do here (`isQuiescent`, `treeCleansUp`), read from
// storage.

import { setTimeout as delay } from "node:timers/promises";
import { isEnded, LIMITS, resumesAt, type AgentStorage, type Session } from "@holdfast/core";
import type { Agent } from "@holdfast/runtime";
import { readBelow, walk } from "@holdfast/terminal/view/session-tree";
import { everyAgent } from "../../agents/agent-tree.ts";
import { awaitsRequest, type Parks } from "./parks.ts";

type Reader = AgentStorage["reader"];

interface Root {
  readonly sessionId: string;
  /** Without one the session runs elsewhere. */
  readonly agent: Agent | undefined;
  readonly parks: Parks;
}

const LOOK_MS = 250;
/** Longer than a cancelled session may take. */
const TREE_GRACE_MS = LIMITS.cancelGraceMs + 2_000;

/** Whether the session and those below it that run here wait, and nothing that has already arrived will wake any of them. */
export async function isQuiescent(reader: Reader, { sessionId, agent, parks }: Root): Promise<boolean> {
  const session = await reader.session(sessionId);
  if (session === undefined || !(await waits(reader, session))) return false;
  if (parks === "answered" && !awaitsRequest(session)) return false;
  if (agent === undefined || session.children === 0) return true;
  const runHere = new Set([...everyAgent(agent)].map(({ name }) => name));
  for (const { session: below } of walk(await readBelow(reader, session))) {
    if (isEnded(below.status) || below.status === "paused" || !runHere.has(below.agent.name)) continue;
    if (!(await waits(reader, below))) return false;
  }
  // The session was read before those below it. A signal of one of them may have woken it since.
  const after = await reader.session(sessionId);
  return after?.nextSeq === session.nextSeq && (await waits(reader, after));
}

async function waits(reader: Reader, session: Session): Promise<boolean> {
  if (resumesAt(session) !== undefined) return true;
  if (session.status !== "waiting" && session.status !== "input_required") return false;
  if (session.wakeAt !== undefined && session.wakeAt <= Date.now()) return false;
  const pending = await reader.pendingSignals(session.sessionId);
  return !session.waits.some((wait) => "name" in wait && pending.some(({ name }) => name === wait.name));
}

/**
 * Resolves when the sessions below an ended session that were cancelled with it have cleaned up, or when
 * storage ends them at their deadline.
 */
export async function treeCleansUp(reader: Reader, sessionId: string): Promise<void> {
  for (const deadline = Date.now() + TREE_GRACE_MS; Date.now() < deadline;) {
    const session = await reader.session(sessionId);
    if (session === undefined || !isEnded(session.status)) return;
    const below = [...walk(await readBelow(reader, session))];
    if (below.every((node) => node.session.status !== "cancelling")) return;
    await delay(LOOK_MS);
  }
}
