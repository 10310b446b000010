// The client of programs, over a coordinator and a runner in this process, and through what breaks between
// them.

import { createServer, connect, type AddressInfo, type Server, type Socket } from "node:net";
import { defineAgent } from "@holdfast/runtime";
import { SessionService } from "@holdfast/proto";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createClient, type HoldfastClient, type RemoteEvent } from "@holdfast/client";
import { openFleet, type Fleet } from "../testing/fleet.ts";

const greeter = defineAgent({
  name: "greeter",
  run: async (ctx, { name }: { name: string }) => ({ said: await ctx.run("say", () => `hello ${name}`) }),
});
const asks = defineAgent({
  name: "asks",
  run: async (ctx) => {
    const answer = await ctx.requestInput("Which?", { answer: "any" });
    const signal = await ctx.waitForSignal("go");
    return [answer, signal];
  },
});
const fails = defineAgent({
  name: "fails",
  run: async () => {
    throw new Error("broken on purpose");
  },
});

let fleet: Fleet;
let client: HoldfastClient;
let proxy: Proxy;
beforeEach(async () => {
  proxy = await openProxy();
  fleet = await openFleet({ config: { hosts: [new URL(proxy.url).host] } });
  proxy.target = new URL(fleet.url);
  await fleet.runner({ agents: [greeter, asks, fails] });
  client = createClient({ url: fleet.url, token: await fleet.token("user", "ada") });
});
afterEach(async () => {
  client.close();
  proxy.close();
  await fleet.close();
});

/** Until the session asks something. */
async function untilAsked(sessionId: string): Promise<void> {
  for await (const event of client.sessions.get(sessionId).events())
    if (event.type === "status" && event.status.questions.length > 0) return;
}

describe("a session", () => {
  test("a session is started by an agent or its name, and returns its output", async () => {
    const session = await client.sessions.start(greeter, { name: "Ada" });
    const output: { said: string } = await session.result();
    expect(output).toEqual({ said: "hello Ada" });
    const byName = await client.sessions.start("greeter", { name: "Bob" });
    expect(await byName.result()).toEqual({ said: "hello Bob" });
    expect(await byName.status()).toMatchObject({ status: "completed", agent: "greeter" });
  });

  test("a wait for a session ends once its caller aborts", async () => {
    const session = await client.sessions.start("asks");
    const [before, giveUp] = [new AbortController(), new AbortController()];
    before.abort(new Error("never mind"));
    await expect(session.result({ signal: before.signal })).rejects.toThrow("never mind");
    const result = session.result({ signal: giveUp.signal });
    await untilAsked(session.sessionId);
    giveUp.abort(new Error("too long"));
    await expect(result).rejects.toThrow("too long");
  });

  test("a stream of events ends once its reader stops reading", async () => {
    const session = await client.sessions.start("asks");
    // A user has 20 streams at once.
    for (let i = 0; i < 25; i++) await untilAsked(session.sessionId);
  });

  test("a session is answered and signalled once each, and numbers its events", async () => {
    const session = await client.sessions.start("asks");
    await untilAsked(session.sessionId);
    await session.answer({ which: "both" });
    expect(await session.signal("go", 1, { dedupKey: "k" })).toBe("stored");
    expect(await session.result()).toEqual([{ which: "both" }, 1]);
    const events: RemoteEvent[] = [];
    for await (const event of session.events()) events.push(event);
    const seqs = events.flatMap((event) => (event.type === "record" ? [event.seq] : []));
    expect(seqs).toEqual(seqs.map((_, i) => i));
    expect(events.at(-1)).toMatchObject({ type: "record", record: { type: "complete" } });
    const rest: RemoteEvent[] = [];
    for await (const event of session.events({ afterSeq: 2 })) rest.push(event);
    expect(rest.flatMap((event) => (event.type === "record" ? [event.seq] : []))[0]).toBe(3);
  });

  test("that fails, is cancelled or takes too long is an error that says so", async () => {
    await expect((await client.sessions.start("fails")).result()).rejects.toMatchObject({
      code: "session_failed",
      message: expect.stringContaining("broken on purpose") as string,
    });
    const waiting = await client.sessions.start("asks");
    await expect(waiting.result({ timeoutMs: 0 })).rejects.toMatchObject({ code: "request_timeout" });
    expect((await waiting.cancel({ hard: true })).status).toBe("cancelled");
    await expect(waiting.result()).rejects.toMatchObject({ code: "session_cancelled" });
    await expect(client.sessions.get("ses_none").status()).rejects.toMatchObject({
      code: "session_not_found",
    });
  });

  test("under one key is one session, and something else under it is a conflict", async () => {
    const options = { idempotencyKey: "order-1" };
    const first = await client.sessions.start(greeter, { name: "Ada" }, options);
    const again = await client.sessions.start(greeter, { name: "Ada" }, options);
    expect(again.sessionId).toBe(first.sessionId);
    await expect(client.sessions.start(greeter, { name: "Eve" }, options)).rejects.toMatchObject({
      code: "idempotency_conflict",
    });
  });
});

test("a result is waited for as long as was said, also while the coordinator is away (S1)", async () => {
  const away = createClient({ url: "http://127.0.0.1:1", token: "t" });
  try {
    const since = performance.now();
    await expect(away.sessions.get("s").result({ timeoutMs: 300 })).rejects.toMatchObject({
      code: "unavailable",
    });
    expect(performance.now() - since).toBeLessThan(2_000);
  } finally {
    away.close();
  }
});

describe("a connection that is lost", () => {
  test("before the answer arrives does nothing twice, and loses nothing", async () => {
    const through = createClient({ url: proxy.url, token: await fleet.token("user", "eve") });
    try {
      // Three times the request arrives, and its answer does not.
      proxy.cutAnswers = 3;
      const session = await through.sessions.start(greeter, { name: "Eve" });
      expect(await session.result()).toEqual({ said: "hello Eve" });
      expect(proxy.cut).toBe(3);
      expect(await fleet.storage.reader.sessions({ limit: 9, owner: "eve" })).toHaveLength(1);

      const asking = await through.sessions.start("asks");
      await untilOwnAsked(through, asking.sessionId);
      await asking.answer("yes");
      proxy.cutAnswers = 2;
      await asking.signal("go", "once");
      expect(await asking.result()).toEqual(["yes", "once"]);
      expect(proxy.cut).toBe(5);
    } finally {
      through.close();
    }
  });

  test("events go on behind the last one that was told", async () => {
    const through = createClient({ url: proxy.url, token: await fleet.token("user", "eve") });
    try {
      const session = await through.sessions.start("asks");
      const seqs: number[] = [];
      let isCut = false;
      for await (const event of session.events()) {
        if (event.type === "record") seqs.push(event.seq);
        if (event.type !== "status" || event.status.questions.length === 0 || isCut) continue;
        isCut = true;
        proxy.cutAll();
        await session.answer("yes");
        await session.signal("go", 1);
      }
      expect(seqs).toEqual(seqs.map((_, i) => i));
      expect(seqs.length).toBeGreaterThan(3);
    } finally {
      through.close();
    }
  });

  // The port of a coordinator that is down may be given to another one, which knows none of its tokens.
  test("another coordinator at its address refuses nothing for good, and results come from the right one", async () => {
    const through = createClient({ url: proxy.url, token: await fleet.token("user", "eve") });
    const other = await openFleet({ config: { hosts: [new URL(proxy.url).host] } });
    try {
      const session = await through.sessions.start("asks");
      await untilOwnAsked(through, session.sessionId);
      const result = session.result();
      proxy.target = new URL(other.url);
      proxy.cutAll();
      const impatient = createClient({ url: proxy.url, token: await fleet.token("user", "eve"), retryMs: 1 });
      await expect(impatient.sessions.start("greeter")).rejects.toMatchObject({ code: "unauthenticated" });
      impatient.close();
      await delay(500); // The waiting client meets the other coordinator.
      proxy.target = new URL(fleet.url);
      proxy.cutAll();
      await session.answer("yes");
      await session.signal("go", 1);
      expect(await result).toEqual(["yes", 1]);
    } finally {
      through.close();
      await other.close();
    }
  });

  test.each(["2", "1.1"] as const)(
    "another coordinator at its address is named by a connection over HTTP/%s, whether it refuses or answers",
    async (httpVersion) => {
      const token = await fleet.token("user", "eve");
      const connection = new CoordinatorConnection({ url: proxy.url, token, httpVersion });
      const other = await openFleet({ config: { hosts: [new URL(proxy.url).host] } });
      const service = connection.client(SessionService);
      const list = () => connection.ask(() => service.list({}));
      try {
        await list();
        proxy.target = new URL(other.url);
        for (const itsToken of [token, await other.token("user", "eve")]) {
          proxy.cutAll();
          connection.useToken(itsToken);
          await vi.waitFor(() =>
            expect(list()).rejects.toMatchObject({
              code: "storage_unavailable",
              message: `another coordinator answers at ${proxy.url}`,
              fix: expect.stringContaining("start the coordinator of that deployment at this address again"),
            }),
          );
        }
        proxy.target = new URL(fleet.url);
        proxy.cutAll();
        connection.useToken(token);
        await vi.waitFor(list);
      } finally {
        connection.close();
        await other.close();
      }
    },
  );

  test("that does not come back is told, with where it was", async () => {
    const nobody = createClient({ url: "http://127.0.0.1:9", token: "hf_usr_x", retryMs: 300 });
    await expect(nobody.sessions.start("greeter")).rejects.toMatchObject({
      code: "unavailable",
      at: "http://127.0.0.1:9",
    });
    nobody.close();
  });
});

describe("a caller that aborts", () => {
  const nobody = { url: "http://127.0.0.1:9", token: "hf_usr_x", retryMs: Infinity };

  test("a result rejects with the signal's reason, also where the coordinator is away", async () => {
    const away = createClient(nobody);
    const waiting = await client.sessions.start("asks");
    for (const session of [waiting, away.sessions.get(waiting.sessionId)]) {
      const enough = new AbortController();
      const result = session.result({ signal: enough.signal });
      const reason = new Error("enough");
      setTimeout(() => enough.abort(reason), 50);
      await expect(result).rejects.toBe(reason);
      await expect(session.result({ signal: enough.signal })).rejects.toBe(reason);
    }
    away.close();
  });

  test("events end with the signal, also where the coordinator is away", async () => {
    const away = createClient(nobody);
    const waiting = await client.sessions.start("asks");
    for (const session of [waiting, away.sessions.get(waiting.sessionId)]) {
      for await (const _ of session.events({ signal: AbortSignal.timeout(50) }));
      for await (const _ of session.events({ signal: AbortSignal.abort() }));
    }
    away.close();
  });

  test("by closing the client is told so, and nothing of it connects again", async () => {
    const waiting = await client.sessions.start("asks");
    const events = waiting.events();
    await events.next();
    const underWay = [waiting.result(), untilOver(events)];
    setTimeout(() => client.close(), 50);
    // Both are listened to before either ends: a rejection that nobody has asked for yet ends the run.
    await Promise.all(underWay.map((call) => expect(call).rejects.toMatchObject({ code: "unavailable" })));
    await expect(waiting.status()).rejects.toMatchObject({ message: "the client was closed" });
    await expect(untilOver(waiting.events())).rejects.toMatchObject({ message: "the client was closed" });
  });
});

async function untilOver(events: AsyncIterable<RemoteEvent>): Promise<void> {
  for await (const _ of events);
}

async function untilOwnAsked(through: HoldfastClient, sessionId: string): Promise<void> {
  for await (const event of through.sessions.get(sessionId).events())
    if (event.type === "status" && event.status.questions.length > 0) return;
}

interface Proxy {
  readonly url: string;
  target: URL;
  /** The number of further answers that are cut off on their way back. */
  cutAnswers: number;
  readonly cut: number;
  cutAll(): void;
  close(): void;
}

/** Something between a client and a coordinator that breaks connections. */
async function openProxy(): Promise<Proxy> {
  const open = new Set<Socket>();
  const state = { cutAnswers: 0, cut: 0, target: new URL("http://127.0.0.1:1") };
  const server: Server = createServer((asking) => {
    const coordinator = connect({ host: "127.0.0.1", port: Number(state.target.port) });
    for (const socket of [asking, coordinator]) {
      open.add(socket);
      socket
        .on("error", () => {})
        .on("close", () => {
          open.delete(socket);
          asking.destroy();
          coordinator.destroy();
        });
    }
    asking.pipe(coordinator);
    let isAnswering = false;
    coordinator.on("data", (chunk: Buffer) => {
      // The first thing a coordinator says over HTTP/2 are its settings; answers have a body.
      isAnswering = chunk.includes("{") || chunk.includes("ses_");
      if (isAnswering && state.cutAnswers > 0) {
        state.cutAnswers--;
        state.cut++;
        asking.destroy();
      } else asking.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get target() {
      return state.target;
    },
    set target(url) {
      state.target = url;
    },
    get cutAnswers() {
      return state.cutAnswers;
    },
    set cutAnswers(count) {
      state.cutAnswers = count;
    },
    get cut() {
      return state.cut;
    },
    cutAll: () => {
      for (const socket of open) socket.destroy();
    },
    close: () => {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
}
