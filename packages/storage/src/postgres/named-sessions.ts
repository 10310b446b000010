// Which sessions a group is certain to be about, before it is worked out.

import type { Change, Effect } from "@holdfast/core";

export interface NamedSessions {
  /** Those it speaks of as being there: they are read beforehand. */
  readonly known: ReadonlySet<string>;
  /** Those it makes: they are taken to be new until the database says otherwise. */
  readonly made: ReadonlySet<string>;
}

export function namesOf(changes: readonly Change[]): NamedSessions {
  const names = { known: new Set<string>(), made: new Set<string>() };
  for (const change of changes) nameOf(change, names);
  return names;
}

function nameOf(change: Change | Effect, names: { known: Set<string>; made: Set<string> }): void {
  switch (change.type) {
    case "create_session":
      names.made.add(change.sessionId);
      if (change.parent !== undefined) names.known.add(change.parent.sessionId);
      for (const effect of change.first?.effects ?? []) nameOf(effect, names);
      return;
    case "import_session":
      names.made.add(change.sessionId);
      if (change.session.parent !== undefined) names.known.add(change.session.parent.sessionId);
      return;
    case "commit_batch":
      names.known.add(change.sessionId);
      for (const effect of change.effects ?? []) nameOf(effect, names);
      return;
    case "fire_schedule":
      nameOf(change.effect, names);
      return;
    case "put_schedule":
    case "remove_schedule":
    case "put_document":
    case "remove_document":
      return;
    case "audited":
      if (change.change !== undefined) nameOf(change.change, names);
      return;
    case "send_signal":
    case "request_cancel":
    case "pause_session":
    case "resume_session":
    case "set_budget":
    case "release_claim":
    case "delete_session":
    case "begin_move":
    case "end_move":
      names.known.add(change.sessionId);
      return;
  }
}
