// `itemsOf`: what one session asks of a person, read from its row and the records of its open questions.

import { askedQuestions, defined, positionId, type Session, type StorageReader } from "@holdfast/core";
import { principalOf, viewQuestion, type InboxItem } from "@holdfast/proto/view";
import type { Io } from "@holdfast/terminal/frame/command";
import type { Database } from "@holdfast/place/project";
import { answerCommands, openQuestions, statusText } from "@holdfast/terminal/view/describe-session";
import { pauseAdvice } from "@holdfast/terminal/view/pause-advice";
import { walkUp } from "@holdfast/terminal/view/session-tree";

export interface InboxContext {
  readonly reader: StorageReader;
  readonly place: Pick<Database, "coordinator">;
  readonly io: Pick<Io, "call">;
}

export async function itemsOf(session: Session, context: InboxContext): Promise<readonly InboxItem[]> {
  const { reader, place, io } = context;
  const { sessionId, title, placement, updatedAt, agent } = session;
  const isElsewhere = place.coordinator !== undefined;
  const path = [agent.name];
  for await (const above of walkUp(reader, session)) path.unshift(above.agent.name);
  const common = {
    sessionId,
    ...defined({ title }),
    path,
    principal: principalOf(placement?.owner, isElsewhere),
  };
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
  const records = await askedQuestions(
    reader,
    session,
    open.map(({ id }) => id),
  );
  return open.map((wait) => {
    const asked = records.get(wait.id);
    const view = viewQuestion(asked?.question ?? { prompt: wait.prompt }, wait.answer);
    const { kind, prompt, tool, action, change, beside, folder, lastingRule, askedBy, details } = view;
    const isAnswered = pending.has(wait.name);
    return {
      ...common,
      id: positionId(sessionId, wait.id),
      kind: isAnswered ? "answered" : kind,
      what: prompt,
      ...defined({ tool, action, change, beside, folder, lastingRule, askedBy, details }),
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
