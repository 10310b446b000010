import { expect, test } from "vitest";
import { canApprove, InboxReader } from "./open-items.ts";
import type { Session } from "./types.ts";

const asking = {
  sessionId: "s1",
  agent: "pusher",
  status: "input_required",
  waits: [{ type: "input", id: 4, prompt: "May I?", answer: "approval" }],
  nextSeq: 5,
  updatedAt: 1,
} as unknown as Session;

/** A server with these sessions and one question. The lists of these statuses have further pages. */
function server(sessions: readonly Session[], cut: readonly string[] = []) {
  const state = {
    sessions,
    question: { prompt: "May I?", details: { tool: "shell", input: "ls" } },
    isAnswered: false,
    reads: 0,
  };
  const answer = (path: string): unknown => {
    const url = new URL(path, "http://page");
    if (url.pathname.endsWith("/events")) {
      state.reads++;
      const payload = JSON.stringify(state.question);
      return { records: [{ seq: 4, type: "request_input", id: 4, payload }] };
    }
    const one = state.sessions.find(({ sessionId }) => url.pathname.endsWith(`/${sessionId}`));
    if (one !== undefined)
      return { ...one, waits: one.waits.map((wait) => ({ ...wait, answered: state.isAnswered })) };
    const status = url.searchParams.get("status")!;
    const found = state.sessions.filter((session) => session.status === status);
    return { sessions: found, ...(cut.includes(status) ? { nextCursor: "s0" } : {}) };
  };
  const reader = new InboxReader(<T>(_method: string, path: string) => Promise.resolve(answer(path) as T));
  const read = (isLocal = false) => reader.read(() => "", isLocal);
  return { state, read, reader };
}

test("the inbox names each status of which it has not read all sessions", async () => {
  expect((await server([asking]).read()).cut).toEqual([]);
  expect((await server([asking], ["failed"]).read()).cut).toEqual(["failed"]);
});

test("the page shows the characters of a call that nothing draws", async () => {
  const { state, read } = server([asking]);
  state.question = { prompt: "Allow shell: ls\u200B?", details: { tool: "shell", input: "ls\u200B\u202E" } };
  expect((await read()).items[0]).toMatchObject({
    what: "Allow shell: ls\\u{200b}?",
    action: "ls\\u{200b}\\u{202e}",
  });
});

test("a question is read once, and again when the database was replaced by a copy in which it asks for something else", async () => {
  const { state, read } = server([asking]);
  await read();
  expect((await read()).items[0]!.action).toBe("ls");
  expect(state.reads).toBe(1);
  state.question = { prompt: "May I?", details: { tool: "shell", input: "rm -rf /" } };
  state.sessions = [{ ...asking, updatedAt: 2 }];
  expect((await read()).items[0]!.action).toBe("rm -rf /");
});

test("a question whose answer waits for a process is answered, and its item has the command that continues it", async () => {
  const { state, read } = server([asking]);
  const [open] = (await read(true)).items;
  expect([open!.kind, canApprove(open!)]).toEqual(["approval", true]);
  state.isAnswered = true;
  state.sessions = [{ ...asking, updatedAt: 2 }]; // An answer changes the row.
  const [answered] = (await read(true)).items;
  expect([answered!.kind, canApprove(answered!), answered!.commands]).toEqual([
    "answered",
    false,
    ["holdfast resume s1"],
  ]);
  expect((await read(false)).items[0]!.commands).toEqual([]);
});

test("the inbox reads again for a session that waits for a person or did so, and for no other", async () => {
  const { state, read, reader } = server([asking]);
  expect(reader.concerns({ ...asking, sessionId: "s9", status: "working" })).toBe(true); // It was not read yet.
  await read();
  expect(reader.concerns({ ...asking, sessionId: "s9", status: "working" })).toBe(false);
  expect(reader.concerns({ ...asking, sessionId: "s9", status: "paused" })).toBe(true);
  expect(reader.concerns({ ...asking, status: "working" })).toBe(true);
  state.sessions = [];
  await read();
  expect(reader.concerns({ ...asking, status: "working" })).toBe(false);
});
