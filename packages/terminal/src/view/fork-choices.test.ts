// The page offers places to fork by types of records alone. A fork must take place there as offered.

import { forkSession, type JournalRecord, type Session } from "@holdfast/core";
import { forkChoices } from "@holdfast/proto/view";
import { expect, test } from "vitest";

const task = (id: number) => ({ type: "schedule_task", id, kind: "t", hash: "h" });
const done = (id: number) => ({ type: "task_completed", at: 2, task: id, attempt: 1, payload: "1" });
const TURN = [{ type: "started", at: 1 }, task(0), task(1), done(0), task(2), done(1), done(2)];
const CHECKPOINT = { type: "checkpoint", id: 5, at: 3, turn: 1, entryCount: 0, payload: "1" };
const CANCEL = { type: "cancel_requested", at: 5, deadlineAt: 9 };
const COMPLETE = { type: "complete", id: 9, payload: "1" };

const JOURNALS: Readonly<Record<string, readonly object[]>> = {
  empty: [],
  "one turn": TURN,
  "two turns": [...TURN, CHECKPOINT, ...TURN],
  completed: [...TURN, CHECKPOINT, ...TURN, COMPLETE],
  cancelled: [...TURN, CHECKPOINT, ...TURN, CANCEL, task(7), done(7), COMPLETE],
  "completed at once": [{ type: "started", at: 1 }, COMPLETE],
};

test.each(Object.entries(JOURNALS))(
  "a session that is %s can be forked wherever the page offers it",
  (_, drafts) => {
    const records = drafts.map((draft, seq) => ({ ...draft, seq })) as unknown as readonly JournalRecord[];
    const session = {
      sessionId: "s",
      agent: { name: "a", version: "1" },
      status: "working",
      payers: [],
      createdAt: 0,
      flags: 0,
      format: 1,
      seed: 1,
      nextSeq: records.length,
    } as unknown as Session;
    const fork = (at: number, more: object) =>
      forkSession(
        { session, records, entries: [] },
        { sessionId: "f", tasks: "rerun", seed: 1, now: 1, at, ...more },
      );
    for (let seq = -1; seq <= records.length; seq++) {
      const choices = forkChoices(records, seq);
      expect(choices.at(-1)).toEqual({ at: 0, place: "beginning", takesInput: true });
      for (const { at, takesInput } of choices) {
        expect(fork(at, {}).session.nextSeq).toBe(at);
        const withInput = () => fork(at, { input: { text: "2" } });
        if (takesInput) expect(withInput).not.toThrow();
        else expect(withInput).toThrow("cannot have another input");
      }
    }
  },
);
