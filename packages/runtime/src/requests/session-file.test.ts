// A session as a file: the imported session equals the exported one to the byte, and a damaged file is
// refused.

import { createHash } from "node:crypto";
import { BEHAVIOUR_FLAGS, UnavailableError, type AgentStorage } from "@holdfast/core";
import {
  countingRandom,
  gate,
  journalOf,
  storageWith,
  TestClock,
  until,
} from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, local, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(
  agents: readonly Agent[],
  storage: AgentStorage = new MemoryStorage(),
  clock = new TestClock(),
) {
  const runtime = createRuntime({
    storage,
    agents,
    clock,
    random: countingRandom(),
    adopt: false,
    development: false,
  });
  opened.push(runtime);
  return { runtime, storage };
}

async function textOf(lines: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const line of lines) text += line;
  return text;
}

/** In pieces that end in the middle of lines and of characters. */
async function* bytes(text: string, size = 7): AsyncGenerator<Uint8Array> {
  const all = Buffer.from(text);
  for (let from = 0; from < all.length; from += size) yield all.subarray(from, from + size);
}

/**
 * A session after two turns that waits for a signal and has an unread one, with values that are hard to
 * serialise.
 */
const LARGE = "ä".repeat(70_000);
const NASTY = '\u0000 \ud800 ","payload":{"blob":"x"} \u2028 \n';
const agent = defineAgent<string, string[], string[]>({
  name: "traveller",
  initial: () => [],
  turn: async (ctx, seen) => {
    ctx.appendEntry({ role: "user", content: seen.length === 0 ? LARGE : NASTY });
    if (seen.length < 2) return { state: [...seen, await ctx.run("look", () => LARGE.length + NASTY)] };
    const word = await ctx.waitForSignal<string>("word");
    return { done: [ctx.input, word, await ctx.waitForSignal<string>("later"), String(ctx.random())] };
  },
});

async function waiting() {
  const here = open([agent as Agent]);
  const handle = await here.runtime.start(agent, NASTY, { sessionId: "s", budget: { maxTokens: 5 } });
  await until(async () => (await handle.session()).waits.length === 1, "it waits");
  await handle.signal("later", NASTY);
  return { ...here, handle };
}

describe("a session", () => {
  test("an imported session equals the exported one, and resumes where its agent is known", async () => {
    const { runtime, storage, handle } = await waiting();
    const text = await textOf(runtime.export("s"));
    const there = open([agent as Agent]);
    const imported = await there.runtime.import(bytes(text));

    expect(imported.created).toBe(true);
    expect(await there.storage.reader.session("s")).toEqual({
      ...(await storage.reader.session("s")),
      updatedAt: expect.any(Number) as number,
    });
    expect(await journalOf(there.storage, "s")).toEqual(await journalOf(storage, "s"));
    expect(await there.storage.reader.entries("s", 0, 9)).toEqual(await storage.reader.entries("s", 0, 9));
    expect(await there.storage.reader.pendingSignals("s")).toEqual(await storage.reader.pendingSignals("s"));
    expect(await textOf(there.runtime.export("s"))).toBe(text);
    expect(there.runtime.live).toBe(0);

    const resumed = await there.runtime.resume("s");
    await there.runtime.signal("s", "word", "go");
    await handle.signal("word", "go");
    const output = await handle.result();
    expect(await resumed.result()).toEqual(output);
    expect(output.slice(0, 3)).toEqual([NASTY, "go", NASTY]);
  });

  test("a session that has ended is imported with its end", async () => {
    const done = defineAgent({ name: "done", run: async (ctx) => ctx.run("work", () => 7) });
    const here = open([done]);
    await (await here.runtime.start(done, undefined, { sessionId: "s" })).result();
    const there = open([]);
    const imported = await there.runtime.import(bytes(await textOf(here.runtime.export("s")), 1_000));
    expect(await imported.result()).toBe(7);
  });

  test("a session with a running task repeats the task after its import", async () => {
    const { opened: never } = gate();
    let ran = 0;
    const work = defineTask({
      name: "work",
      cost: () => ({ maxTokens: 2 }),
      run: async () => (++ran === 1 ? never.then(() => 0) : ran),
    });
    const busy = defineAgent({ name: "busy", tasks: [work], run: async (ctx) => ctx.scheduleTask(work, {}) });
    const here = open([busy]);
    await here.runtime.start(busy, undefined, { sessionId: "s", budget: { maxTokens: 5 } });
    await until(() => ran === 1, "it runs");
    const there = open([busy]);
    await there.runtime.import(bytes(await textOf(here.runtime.export("s"))));
    expect(await (await there.runtime.resume("s")).result()).toBe(2);
  });

  test("a session that is imported under another id is the same, with its entries and its seed", async () => {
    const { runtime, handle } = await waiting();
    const text = await textOf(runtime.export("s"));
    await expect(runtime.import(bytes(text), { sessionId: "a/b" })).rejects.toMatchObject({ code: "usage" });
    const copy = await runtime.import(bytes(text), { sessionId: "t" });
    await runtime.resume("t");
    for (const one of [handle, copy]) await one.signal("word", "go");
    expect(await copy.result()).toEqual(await handle.result());
    expect((await copy.session()).fork).toMatchObject({ origins: ["s"] });
  });

  test("an import whose answer was lost has succeeded", async () => {
    const { runtime } = await waiting();
    const text = await textOf(runtime.export("s"));
    const memory = new MemoryStorage();
    let isLost = true;
    const storage = storageWith(memory, {
      async commit(group, now) {
        const results = await memory.commit(group, now);
        if (!isLost) return results;
        isLost = false;
        throw new UnavailableError("storage_unavailable", "the answer was lost");
      },
    });
    const clock = new TestClock();
    const there = open([agent as Agent], storage, clock).runtime;
    const importing = there.import(bytes(text));
    importing.catch(() => {});
    await until(() => !isLost, "the answer was lost");
    await clock.advance(1_000);
    expect((await importing).created).toBe(true);
    expect((await there.import(bytes(text))).created).toBe(false);
  });

  test("the remaining share of a shared budget is the own budget of a child that is imported alone", async () => {
    const costing = defineTask({
      name: "costing",
      cost: () => ({ maxTokens: 30 }),
      run: async (_: number, task) => task.reportUsage({ model: "m", inputTokens: 30, outputTokens: 0 }),
    });
    const child = defineAgent({
      name: "child",
      tasks: [costing],
      run: async (ctx) => {
        await ctx.scheduleTask(costing, 1);
        return ctx.waitForSignal("word");
      },
    });
    const parent = defineAgent({
      name: "parent",
      agents: [child],
      run: (ctx) => ctx.waitForChild(ctx.spawnAgent(local(child), undefined, { budget: { maxTokens: 90 } })),
    });
    const here = open([parent]);
    await here.runtime.start(parent, undefined, { sessionId: "p", budget: { maxTokens: 100, maxSteps: 8 } });
    await until(async () => (await here.storage.reader.session("p-0"))?.status === "waiting", "it waits");
    await here.runtime.setBudget("p", { maxTokens: 50 });
    const text = await textOf(here.runtime.export("p-0"));
    const there = open([child]);
    const row = await (await there.runtime.import(bytes(text))).session();
    expect(row.payers).toEqual(["p-0"]);
    expect(row.account).toMatchObject({
      limits: { maxTokens: 50, maxSteps: 8 },
      spent: { tokens: 30, steps: 1 },
    });
    expect(row).toMatchObject({ detachedFrom: { sessionId: "p" } });
  });

  test("a session that runs during its export is exported as it was", async () => {
    const { runtime, storage, handle } = await waiting();
    const before = await handle.session();
    const lines: string[] = [];
    for await (const line of runtime.export("s")) {
      if (lines.push(line) === 1) {
        await handle.signal("word", "go");
        await handle.result();
      }
    }
    const there = open([]);
    await there.runtime.import(bytes(lines.join("")));
    expect(await there.storage.reader.session("s")).toMatchObject({
      status: "waiting",
      nextSeq: before.nextSeq,
    });
    expect((await storage.reader.session("s"))?.status).toBe("completed");
    // The session consumed this signal only after that read.
    expect(await there.storage.reader.pendingSignals("s")).toHaveLength(1);
  });

  test("a signal that is consumed between two reads is not exported twice", async () => {
    const { runtime, storage, handle } = await waiting();
    const slow = storageWith(storage, {
      reader: new Proxy(storage.reader, {
        get: (target, property) => {
          if (property !== "pendingSignals") return Reflect.get(target, property).bind(target) as unknown;
          return async (sessionId: string) => {
            const pending = await target.pendingSignals(sessionId);
            await handle.signal("word", "go");
            await handle.result();
            return pending;
          };
        },
      }),
    });
    const text = await textOf(open([], slow).runtime.export("s"));
    expect(text).not.toContain('{"type":"signal"');
    expect(runtime.live).toBe(0);
  });

  test("an unknown session cannot be exported", async () => {
    await expect(textOf(open([]).runtime.export("nobody"))).rejects.toMatchObject({
      code: "session_not_found",
    });
  });
});

describe("a file", () => {
  const sealed = (body: string): string =>
    `${body}{"sha256":"${createHash("sha256").update(body).digest("hex")}"}\n`;
  const bodyOf = (text: string): string => text.slice(0, text.lastIndexOf('{"sha256"'));

  async function refused(text: string): Promise<unknown> {
    const there = open([]);
    try {
      await there.runtime.import(bytes(text, 10_000), { name: "s.ndjson" });
    } catch (error) {
      expect(await there.storage.reader.sessions({ limit: 9 })).toEqual([]);
      return error;
    }
    throw new Error("it was taken");
  }

  test("a session file has lines of JSON, the last one with the checksum of all lines before it", async () => {
    const { runtime } = await waiting();
    const text = await textOf(runtime.export("s"));
    const lines = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines[0]).toMatchObject({ holdfast: "session", format: 1, session: { sessionId: "s" } });
    expect(lines.map(({ type }) => type).filter((type) => type === "entry")).toHaveLength(3);
    expect(lines.at(-2)).toEqual({
      type: "signal",
      signalId: expect.anything() as string,
      name: "later",
      payload: NASTY,
    });
    expect(sealed(bodyOf(text))).toBe(text);
  });

  test("a session file that is cut off or has any byte changed is refused", async () => {
    const small = defineAgent({ name: "small", run: async (ctx) => ctx.run("work", () => "x") });
    const here = open([small]);
    await (await here.runtime.start(small, undefined, { sessionId: "s" })).result();
    const text = await textOf(here.runtime.export("s"));
    for (let length = 0; length < text.length - 1; length += 3) {
      const error = await refused(text.slice(0, length));
      expect(error, `cut to ${length}`).toMatchObject({ code: "corrupt_record" });
    }
    for (let at = 0; at < text.length - 1; at += 5) {
      const other = text[at] === "0" ? "1" : "0";
      const error = await refused(text.slice(0, at) + other + text.slice(at + 1));
      expect(["corrupt_record", "version_unsupported"], `changed at ${at}`).toContain(
        (error as { code: string }).code,
      );
    }
  });

  test.each<[string, (body: string) => string, string, string]>([
    [
      "of a newer format",
      (body) => body.replace('"format":1', '"format":3'),
      "version_unsupported",
      "format 3",
    ],
    [
      "of a session with a newer journal format",
      (body) => body.replace(/(?<="flags":\d+,"format":)1/, "2").replace('"type":"started"', '"type":"flew"'),
      "version_unsupported",
      "newer Holdfast",
    ],
    [
      "of a session with a behaviour flag that is not known",
      (body) => body.replace(/"flags":\d+/, `"flags":${BEHAVIOUR_FLAGS + 1}`),
      "version_unsupported",
      "newer Holdfast",
    ],
    [
      "with a record too few",
      (body) => body.replace(/^\{"type":"started".*\n/m, ""),
      "corrupt_record",
      "records",
    ],
    [
      "with a record nobody knows",
      (body) => body.replace('"type":"started"', '"type":"flew"'),
      "corrupt_record",
      "line 2",
    ],
    ["without an entry", (body) => body.replace(/^\{"type":"entry".*\n/m, ""), "corrupt_record", "entries"],
    [
      "without a session",
      (body) => body.replace('"status":"', '"status":"un'),
      "corrupt_record",
      "not a session",
    ],
    [
      "of nothing",
      () => '{"holdfast":"session","format":1,"session":null}\n',
      "corrupt_record",
      "not a session",
    ],
    [
      "with a wait that is none",
      (body) => body.replace('"waits":[', '"waits":[null,'),
      "corrupt_record",
      "not a session",
    ],
    [
      "with a time that is none",
      (body) => body.replace(/"createdAt":/, '"deadlineAt":"soon","createdAt":'),
      "corrupt_record",
      "not a session",
    ],
    [
      "with an entry that is none",
      (body) => body.replace(/"type":"entry","id":/, '"type":"entry","id":"x","was":'),
      "corrupt_record",
      "not a session",
    ],
    ["of something else", () => '{"name":"package"}\n', "corrupt_record", "not a file of a session"],
  ])("%s is refused although its checksum fits", async (_name, spoil, code, says) => {
    const { runtime } = await waiting();
    const text = sealed(spoil(bodyOf(await textOf(runtime.export("s")))));
    const error = (await refused(text)) as { code: string; message: string };
    expect(error.code).toBe(code);
    expect(error.message).toContain(says);
  });

  test.each(["", "hello", "\n", "{}\n{}\n", "\u0000".repeat(50)])(
    "a file that is no session file is refused: %j",
    async (text) => {
      expect(await refused(text)).toMatchObject({
        code: "corrupt_record",
        message: expect.stringContaining("not a file of a session") as string,
      });
    },
  );
});
