// The output of `show` for a session that a process may or may not be running.

import type { Session } from "@holdfast/core";
import { expect, test } from "vitest";
import type { Look, Paint } from "../frame/command.ts";
import { pauseAdvice } from "./pause-advice.ts";
import { pictureText } from "./picture-text.ts";
import type { Picture } from "./session-picture.ts";

const T = 1_700_000_000_000;
const paint = new Proxy({}, { get: () => String }) as Paint;
const symbols = new Proxy({}, { get: () => "*" }) as Look["symbols"];
const io = { call: (line: string) => `holdfast ${line}` };

const SESSION: Session = {
  sessionId: "s",
  agent: { name: "a", version: "1" },
  input: undefined,
  status: "working",
  waits: [],
  nextSeq: 3,
  entryCount: 0,
  turn: 0,
  inbox: 0,
  seed: 1,
  flags: 0,
  format: 1,
  depth: 0,
  children: 0,
  payers: [],
  createdAt: T,
  updatedAt: T,
};

const shown = (session: Partial<Session>, picture: Partial<Picture> = {}): string =>
  pictureText(
    {
      session: { ...SESSION, ...session },
      waits: [],
      questions: new Map(),
      answers: [],
      resume: "holdfast resume s",
      elsewhere: undefined,
      starts: [],
      paused: undefined,
      persistedBy: undefined,
      children: [],
      callbacks: [],
      pausedBelow: [],
      tasks: [],
      entries: [],
      cost: undefined,
      pending: [],
      isElsewhere: false,
      run: undefined,
      ownerPid: undefined,
      ...picture,
    },
    { paint, symbols, columns: Infinity },
    T,
  );

test("effects of which nobody knows whether they happened come first, and other tasks after", () => {
  const task = (id: number, kind: string, name: string): Picture["tasks"][number] => ({
    id,
    taskId: `s-${id}`,
    kind,
    effect: "once",
    status: "failed",
    attempts: 1,
    askedAt: T,
    durationMs: 5,
    error: { name, message: `${kind} is lost`, code: "task_failed" },
    input: undefined,
    output: undefined,
  });
  const tasks = [task(0, "look", "AttemptLostError"), task(1, "pay", "UncertainEffectError")];
  const text = shown({ status: "completed" }, { tasks });
  const [uncertain, rest] = [text.indexOf("Uncertain effects"), text.indexOf("Tasks")];
  expect(text.slice(uncertain, rest)).toMatch(/#1[^]*pay[^]*pay is lost[^]*Look whether each has happened/);
  expect(text.slice(rest)).toContain("look is lost");
  expect(text.slice(rest)).not.toContain("pay is lost");
});

test("where a process has the database, resume is advised for the case that it does not run it", () => {
  expect(shown({})).toContain("\nContinue with\n  holdfast resume s");
  expect(shown({}, { ownerPid: 7 })).toContain(
    "\nIf process 7 does not run it, continue with\n  holdfast resume s",
  );
});

test("an ephemeral session whose process is gone waits for nobody", () => {
  const asking = {
    persistence: "ephemeral",
    status: "input_required",
    waits: [{ type: "input", id: 1, name: "answer:1", prompt: "Go on?" }],
  } as const;
  const waits = [
    { id: 1, what: "an answer", until: "", commands: ["holdfast approve s"], hasArrived: false },
  ];
  expect(shown(asking, { waits })).toContain("lost with its process");
  expect(shown(asking, { waits })).not.toContain("approve");
  expect(shown(asking, { waits, ownerPid: 7 })).toContain("approve");
});

test("signals of children are not counted among the unread signals", () => {
  expect(shown({}, { pending: ["child:1", "child-end:8", "go"] })).toContain("\n1 signal not taken yet: go");
  expect(shown({}, { pending: ["child:1"] })).not.toContain("not taken");
});

test("a session of another version of its agent may be gone on with by this one", () => {
  const paused = (code: string) =>
    pauseAdvice(
      {
        ...SESSION,
        status: "paused",
        pauseReason: "no_matching_runner",
        error: { name: "E", message: "m", code },
      },
      io,
      false,
    )?.commands;
  expect(paused("agent_version")).toEqual([
    "holdfast resume s --agent FILE",
    "holdfast resume s --accept-drift",
  ]);
  expect(paused("agent_not_found")).toEqual(["holdfast resume s --agent FILE"]);
});
