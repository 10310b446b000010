// Which sessions a group is certain to look at, so that they can be read before it is worked out.

import type { Change, Effect } from "@holdfast/core";

/** Those that changes name, but not those they make: these are taken to be new until the database says otherwise. */
export function namesOf(changes: readonly Change[]): string[] {
  const names = new Set<string>();
  for (const change of changes) nameOf(change, names);
  return [...names];
}

function nameOf(change: Change | Effect, names: Set<string>): void {
  switch (change.type) {
    case "create_session":
      if (change.parent !== undefined) names.add(change.parent.sessionId);
      for (const effect of change.first?.effects ?? []) nameOf(effect, names);
      return;
    case "import_session":
      if (change.session.parent !== undefined) names.add(change.session.parent.sessionId);
      return;
    case "commit_batch":
      names.add(change.sessionId);
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
      names.add(change.sessionId);
      return;
  }
}
