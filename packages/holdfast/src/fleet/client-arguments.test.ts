// Arguments of the client: bad ones are refused before anything is sent, and answered questions are not asked
// again.

import { inspect } from "node:util";
import type { HoldfastError, ImportSession } from "@holdfast/core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createClient, type HoldfastClient } from "@holdfast/client";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet;
let client: HoldfastClient;
beforeAll(async () => {
  fleet = await openFleet();
  client = createClient({ url: fleet.url, token: await fleet.token("user", "ada"), retryMs: 0 });
});
afterAll(async () => {
  client.close();
  await fleet.close();
});

describe("questions", () => {
  test("an answer that names none of several questions is refused, and one that is left alone gets it", async () => {
    await fleet.storage.commit([asking("ses_two", 0, 1)], Date.now());
    const session = client.sessions.get("ses_two");
    const names = async () => (await session.status()).questions.map(({ name }) => name);
    expect(await names()).toEqual(["answer:0", "answer:1"]);
    const error = await refusalOf(() => session.answer("which?"));
    expect(error).toMatchObject({
      code: "usage",
      at: "question",
      fix: "holdfast approve ses_two 0 or holdfast approve ses_two 1",
    });
    expect(await fleet.storage.reader.pendingSignals("ses_two")).toEqual([]);
    await session.answer("first", { question: "answer:0" });
    expect(await names()).toEqual(["answer:1"]);
    for await (const event of session.events()) {
      expect(event).toMatchObject({ status: { questions: [{ name: "answer:1" }] } });
      break;
    }
    await session.answer("second");
    expect(await names()).toEqual([]);
    const stored = await fleet.storage.reader.pendingSignals("ses_two");
    expect(stored.map(({ name, payload }) => [name, payload])).toEqual([
      ["answer:0", '"first"'],
      ["answer:1", '"second"'],
    ]);
  });

  test.each(["x", "answer:x", "1e0", "7", "answer:", " 1"])('"%s" is none of them', async (question) => {
    await fleet.storage.commit([asking("ses_one", 1)], Date.now());
    const error = await refusalOf(() => client.sessions.get("ses_one").answer(1, { question }));
    expect(error).toMatchObject({ code: "question_not_found", at: "question" });
    expect(error.message).toBe(`session ses_one has no open question ${JSON.stringify(question)}; open: 1`);
  });
});

describe("a wrong argument is refused before anything is sent", () => {
  const session = () => client.sessions.get("ses_1");
  const start = (options: object | null) => () => client.sessions.start("greeter", {}, options as object);
  const options: Readonly<Record<string, readonly [where: string, call: () => unknown][]>> = {
    createClient: [
      ["options", () => createClient(undefined as never)],
      ["token", () => createClient({ url: fleet.url } as never)],
      ["token", () => createClient({ url: fleet.url, token: "a\nb" })],
      ["retryMs", () => createClient({ url: fleet.url, token: "t", retryMs: NaN })],
      ["retry", () => createClient({ url: fleet.url, token: "t", retry: 3 } as never)],
    ],
    "sessions.start": [
      ["agent", () => client.sessions.start(undefined as never)],
      ["agent", () => client.sessions.start("")],
      ["agent", () => client.sessions.start({} as never)],
      ["options", start(null)],
      ["options", start([1])],
      ["demand", start({ demand: {} })],
      ["sessionId", start({ sessionId: 5 })],
      ["demands", start({ demands: { gpu: 1 } })],
      ["priority", start({ priority: 1.5 })],
      ["budget", start({ budget: 5 })],
      ["timeoutMs", start({ timeoutMs: NaN })],
      ["timeoutMs", start({ timeoutMs: "10s" })],
      ["persistence", start({ persistence: "ephemeral" })],
      ["callback", start({ callback: {} })],
    ],
    "sessions.get": [["sessionId", () => client.sessions.get(undefined as never)]],
    result: [
      ["timeoutMs", () => session().result({ timeoutMs: NaN })],
      ["timeoutMs", () => session().result({ timeoutMs: -1 })],
      ["signal", () => session().result({ signal: 5 as never })],
      ["timeout", () => session().result({ timeout: 5 } as never)],
      ["options", () => session().result(null as never)],
    ],
    signal: [
      ["name", () => session().signal(5 as never)],
      ["dedupKey", () => session().signal("a", 1, { dedupKey: "" })],
      ["options", () => session().signal("a", 1, "key" as never)],
    ],
    answer: [
      ["question", () => session().answer(1, { question: 5 as never })],
      ["q", () => session().answer(1, { q: 1 } as never)],
    ],
    cancel: [
      ["graceMs", () => session().cancel({ graceMs: Infinity })],
      ["hard", () => session().cancel({ hard: "yes" as never })],
      ["reason", () => session().cancel({ reason: 5 as never })],
    ],
    setTitle: [["title", () => session().setTitle(7 as never)]],
    events: [
      ["afterSeq", () => session().events({ afterSeq: "x" as never })],
      ["signal", () => session().events({ signal: {} as never })],
    ],
  };
  test.each(Object.keys(options))("%s", async (call) => {
    for (const [where, ask] of options[call]!) {
      const error = await refusalOf(ask);
      expect(error).toMatchObject({ name: "UsageError", code: "usage", at: `${call}: ${where}` });
      for (const part of [error.got, error.expected, error.fix]) expect(part).toMatch(/./);
    }
  });

  test("every method refuses an option that there is not", async () => {
    const none = { none: 1 } as never;
    const handle = session() as unknown as Readonly<Record<string, (...given: unknown[]) => unknown>>;
    const methods = Object.keys(handle).filter((name) => !["sessionId", "status", "setTitle"].includes(name));
    expect(methods.length).toBeGreaterThan(4);
    for (const name of methods) {
      const error = await refusalOf(() => handle[name]!(...(BEFORE_OPTIONS[name] ?? []), none));
      expect(error.at).toBe(`${name}: none`);
    }
  });

  test("a value that the contract does not take is pointed at by the coordinator", async () => {
    const error = await refusalOf(start({ sessionId: "a b" }));
    expect(error).toMatchObject({ code: "validation", at: "/sessionId" });
    expect(error.fix).toContain("changed nothing");
    await expect(start({ budget: { maxTokens: -1 } })()).rejects.toMatchObject({ code: "usage" });
  });
});

test("unknown fields of an error are absent when it is shown", async () => {
  const error = await refusalOf(() => client.sessions.get("ses_none").status());
  expect(inspect(error)).not.toContain("undefined");
});

/** The arguments before the options of a method. */
const BEFORE_OPTIONS: Readonly<Record<string, readonly unknown[]>> = { signal: ["a", 1], answer: [1] };

async function refusalOf(call: () => unknown): Promise<HoldfastError> {
  try {
    await call();
  } catch (thrown) {
    return thrown as HoldfastError;
  }
  throw new Error("it was not refused");
}

/** A session of ada's that no runner has, and that asks these questions. */
function asking(sessionId: string, ...ids: number[]): ImportSession {
  return {
    type: "import_session",
    sessionId,
    records: [],
    entries: [],
    session: {
      sessionId,
      agent: { name: "asks", version: "1" },
      input: undefined,
      status: "input_required",
      waits: ids.map((id) => ({ type: "input", id, name: `answer:${id}`, prompt: "Which?" })),
      nextSeq: 0,
      entryCount: 0,
      turn: 0,
      inbox: 0,
      seed: 1,
      flags: 0,
      format: 1,
      depth: 0,
      children: 0,
      placement: { owner: "ada" },
      payers: [],
      createdAt: 1,
      updatedAt: 1,
    },
  };
}
