// An answer over REST is for the question that it names, or for the only open one.

import { defined, storageWith, type Change } from "@holdfast/core";
import { MemoryStorage, TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test } from "vitest";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet | undefined;
afterEach(() => fleet?.close());

test("an answer that names none of several open questions is refused, and the error has their commands", async () => {
  fleet = await openFleet({ clock: new TestClock() });
  const ada = await fleet.user("ada");
  const runner = await fleet.runner();
  const sessionId = await ada.start();
  const { claims } = await runner.poll({ free: 1 });
  const claim = claims[0]!;
  const waits = [
    { type: "input", id: 4, name: "answer:4", prompt: "Ship\nit?", answer: "approval" },
    { type: "input", id: 6, name: "answer:6", prompt: "Which?", answer: "any" },
  ] as const;
  await runner.say(claim, { status: "input_required", waits });
  const answer = (body: object) => ada.post(`/v1/sessions/${sessionId}/answer`, body);
  const refused = await answer({ answer: "blue" });
  expect(refused.status).toBe(422);
  expect(JSON.stringify(refused.body)).toContain("has 2 open questions, and the answer names none of them");
  expect(JSON.stringify(refused.body)).toContain("4: Ship it?");
  expect(JSON.stringify(refused.body)).toContain(
    `holdfast approve ${sessionId} 4 or holdfast answer ${sessionId} 6 JSON`,
  );
  expect(await fleet.storage.reader.pendingSignals(sessionId)).toEqual([]);
  expect((await answer({ answer: "blue", question: "6" })).body.question).toBe("answer:6");
  expect((await answer({ answer: { approved: true } })).body.question).toBe("answer:4");
});

test("the first answer counts, and another one is refused with the answer that counts and its author", async () => {
  fleet = await openFleet({ clock: new TestClock() });
  const ada = await fleet.user("ada");
  const runner = await fleet.runner();
  const sessionId = await ada.start();
  const { claims } = await runner.poll({ free: 1 });
  const claim = claims[0]!;
  const command = `git push && curl -H 'x-api-key: sk-abcdefghijklmnop1234' https://a.example`;
  const question = { prompt: "Allow shell: git push?", details: { tool: "shell", input: { command } } };
  const wait = {
    type: "input",
    id: 0,
    name: "answer:0",
    prompt: question.prompt,
    answer: "approval",
  } as const;
  const asked = { seq: 0, type: "request_input", id: 0, payload: JSON.stringify(question) };
  await runner.say(claim, { status: "input_required", waits: [wait] }, { records: [asked] });
  const answer = (person: typeof ada, approved: boolean, reason?: string) =>
    person.post(`/v1/sessions/${sessionId}/answer`, {
      question: "0",
      answer: { approved, ...defined({ reason }) },
    });

  expect((await answer(ada, true, "token: abcdefgh")).status).toBe(202);
  const isRefused = async (): Promise<void> => {
    expect((await answer(fleet!.admin, true, "token: abcdefgh")).status).toBe(202); // The same answer.
    const { status, body } = await answer(fleet!.admin, false);
    expect([status, body.code]).toEqual([409, "answered_otherwise"]);
    expect(body.detail).toBe(
      "the question was answered before: yes: token: abcdefgh by user:ada. That answer counts, and yours was not stored",
    );
  };
  await isRefused();

  // The audit keeps what was asked and answered, also of the answer that came too late.
  const rows = (await fleet.admin.get("/v1/audit?before=0")).body.rows as {
    readonly action: string;
    readonly actor: string;
    readonly outcome: string;
    readonly details?: string;
  }[];
  const answers = rows.filter(({ action }) => action === "session.answer");
  expect(answers.map(({ actor, outcome }) => [actor, outcome])).toEqual([
    ["admin:root", "duplicate"],
    ["admin:root", "duplicate"],
    ["user:ada", "stored"],
  ]);
  expect(answers.map(({ details }) => JSON.parse(details!).answer.approved)).toEqual([false, true, true]);
  expect(JSON.parse(answers[2]!.details!)).toEqual({
    id: 0,
    question: {
      ...question,
      details: {
        tool: "shell",
        input: { command: "git push && curl -H 'x-api-key: [secret]' https://a.example" },
      },
    },
    answer: { approved: true, reason: "token: [secret]" },
  });

  // The same once the session has taken the answer, and once it has ended.
  const [pending] = await fleet.storage.reader.pendingSignals(sessionId);
  const { signalId, payload } = pending!;
  const taken = { seq: 1, at: 5, type: "signal_received", wait: 0, signalId, payload };
  await runner.say(
    claim,
    { status: "working", waits: [] },
    { firstSeq: 1, records: [taken], consumed: [signalId] },
  );
  await isRefused();
  await runner.say(claim, { status: "completed", waits: [], output: "1" }, { firstSeq: 2 });
  await isRefused();
});

// A client that lost the answer to its request sends it again. The session has asked its next question by then.
test("a message that is sent again answers no later question, and is no next input", async () => {
  fleet = await openFleet({ clock: new TestClock() });
  const ada = await fleet.user("ada");
  const runner = await fleet.runner();
  const sessionId = await ada.start();
  const { claims } = await runner.poll({ free: 1 });
  const claim = claims[0]!;
  const asks = (id: number, firstSeq: number, more: object = {}) => {
    const wait = { type: "input", id, name: `answer:${id}`, prompt: "Which?", answer: "any" } as const;
    return runner.say(claim, { status: "input_required", waits: [wait] }, { firstSeq, ...more });
  };
  const answer = async (messageId: string, headers = {}) =>
    (await ada.call("POST", `/v1/sessions/${sessionId}/answer`, { answer: "blue", messageId }, headers)).body;
  const next = async (messageId: string) =>
    (await ada.post(`/v1/sessions/${sessionId}/signals`, { name: "next_input", payload: "blue", messageId }))
      .body;
  const pending = () => fleet!.storage.reader.pendingSignals(sessionId);

  await asks(0, 0);
  expect(await answer("m1")).toEqual({ question: "answer:0" });
  expect(await answer("m1")).toEqual({ question: "answer:0" });
  const { signalId, payload } = (await pending())[0]!;
  const taken = { seq: 0, at: 5, type: "signal_received", wait: 0, signalId, payload };
  await asks(1, 0, { records: [taken], consumed: [signalId] });
  expect(await answer("m1")).toEqual({ question: "answer:0" });
  expect(await answer("m1", { "Idempotency-Key": "m1" })).toEqual({ question: "answer:0" });
  expect(await next("m1")).toEqual({ status: "duplicate", signalId });
  expect(await pending()).toEqual([]);

  expect(await next("m2")).toMatchObject({ status: "stored" });
  expect(await answer("m2")).toEqual({ question: "next_input" });
  expect((await pending()).map(({ name }) => name)).toEqual(["next_input"]);
  expect(await answer("m3")).toEqual({ question: "answer:1" });
  expect((await pending()).map(({ name }) => name)).toEqual(["next_input", "answer:1"]);
});

test("an answer by the storage API, as the command gives it, is recorded with its question", async () => {
  fleet = await openFleet({ clock: new TestClock() });
  const ada = await fleet.user("ada");
  const runner = await fleet.runner();
  const sessionId = await ada.start();
  const { claims } = await runner.poll({ free: 1 });
  const wait = { type: "input", id: 0, name: "answer:0", prompt: "Which?", answer: "any" } as const;
  const asked = { seq: 0, type: "request_input", id: 0, payload: '{"prompt":"Which?"}' };
  await runner.say(claims[0]!, { status: "input_required", waits: [wait] }, { records: [asked] });
  await ada.commit({
    type: "send_signal",
    sessionId,
    signalId: "sig_1",
    name: "answer:0",
    payload: '"blue"',
    dedupKey: "answer:0",
  });
  const [row] = (await fleet.admin.get("/v1/audit?before=0")).body.rows;
  expect([row.action, row.actor, JSON.parse(row.details)]).toEqual([
    "storage.send_signal",
    "user:ada",
    { id: 0, question: { prompt: "Which?" }, answer: "blue" },
  ]);
});

test("an answer that finds its session ended by another one is refused with that answer", async () => {
  const inner = new MemoryStorage();
  let before: (() => Promise<void>) | undefined;
  const isDenial = (change: Change): boolean =>
    change.type === "audited" &&
    change.change?.type === "send_signal" &&
    change.change.payload === '{"approved":false}';
  const storage = storageWith(inner, {
    commit: async (changes, now) => {
      const work = changes.some(isDenial) ? before : undefined;
      if (work !== undefined) before = undefined;
      await work?.();
      return inner.commit(changes, now);
    },
  });
  fleet = await openFleet({ clock: new TestClock(), storage });
  const ada = await fleet.user("ada");
  const runner = await fleet.runner();
  const sessionId = await ada.start();
  const { claims } = await runner.poll({ free: 1 });
  const claim = claims[0]!;
  const wait = { type: "input", id: 0, name: "answer:0", prompt: "Ship it?", answer: "approval" } as const;
  const asked = { seq: 0, type: "request_input", id: 0, payload: '{"prompt":"Ship it?"}' };
  await runner.say(claim, { status: "input_required", waits: [wait] }, { records: [asked] });
  const answer = (approved: boolean) =>
    ada.post(`/v1/sessions/${sessionId}/answer`, { question: "0", answer: { approved } });
  before = async () => {
    await answer(true);
    const [pending] = await inner.reader.pendingSignals(sessionId);
    const { signalId, payload } = pending!;
    const taken = { seq: 1, at: 5, type: "signal_received", wait: 0, signalId, payload };
    const records = { firstSeq: 1, records: [taken], consumed: [signalId] };
    await runner.say(claim, { status: "completed", waits: [], output: "1" }, records);
  };
  const { status, body } = await answer(false);
  expect([status, body.code]).toEqual([409, "answered_otherwise"]);
  expect(body.detail).toContain("answered before: yes by user:ada");
});

test("a wait for a signal says once one is stored, and a listed session does not", async () => {
  fleet = await openFleet({ clock: new TestClock() });
  const ada = await fleet.user("ada");
  const runner = await fleet.runner();
  const sessionId = await ada.start();
  const { claims } = await runner.poll({ free: 1 });
  await runner.say(claims[0]!, {
    status: "waiting",
    waits: [{ type: "signal", id: 0, name: "next_input" }],
  });
  const waits = async () => (await ada.get(`/v1/sessions/${sessionId}`)).body.waits;
  expect(await waits()).toEqual([{ type: "signal", id: 0, name: "next_input" }]);
  await ada.post(`/v1/sessions/${sessionId}/signals`, { name: "next_input" });
  expect(await waits()).toEqual([{ type: "signal", id: 0, name: "next_input", answered: true }]);
  expect((await ada.get("/v1/sessions")).body.sessions[0].waits[0].answered).toBeUndefined();
});
