// `codec`: decoded records are the encoded ones, to the character, and any other line is refused.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CorruptRecordError } from "../errors/errors.ts";
import { decodeJson } from "../json/json.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { decodeRecords, encodeRecords, type BlobSource } from "./codec.ts";
import type { JournalRecord } from "./record.ts";

const NASTY = [
  ',"payload":',
  ',"payload":"',
  '","payload":',
  '"blob":"',
  "}",
  '"',
  "\\",
  "\n",
  "\r",
  "\u2028",
  "\u0000",
  "\ud800",
  "{",
];

const nastyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.array(fc.oneof(fc.constantFrom(...NASTY), fc.string())).map((parts) => parts.join("")),
);
const nastyJson = fc
  .oneof(
    nastyText,
    fc.jsonValue(),
    fc.dictionary(nastyText, nastyText),
    fc.record({ payload: nastyText, blob: nastyText }),
  )
  .map((value) => JSON.stringify(value));

const seq = fc.nat();
const payload = fc.option(nastyJson, { nil: undefined });

const anyRecord: fc.Arbitrary<JournalRecord> = fc.oneof(
  fc.record({
    type: fc.constant("schedule_task" as const),
    seq,
    id: seq,
    kind: nastyText,
    hash: nastyText,
    key: nastyText,
    payload,
  }),
  fc.record({
    type: fc.constant("take_signals" as const),
    seq,
    id: seq,
    pattern: nastyText,
    signalIds: fc.array(nastyText),
    names: fc.array(nastyText),
    payload,
  }),
  fc.record({ type: fc.constant("append_entry" as const), seq, id: seq, role: nastyText, hash: nastyText }),
  fc.record({ type: fc.constant("withdraw" as const), seq, id: seq, targets: fc.array(seq) }),
  fc.record({
    type: fc.constant("checkpoint" as const),
    seq,
    id: seq,
    at: seq,
    turn: seq,
    entryCount: seq,
    cancel: fc.record({ deadlineAt: seq, reason: nastyText }),
    payload,
  }),
  fc.record({
    type: fc.constant("signal_received" as const),
    seq,
    at: seq,
    wait: seq,
    signalId: nastyText,
    payload,
  }),
  fc.record({ type: fc.constant("task_failed" as const), seq, at: seq, task: seq, attempt: seq, payload }),
  fc.record({
    type: fc.constant("cancel_requested" as const),
    seq,
    at: seq,
    deadlineAt: seq,
    reason: nastyText,
  }),
  fc.record({ type: fc.constant("warned" as const), seq, at: seq, payload }),
);

describe("round trip", () => {
  test("any records are decoded with the exact text of their payloads", () => {
    fc.assert(
      fc.property(fc.array(anyRecord, { minLength: 1, maxLength: 8 }), (records) => {
        const { body, source } = encoded(records);
        const back = decodeRecords(body, source, "here");
        expect(back.map((record) => record.payload)).toEqual(records.map((record) => record.payload));
        expect(back).toEqual(records.map(withoutUndefined));
      }),
      { numRuns: 500 },
    );
  });

  test("a payload may look like a header, and a header like a payload", () => {
    const records: JournalRecord[] = [
      {
        type: "schedule_task",
        seq: 0,
        id: 0,
        kind: 'k","payload":"x',
        hash: "h",
        payload: '{"a":",\\"payload\\":1","payload":{"payload":2}}',
      },
      { type: "complete", seq: 1, id: 1, payload: '{"type":"fail","seq":9,"payload":3}' },
    ];
    const { body, source } = encoded(records);
    expect(decodeRecords(body, source, "here")).toEqual(records);
  });

  test("payloads of the blob size or more are stored apart, and smaller ones are not", () => {
    const small = `"${"s".repeat(FORMAT_LIMITS.blobChars - 3)}"`;
    const large = `"${"l".repeat(FORMAT_LIMITS.blobChars - 2)}"`;
    const records: JournalRecord[] = [
      { type: "complete", seq: 0, id: 0, payload: small },
      { type: "complete", seq: 1, id: 1, payload: large },
    ];
    const { body, source, blobs } = encoded(records);
    expect([...blobs.values()]).toEqual([large]);
    expect(body).toContain(small);
    expect(body).not.toContain("lll");
    expect(decodeRecords(body, source, "here")).toEqual(records);
  });

  test("one line per record, so that a body can be read by eye and by line tools", () => {
    const records: JournalRecord[] = [
      { type: "warned", seq: 0, at: 1, payload: '"a\\nb"' },
      { type: "started", seq: 1, at: 2 },
    ];
    expect(encoded(records).body.split("\n")).toHaveLength(2);
  });
});

describe("a damaged line is an error that names the place, never a default", () => {
  const whole = '{"type":"task_completed","at":5,"task":1,"attempt":1,"seq":2,"payload":{"text":"hello"}}';

  test.each([
    ["empty", ""],
    ["not JSON", "hello"],
    ["a number", "5"],
    ["null", "null"],
    ["a list", "[1]"],
    ["without a type", '{"seq":1}'],
    ["without a position", '{"type":"started","at":1}'],
    ["with a position that is no number", '{"type":"started","at":1,"seq":"1"}'],
    ["with a position below zero", '{"type":"started","at":1,"seq":-1}'],
    ["with a position between two", '{"type":"started","at":1,"seq":1.5}'],
    ["of a type that nobody knows", '{"type":"teleported","at":1,"seq":1}'],
    ["of a type that every object has", '{"type":"constructor","at":1,"seq":1}'],
    ["two lines in one", `${whole}${whole.slice(0, 20)}`],
  ])("%s", (_name, line) => {
    expect(() => decodeRecords(line, noBlobs, "journal of ses_x at 12")).toThrowError(CorruptRecordError);
    expect(() => decodeRecords(line, noBlobs, "journal of ses_x at 12")).toThrowError(
      /journal of ses_x at 12/,
    );
  });

  test("a line that is cut off anywhere is refused", () => {
    for (let length = 0; length < whole.length; length++) {
      expect(() => {
        const [record] = decodeRecords(whole.slice(0, length), noBlobs, "here");
        decodeJson(record?.payload); // The last brace may be taken for the record's: then the payload is no JSON.
      }, `cut to ${length}`).toThrowError();
    }
    expect(decodeRecords(whole, noBlobs, "here")).toHaveLength(1);
  });

  test("one damaged line makes the body unreadable, wherever it is", () => {
    expect(() => decodeRecords(`${whole}\n{broken\n${whole}`, noBlobs, "here")).toThrowError(
      CorruptRecordError,
    );
  });

  test("a blob that is gone is the storage's error, not an empty payload", () => {
    const line = '{"type":"complete","id":0,"seq":1,"blob":"abc"}';
    expect(() => decodeRecords(line, noBlobs, "here")).toThrowError(/no blob abc/);
  });
});

const noBlobs: BlobSource = {
  get(address) {
    throw new CorruptRecordError("blobs", `no blob ${address}`);
  },
};

function encoded(records: readonly JournalRecord[]): {
  body: string;
  source: BlobSource;
  blobs: Map<string, string>;
} {
  const blobs = new Map<string, string>();
  const body = encodeRecords(records, {
    put(text) {
      const address = `blob${blobs.size}`;
      blobs.set(address, text);
      return address;
    },
  });
  return { body, blobs, source: { get: (address) => blobs.get(address)! } };
}

/** Lone surrogates in headers are decoded too; only properties that are `undefined` are not written. */
function withoutUndefined(record: JournalRecord): JournalRecord {
  const { payload: text, ...rest } = record;
  return text === undefined ? rest : record;
}
