// `readTimeline`: the timeline of a session with all sessions below it, from storage. `TimelineBuilder`
// computes each.

import { defined, type Session, type StorageReader } from "@holdfast/core";
import { addCosts, type Cost, TimelineBuilder, type TimelineTurn } from "@holdfast/proto/view";
import { readBelow, walk } from "./session-tree.ts";
import { JournalTail } from "./journal-events.ts";

/** A session below it, with what its own tasks used. */
export interface TimelineChild {
  readonly session: Session;
  readonly depth: number;
  readonly usage?: Cost;
}

export interface Timeline {
  readonly session: Session;
  /** Its end, or now. */
  readonly until: number;
  readonly turns: readonly TimelineTurn[];
  readonly usage?: Cost;
  readonly models: readonly ({ readonly model: string } & Cost)[];
  readonly children: readonly TimelineChild[];
  /** The usage of the session and of all sessions below it. */
  readonly usageOfAll?: Cost;
}

export async function readTimeline(reader: StorageReader, sessionId: string, now: number): Promise<Timeline> {
  const building = await built(reader, sessionId);
  // After the journal: then it knows of every record that was read.
  const session = (await reader.session(sessionId))!;
  if (session.endedAt !== undefined) building.end(session.endedAt);
  const children: TimelineChild[] = [];
  let usageOfAll = building.usage;
  for (const { session: child, depth } of walk(await readBelow(reader, session, Infinity))) {
    const { usage } = await built(reader, child.sessionId);
    children.push({ session: child, depth, ...defined({ usage }) });
    if (usage !== undefined) usageOfAll = usageOfAll === undefined ? usage : addCosts(usageOfAll, usage);
  }
  return {
    session,
    until: session.endedAt ?? Math.max(now, session.updatedAt),
    turns: building.turns,
    models: building.models,
    ...defined({ usage: building.usage }),
    children,
    ...defined({ usageOfAll }),
  };
}

async function built(reader: StorageReader, sessionId: string): Promise<TimelineBuilder> {
  const building = new TimelineBuilder();
  await new JournalTail(reader, sessionId).advance((event) => building.add(event));
  return building;
}

export function timelineJson(timeline: Timeline): object {
  const { session, until, turns, usage, models, children, usageOfAll } = timeline;
  const { sessionId, agent, status, createdAt, endedAt } = session;
  return {
    sessionId,
    agent: agent.name,
    version: agent.version,
    status,
    startedAt: createdAt,
    ...defined({ endedAt }),
    durationMs: until - createdAt,
    ...defined({ traceparent: agent.traceparent, usage }),
    models,
    ...(children.length === 0 ? {} : { children: children.map(childJson) }),
    ...defined({ usageOfAll }),
    turns: turns.map((turn) => ({ ...turn, durationMs: (turn.endedAt ?? until) - turn.startedAt })),
  };
}

function childJson({ session, usage }: TimelineChild): object {
  const { sessionId, agent, status, createdAt, endedAt } = session;
  return {
    sessionId,
    agent: agent.name,
    status,
    startedAt: createdAt,
    ...defined({ endedAt, usage }),
  };
}
