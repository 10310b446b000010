// Tracers: a tracer drops lines rather than delay a session, and reports that.

import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentTracer, TraceEvent } from "@holdfast/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { recordingTracer } from "@holdfast/testkit/test-runtime";
import { compositeTracer } from "./composite-tracer.ts";
import { fileTracer } from "./file-tracer.ts";
import { stdoutTracer } from "./stdout-tracer.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "holdfast-trace-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const base = { sessionId: "ses_1", at: 1_700_000_000_000 };
const committed = (nextSeq: number): TraceEvent => ({ ...base, type: "committed", records: 1, nextSeq });
const started: TraceEvent = {
  ...base,
  type: "task_started",
  taskId: "ses_1-0",
  kind: "shell",
  attempt: 1,
  input: '{"key":"hunter2"}',
};
const failed: TraceEvent = {
  ...base,
  type: "task_ended",
  taskId: "ses_1-0",
  kind: "shell",
  attempt: 2,
  outcome: "failed",
  durationMs: 12.4,
  error: { name: "Error", message: "no hunter2\n\u001b[31mred" },
};
const lines = (path: string) =>
  readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe("a file of traces", () => {
  test("a file of traces has one event per line, in order, and no other user may read it", async () => {
    const path = join(folder, "t.ndjson");
    const tracer = fileTracer({ path });
    for (let i = 0; i < 100; i++) tracer.trace(committed(i));
    await tracer.flush?.();
    tracer.trace(committed(100));
    await tracer.flush?.();
    expect(lines(path).map(({ nextSeq }) => nextSeq)).toEqual(Array.from({ length: 101 }, (_, i) => i));
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("a file of traces that others could read is closed to them", async () => {
    const path = join(folder, "t.ndjson");
    writeFileSync(path, "");
    chmodSync(path, 0o644);
    const tracer = fileTracer({ path });
    tracer.trace(committed(1));
    await tracer.flush?.();
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("a file of traces has no inputs and outputs of users, unless asked for", async () => {
    const path = join(folder, "t.ndjson");
    const tracer = fileTracer({ path });
    tracer.trace(started);
    await tracer.flush?.();
    expect(readFileSync(path, "utf8")).not.toContain("hunter2");
    const full = fileTracer({
      path,
      payloads: true,
      redact: (text) => text.replaceAll("hunter2", "[hidden]"),
    });
    full.trace(started);
    full.trace(failed);
    await full.flush?.();
    expect(readFileSync(path, "utf8")).not.toContain("hunter2");
    expect(lines(path)).toMatchObject([
      {},
      { input: { key: "[hidden]" } },
      { error: { message: expect.stringContaining("no [hidden]") } },
    ]);
  });

  test("a file of traces is rotated at its limit, and a limited number of old files is kept", async () => {
    const path = join(folder, "t.ndjson");
    const tracer = fileTracer({ path, bytesMax: 100, filesMax: 2 });
    for (let i = 0; i < 8; i++) {
      tracer.trace(committed(i));
      await tracer.flush?.();
    }
    expect([path, `${path}.1`, `${path}.2`].map((name) => lines(name).map(({ nextSeq }) => nextSeq))).toEqual(
      [
        [6, 7],
        [4, 5],
        [2, 3],
      ],
    );
    expect(statSync(`${path}.1`).mode & 0o777).toBe(0o600);
  });

  test("a file tracer that cannot write drops lines, reports that once, and writes their number later", async () => {
    const path = join(folder, "later", "t.ndjson");
    const problems: string[] = [];
    const tracer = fileTracer({ path, onProblem: (message) => problems.push(message) });
    for (let i = 0; i < 3; i++) {
      tracer.trace(committed(i));
      await tracer.flush?.();
    }
    expect(problems).toEqual([expect.stringContaining("are dropped: ENOENT")]);
    mkdirSync(join(folder, "later"));
    tracer.trace(committed(3));
    await tracer.flush?.();
    expect(lines(path)).toMatchObject([{ type: "dropped", lines: 3 }, { nextSeq: 3 }]);
  });

  test("a file tracer on a full disk loses lines and nothing else", async () => {
    const problems: string[] = [];
    const tracer = fileTracer({ path: "/dev/full", onProblem: (message) => problems.push(message) });
    tracer.trace(committed(1));
    tracer.trace(committed(2));
    await tracer.flush?.();
    expect(problems).toEqual([expect.stringContaining("ENOSPC")]);
  });

  test("a file tracer buffers up to its limit and drops later lines", async () => {
    const path = join(folder, "t.ndjson");
    const tracer = fileTracer({ path, bufferChars: 200 });
    for (let i = 0; i < 10; i++) tracer.trace(committed(i));
    await tracer.flush?.();
    tracer.trace(committed(10));
    await tracer.flush?.();
    expect(lines(path)).toMatchObject([
      { type: "dropped", lines: 8 },
      { nextSeq: 0 },
      { nextSeq: 1 },
      { nextSeq: 10 },
    ]);
  });

  test("a file tracer does not follow a link", async () => {
    const target = join(folder, "other");
    writeFileSync(target, "mine");
    symlinkSync(target, join(folder, "t.ndjson"));
    const problems: string[] = [];
    const tracer = fileTracer({
      path: join(folder, "t.ndjson"),
      onProblem: (message) => problems.push(message),
    });
    tracer.trace(committed(1));
    await tracer.flush?.();
    expect(readFileSync(target, "utf8")).toBe("mine");
    expect(problems).toHaveLength(1);
  });
});

test("stdoutTracer writes one line per event, without tokens and control characters", () => {
  const written: string[] = [];
  const tracer = stdoutTracer({ write: (line) => written.push(line) });
  const delta = {
    ...base,
    type: "task_delta",
    taskId: "ses_1-0",
    kind: "model",
    attempt: 1,
    offset: 0,
  } as const;
  tracer.trace(started);
  tracer.trace({ ...delta, delta: { type: "token", text: "x" } });
  tracer.trace({
    ...delta,
    delta: { type: "usage", usage: { model: "m", inputTokens: 1, outputTokens: 2, costMicroUsd: 30 } },
  });
  tracer.trace(failed);
  expect(written).toEqual([
    "22:13:20.000 ses_1 shell started\n",
    "22:13:20.000 ses_1 model used m: 1 tokens in, 2 out, 0.000030 USD\n",
    "22:13:20.000 ses_1 shell failed after 12 ms (attempt 2): Error: no hunter2 [31mred\n",
  ]);
});

test("a failing tracer does not affect the other tracers of a composite", async () => {
  const fail = (): never => {
    throw new Error("tracer");
  };
  const bad: AgentTracer = { trace: fail, traceparent: fail, flush: fail };
  const good = recordingTracer();
  let flushed = 0;
  const tracer = compositeTracer([
    bad,
    { ...good, traceparent: () => undefined, flush: async () => void flushed++ },
    {
      trace: () => {},
      traceparent: (sessionId) => `context of ${sessionId}`,
      flush: () => Promise.reject(new Error("disk")),
    },
  ]);
  tracer.trace(started);
  expect(good.events).toEqual([started]);
  expect(tracer.traceparent?.("ses_1")).toBe("context of ses_1");
  await tracer.flush?.();
  expect(flushed).toBe(1);
});
