// `askedQuestions` finds questions in a long turn by few reads.

import { expect, test } from "vitest";
import type { JournalRecord } from "../journal/record.ts";
import { askedQuestions } from "./answer-audit.ts";

/** A turn whose every third record is a command; the first command is the question, and so are those given. */
function turn(records: number, isAsked: (id: number) => boolean, isSilent = (_seq: number) => false) {
  const journal: JournalRecord[] = [];
  let id = 0;
  for (let seq = 0; seq < records; seq++) {
    if (isSilent(seq) || seq % 3 !== 1) {
      journal.push({ seq, type: "timer_fired", timer: 0, at: 1_000 + seq });
      continue;
    }
    const payload = isAsked(id) ? `{"prompt":"question ${id}"}` : undefined;
    const type = payload === undefined ? "append_entry" : "request_input";
    journal.push({ seq, type, id: id++, payload } as unknown as JournalRecord);
  }
  let read = 0;
  const reader = {
    journal: (_session: string, from: number, limit: number) => {
      const found = journal.slice(from, from + limit);
      read += found.length;
      return Promise.resolve(found);
    },
  };
  const find = (ids: readonly number[], checkpointSeq = 0) =>
    askedQuestions(reader, { sessionId: "ses", checkpointSeq, nextSeq: records }, ids);
  return { find, read: () => read, journal };
}

test("each question of a turn is found with the time of the record before it", async () => {
  const { find, journal } = turn(1_500, () => true);
  const asked = journal.filter(({ type }) => type === "request_input") as { id: number; seq: number }[];
  const found = await find(asked.map(({ id }) => id));
  expect([...found]).toEqual(
    asked.map(({ id, seq }) => [id, { question: { prompt: `question ${id}` }, at: 1_000 + seq - 1 }]),
  );
});

test.each([0, 1, 7_777, 33_332])(
  "question %i of a turn of 100,000 records is found by few reads",
  async (id) => {
    const { find, read } = turn(100_000, () => true);
    expect((await find([id])).get(id)?.question).toEqual({ prompt: `question ${id}` });
    expect(read()).toBeLessThan(5_000);
  },
);

test("a question is found on either side of many events", async () => {
  const isSilent = (seq: number) => seq > 1_000 && seq < 9_000;
  for (const id of [3, 200, 333, 500]) {
    const { find } = turn(10_000, () => true, isSilent);
    expect((await find([id])).get(id)?.question).toEqual({ prompt: `question ${id}` });
  }
});

test("a command that is no question, and what is not there, is not found", async () => {
  const { find } = turn(2_000, (id) => id !== 5);
  expect(await find([5, 100_000])).toEqual(new Map());
  expect(await find([1], 1_000)).toEqual(new Map());
});

test("an empty turn has no question", async () => {
  expect(await turn(0, () => true).find([0])).toEqual(new Map());
});
