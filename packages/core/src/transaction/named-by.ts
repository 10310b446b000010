// `eachName`: the sessions and other things that a change names, known before the change is applied.
//
// Changes that name nothing in common may be applied in any order, and at the same time. A change may also
// affect a session that it does not name, such as a notified parent or a payer; the storage handles that.

import type { Change, Effect } from "../session/changes.ts";

/**
 * `known`: a session that the change treats as existing. `made`: a session that it creates. `thing`: a
 * schedule, a document or the audit, whose names differ from those of sessions.
 */
export type NameKind = "known" | "made" | "thing";

/** All rows of the audit are one chain: each follows from the row before. */
const AUDIT = "thing:audit";

export function eachName(change: Change | Effect, visit: (name: string, kind: NameKind) => void): void {
  switch (change.type) {
    case "create_session":
      visit(change.sessionId, "made");
      if (change.parent !== undefined) visit(change.parent.sessionId, "known");
      if (change.under !== undefined) visit(change.under.sessionId, "known");
      for (const effect of change.first?.effects ?? []) eachName(effect, visit);
      return;
    case "import_session":
      visit(change.sessionId, "made");
      return;
    case "import_tree":
      for (const { sessionId } of change.sessions) visit(sessionId, "made");
      return;
    case "commit_batch":
      visit(change.sessionId, "known");
      for (const effect of change.effects ?? []) eachName(effect, visit);
      return;
    case "remove_ended":
      for (const sessionId of change.sessionIds) visit(sessionId, "known");
      return;
    case "put_schedule":
      visit(`thing:schedule:${change.schedule.scheduleId}`, "thing");
      return;
    case "remove_schedule":
      visit(`thing:schedule:${change.scheduleId}`, "thing");
      return;
    case "fire_schedule":
      visit(`thing:schedule:${change.scheduleId}`, "thing");
      eachName(change.effect, visit);
      return;
    case "put_document":
    case "remove_document":
      visit(`thing:document:${change.collection}:${change.id}`, "thing");
      return;
    case "trim_audit":
      visit(AUDIT, "thing");
      return;
    case "audited":
      visit(AUDIT, "thing");
      if (change.change !== undefined) eachName(change.change, visit);
      return;
    case "send_signal":
    case "request_cancel":
    case "pause_session":
    case "resume_session":
    case "set_budget":
    case "set_title":
    case "release_claim":
    case "delete_session":
    case "begin_move":
    case "end_move":
      visit(change.sessionId, "known");
      return;
  }
}
