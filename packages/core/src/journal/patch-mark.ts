// The mark in the journal of a session that runs changed code: the probe of `ctx.patched`.

import type { JournalRecord, RecordProbe } from "./record.ts";

const PREFIX = "patched ";

/** The probe of this change. */
export function patchProbe(name: string): string {
  return `${PREFIX}${name}`;
}

/** Whether it says that a session met changed code here. */
export function isPatchMark(record: JournalRecord): record is Extract<JournalRecord, RecordProbe> {
  return record.type === "record_probe" && record.probe.startsWith(PREFIX);
}
