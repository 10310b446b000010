// `itemsOf`: what one session asks of a person, read from its row and the records of its open questions.

import {
  decodeJson,
  defined,
  positionId,
  type Question,
  type Session,
  type StorageReader,
} from "@holdfast/core";
import { principalOf, viewQuestion, type InboxItem } from "@holdfast/proto/view";
import type { Io } from "@holdfast/terminal/frame/command";
import type { Database } from "../place/project.ts";
import {
  answerCommands,
  openQuestions,
  statusText,
  type QuestionWait,
} from "@holdfast/terminal/view/describe-session";
import { pauseAdvice } from "@holdfast/terminal/view/pause-advice";
import { walkUp } from "@holdfast/terminal/view/session-tree";

const PAGE_RECORDS = 200;

export interface InboxContext {
  readonly reader: StorageReader;
  readonly place: Pick<Database, "coordinator">;
  readonly io: Pick<Io, "call">;
}

export async function itemsOf(session: Session, context: InboxContext): Promise<readonly InboxItem[]> {
  const { reader, place, io } = context;
  const { sessionId, placement, updatedAt, agent } = session;
  const isElsewhere = place.coordinator !== undefined;
  const path = [agent.name];
  for await (const above of walkUp(reader, session)) path.unshift(above.agent.name);
  const common = { sessionId, path, principal: principalOf(placement?.owner, isElsewhere) };
  if (session.status === "failed")
    return [
      {
        ...common,
        id: sessionId,
        kind: "uncertain_effect",
        what: session.error?.message ?? "an effect may have happened",
        since: session.endedAt ?? updatedAt,
        commands: [io.call(`show ${sessionId}`), io.call(`delete ${sessionId}`)],
      },
    ];
  const paused = pauseAdvice(session, io, isElsewhere);
  if (paused !== undefined)
    return [
      {
        ...common,
        id: sessionId,
        kind: "pause",
        what: `${statusText(session)}: ${paused.why}`,
        ...defined({ pauseReason: session.pauseReason }),
        since: updatedAt,
        commands: paused.commands,
      },
    ];
  const open = openQuestions(session);
  const pending = new Set((await reader.pendingSignals(sessionId)).map(({ name }) => name));
  const records = await questionRecords(session, open, reader);
  return open.map((wait) => {
    const asked = records.get(wait.id);
    const view = viewQuestion(asked?.question ?? { prompt: wait.prompt }, wait.answer);
    const { kind, prompt, tool, action, folder, lastingRule, details } = view;
    const isAnswered = pending.has(wait.name);
    return {
      ...common,
      id: positionId(sessionId, wait.id),
      kind: isAnswered ? "answered" : kind,
      what: prompt,
      ...defined({ tool, action, folder, lastingRule, details }),
      since: asked?.at ?? updatedAt,
      ...defined({ until: wait.until }),
      commands: isAnswered
        ? isElsewhere
          ? [] // Its runners take the answer.
          : [io.call(`resume ${sessionId}`)]
        : answerCommands(sessionId, wait, io),
    };
  });
}

interface Asked {
  readonly question: Question;
  /** The time of the last record before it that has one. */
  readonly at: number | undefined;
}

/** The questions as they were asked. They stand behind the last checkpoint, which withdraws earlier ones. */
export async function questionRecords(
  { sessionId, checkpointSeq = 0, nextSeq }: Session,
  open: readonly QuestionWait[],
  reader: StorageReader,
): Promise<ReadonlyMap<number, Asked>> {
  const wanted = new Set(open.map(({ id }) => id));
  const found = new Map<number, Asked>();
  let at: number | undefined;
  for (let from = checkpointSeq; from < nextSeq && found.size < wanted.size; from += PAGE_RECORDS) {
    for (const record of await reader.journal(sessionId, from, PAGE_RECORDS)) {
      if ("at" in record) at = record.at;
      if (record.type === "request_input" && wanted.has(record.id))
        found.set(record.id, { question: decodeJson(record.payload) as Question, at });
    }
  }
  return found;
}
