// `placeOf`: the facts about a session that `holdfast show` reads beside its storage, from the coordinator or the database.

import { defined, type StorageReader } from "@holdfast/core";
import { AnswerPrincipals } from "../place/answer-principals.ts";
import { findOwner } from "../place/project-storage.ts";
import type { Database } from "../place/project.ts";
import type { SessionPlace } from "@holdfast/terminal/view/session-picture";

export function placeOf(sessionId: string, database: Database, reader: StorageReader): SessionPlace {
  const { coordinator } = database;
  const principals = coordinator === undefined ? new AnswerPrincipals(reader) : undefined;
  return {
    isElsewhere: coordinator !== undefined,
    ...defined({ principalOf: principals && ((signalId: string) => principals.of(signalId)) }),
    run: async () => coordinator && (await (await import("./run-list.ts")).readRunOf(coordinator, sessionId)),
    ownerPid: () => findOwner(database),
  };
}
