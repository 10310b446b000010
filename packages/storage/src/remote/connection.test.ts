// Failures of the network under the storage port: lost answers, cut connections, coordinators that go away
// and come back.

import { MemoryStorage } from "@holdfast/testkit/test-runtime";
import type { Arrival, Change, HoldfastError, RenewInThread } from "@holdfast/core";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { connect, createServer as createTcpServer, type AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { StorageService } from "@holdfast/proto";
import { CoordinatorConnection, openRemoteStorage } from "./index.ts";
import { RemoteStorage } from "./remote-storage.ts";
import { serveStorage, TOKEN, type StorageServer } from "./testing/storage-server.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Real connections take real time; a test that waits in vain says so before its own time-out. */
const PATIENCE = { timeout: 5_000, interval: 10 };
const HTTP = ["2", "1.1"] as const;

describe.each(HTTP)("over HTTP/%s", (httpVersion) => {
  test("a commit whose answer was lost is unavailable, and safe to send again", async () => {
    const { server, storage, memory } = await open(httpVersion);
    await storage.commit([creating("s")], 1);
    server.loseAnswer();
    const signal = signalling("s", "sig-1");
    await expect(storage.commit([signal], 2)).rejects.toMatchObject({ code: "storage_unavailable" });
    expect(await memory.reader.pendingSignals("s")).toHaveLength(1);
    expect(await storage.commit([signal], 3)).toEqual([{ status: "duplicate" }]);
  });

  test("a coordinator that is away is unavailable, and is found again when it is back", async () => {
    const { server, storage, memory } = await open(httpVersion);
    await storage.commit([creating("s")], 1);
    const { port } = new URL(server.url);
    await server.close();
    await expect(storage.load("s")).rejects.toMatchObject({ code: "storage_unavailable", at: server.url });
    closers.push((await serveStorage(memory, { httpVersion, port: Number(port) })).close);
    expect((await storage.load("s"))?.session.sessionId).toBe("s");
  });

  test("a connection to several coordinators asks one until it is away, and then the next", async () => {
    const { server: first, memory } = await open(httpVersion);
    const second = await serveStorage(memory, { httpVersion });
    const url = [first.url, second.url];
    const storage = openRemoteStorage({ url, token: TOKEN, httpVersion });
    closers.push(second.close, () => storage.close());
    await storage.commit([creating("s")], 1);
    await Promise.all([storage.load("s"), storage.load("s")]);
    expect(second.counts.size).toBe(0);
    await first.close();
    // The first one may have done it, so only the caller asks again.
    const cut = await Promise.allSettled([storage.load("s"), storage.load("s")]);
    expect(cut.map((each) => (each as PromiseRejectedResult).reason)).toMatchObject([
      { code: "storage_unavailable", at: first.url },
      { code: "storage_unavailable", at: first.url },
    ]);
    expect((await storage.load("s"))?.session.sessionId).toBe("s");
    const port = Number(new URL(first.url).port);
    const again = await serveStorage(memory, { httpVersion, port });
    closers.push(again.close);
    await storage.load("s");
    expect(again.counts.size).toBe(0);
    await second.close();
    await expect(storage.load("s")).rejects.toMatchObject({ at: second.url });
    expect((await storage.load("s"))?.session.sessionId).toBe("s");
    expect(again.counts.get("Load")).toBe(1);
  });

  test("a wrong one of several addresses is no refusal, and wrong ones alone are", async () => {
    const foreign = await serveForeign(404);
    const { server: good, storage: only, memory: _ } = await open(httpVersion);
    await only.commit([creating("s")], 1);
    const storage = openRemoteStorage({ url: [foreign, good.url], token: TOKEN, httpVersion });
    const wrong = openRemoteStorage({ url: [foreign, foreign], token: TOKEN, httpVersion });
    closers.push(
      () => storage.close(),
      () => wrong.close(),
    );
    await expect(storage.load("s")).rejects.toMatchObject({ code: "storage_unavailable", at: foreign });
    expect((await storage.load("s"))?.session.sessionId).toBe("s");
    await expect(wrong.load("s")).rejects.toMatchObject({ code: "storage_unavailable" });
    await expect(wrong.load("s")).rejects.toMatchObject({ code: "not_a_coordinator" });
  });

  test("a stream of a coordinator that is gone moves no call away from the next one", async () => {
    const { server: first, memory } = await open(httpVersion);
    const second = await serveStorage(memory, { httpVersion });
    const storage = openRemoteStorage({ url: [first.url, second.url], token: TOKEN, httpVersion });
    closers.push(second.close, () => storage.close());
    await storage.commit([creating("s")], 1);
    const arrived = vi.fn();
    const stop = storage.subscribe(arrived);
    let n = 0;
    await vi.waitFor(async () => {
      await memory.commit([signalling("s", `sig-${n++}`)], 2);
      expect(arrived).toHaveBeenCalled();
    }, PATIENCE);
    await first.close();
    await storage.load("s").catch(() => {});
    for (let i = 0; i < 20; i++) {
      expect((await storage.load("s"))?.session.sessionId).toBe("s");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    stop();
  });

  test("remote-storage-4: a read with patience waits for a coordinator that is away, and says so once", async () => {
    const { server, memory } = await open(httpVersion);
    const onWait = vi.fn();
    const { url } = server;
    const storage = openRemoteStorage({
      url,
      token: TOKEN,
      httpVersion,
      patience: { waitMs: 30_000, onWait },
    });
    closers.push(() => storage.close());
    await storage.commit([creating("s")], 1);
    await server.close();
    const reads = [storage.reader.session("s"), storage.reader.session("none")];
    await vi.waitFor(() => expect(onWait).toHaveBeenCalledOnce(), { timeout: 30_000 });
    await expect(storage.load("s")).rejects.toMatchObject({ code: "storage_unavailable" });
    closers.push((await serveStorage(memory, { httpVersion, port: Number(new URL(url).port) })).close);
    expect(await Promise.all(reads)).toMatchObject([{ sessionId: "s" }, undefined]);
    expect(onWait).toHaveBeenCalledOnce();
  });

  test("a session that ended with its first batch is not held", async () => {
    const { server } = await open(httpVersion);
    const remote = new RemoteStorage(
      new CoordinatorConnection({ url: server.url, token: TOKEN, httpVersion }),
    );
    const claimFor = { owner: "me", leaseMs: 1_000 };
    const first = { records: [], entries: [], session: { status: "completed" } } as const;
    const changes = [
      { ...creating("over"), claimFor, first },
      { ...creating("goes-on"), claimFor },
    ];
    await remote.commit(changes, 1);
    expect([...remote.held.keys()]).toEqual(["goes-on"]);
    await remote.close();
  });

  // Nobody received the arrivals of a time without a stream, so the holder of a session asks again.
  test("a stream that was cut is opened again, and announces every held session", async () => {
    const { server, storage, memory } = await open(httpVersion);
    const received: Arrival[] = [];
    storage.subscribe((arrival) => received.push(arrival));
    await storage.commit([creating("held"), creating("other")], 1);
    await storage.claim({ sessionId: "held", owner: "me", now: 1, leaseMs: 1_000 });
    server.cut();
    await memory.commit([signalling("held", "sig-1")], 2);
    await vi.waitFor(() => expect(received).toEqual([{ sessionId: "held", awaited: false }]), PATIENCE);
    await memory.commit([signalling("other", "sig-2")], 3);
    await vi.waitFor(() => expect(received[1]).toEqual({ sessionId: "other", awaited: true }), PATIENCE);
  });

  test(
    "a coordinator that accepts connections and says nothing is unavailable, also to listeners (T1)",
    ofCampaign,
    async () => {
      const { url, close } = await serveSilence(httpVersion);
      const storage = openRemoteStorage({ url, token: TOKEN, httpVersion, timeoutMs: 200 });
      closers.push(close, () => storage.close());
      storage.subscribe(() => {});
      await expect(storage.load("s")).rejects.toMatchObject({ code: "storage_unavailable", at: url });
    },
  );

  test(
    "a call without an answer does not keep the storage from closing, and is then unavailable",
    ofCampaign,
    async () => {
      const { url, close } = await serveSilence(httpVersion);
      closers.push(close);
      const storage = openRemoteStorage({ url, token: TOKEN, httpVersion });
      const asked = expect(storage.load("s")).rejects.toMatchObject({ code: "storage_unavailable" });
      const since = performance.now();
      await storage.close();
      await asked;
      expect(performance.now() - since).toBeLessThan(10_000);
    },
  );

  test("a group larger than a request goes in several requests, in order", ofCampaign, async () => {
    const { server, storage } = await open(httpVersion);
    const input = JSON.stringify("x".repeat(1_500_000));
    const changes = Array.from({ length: 6 }, (_, i) => ({ ...creating(`s${i}`), input }));
    expect(await storage.commit([...changes, creating("s0")], 1)).toEqual([
      ...changes.map(() => ({ status: "created" })),
      { status: "exists" },
    ]);
    expect(server.counts.get("Commit")).toBe(3);
    const ids = (await storage.reader.sessions({ limit: 9 })).map(({ sessionId }) => sessionId);
    expect(ids).toEqual(["s5", "s4", "s3", "s2", "s1", "s0"]);
  });

  test("an error of the coordinator's keeps its code and its advice", async () => {
    const { storage } = await open(httpVersion);
    await expect(storage.arrivals("none", 0)).rejects.toMatchObject({
      name: "NotFoundError",
      code: "session_not_found",
    });
  });
});

test("another program in the coordinator's place is reported as such", async () => {
  const { server } = await open("1.1");
  const storage = openRemoteStorage({ url: `${server.url}/elsewhere`, token: TOKEN, httpVersion: "1.1" });
  closers.push(() => storage.close());
  await expect(storage.load("s")).rejects.toMatchObject({ code: "not_a_coordinator" });
});

test.each([
  ["http://10.0.0.1:8765", "unencrypted", "https://10.0.0.1:8765"],
  ["http://127.0.0.1.example.org", "unencrypted", "https://127.0.0.1.example.org"],
  ["http://", "not a coordinator's URL", undefined],
  ["http://me:secret@localhost", "no name and no password", "remove them"],
  ["ftp://localhost:1", "not ftp", "say http://localhost:1"],
  ["localhost:8765", "does not begin with http", "say http://localhost:8765"],
  ["127.0.0.1:8765", "does not begin with http", "say http://127.0.0.1:8765"],
  ["fleet.example", "does not begin with http", "say https://fleet.example"],
  ["http:localhost:8765", "does not begin with http", undefined],
  ["nonsense with spaces", "does not begin with http", "say https://"],
  ["", "missing", undefined],
])("no token goes to %s, and the error gives the right form", (url, what, fix) => {
  const error = refusalOf(url);
  expect(error).toMatchObject({ code: "usage", at: "url", message: expect.stringContaining(what) as string });
  expect(fix === undefined ? error.expected : error.fix).toContain(fix ?? "http");
  expect(JSON.stringify(error)).not.toContain("secret");
});

function refusalOf(url: string): HoldfastError {
  try {
    new CoordinatorConnection({ url, token: TOKEN }).close();
  } catch (thrown) {
    return thrown as HoldfastError;
  }
  throw new Error(`${url} was taken`);
}

test.each(["http://127.0.0.1:8765/", "http://localhost", "http://[::1]:1", "https://10.0.0.1"])(
  "a token may go to %s",
  (url) => {
    const connection = new CoordinatorConnection({ url, token: TOKEN });
    expect(connection.url).toBe(url.replace(/\/$/, ""));
    connection.close();
  },
);

test("a thread renews at the next of several coordinators when one is away", async () => {
  const { server: first, memory } = await open("1.1");
  const second = await serveStorage(memory, { httpVersion: "1.1" });
  const storage = openRemoteStorage({ url: [first.url, second.url], token: TOKEN, httpVersion: "1.1" });
  closers.push(second.close, () => storage.close());
  await storage.commit([creating("s")], 1);
  await storage.claim({ sessionId: "s", owner: "me", now: 1, leaseMs: 1_000 });
  const { module, data } = storage.renewal!();
  const { renew } = (await import(module)) as { renew: RenewInThread };
  const renewal = { owner: "me", sessionIds: ["s"], leaseMs: 5_000, blockedBy: "a step" };
  const { signal } = new AbortController();
  await first.close();
  expect(await renew(data, { ...renewal, signal })).toBe(true);
  expect(second.counts.get("Renew")).toBe(1);
});

// Node reports the error of the ended connection once more, and a process exits where nobody listens.
test("calls after a connection that went silent leave no error without a listener", ofCampaign, async () => {
  const server = await serveStorage(new MemoryStorage());
  let isSilent = false;
  const proxy = createTcpServer((here) => {
    const there = connect(Number(new URL(server.url).port), "127.0.0.1");
    for (const [from, to] of [[here, there] as const, [there, here] as const])
      from.on("data", (data) => isSilent || to.write(data)).on("error", () => {});
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  closers.push(server.close, async () => void proxy.close());
  const { port } = proxy.address() as AddressInfo;
  const connection = new CoordinatorConnection({ url: `http://127.0.0.1:${port}`, token: TOKEN });
  closers.push(async () => connection.close());
  const client = connection.client(StorageService);
  const load = () => connection.ask(() => client.load({ sessionId: "s" }, { timeoutMs: 1_000 }));
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  process.prependListener("uncaughtException", note);
  try {
    const watched = (async (): Promise<void> => {
      for await (const _ of client.subscribe({}, { timeoutMs: 0 }));
    })();
    await load();
    isSilent = true;
    await expect(watched).rejects.toThrow("PING timed out");
    await Promise.allSettled([load(), load()]);
  } finally {
    process.off("uncaughtException", note);
  }
  expect(uncaught).toEqual([]);
});

test("a thread takes no refusal from something that is no coordinator", async () => {
  const foreign = await serveForeign(404);
  const { server, storage: only } = await open("1.1");
  await only.commit([creating("s")], 1);
  await only.claim({ sessionId: "s", owner: "me", now: 1, leaseMs: 1_000 });
  const { renew } = (await import("./renew-in-thread.ts")) as { renew: RenewInThread };
  const { signal } = new AbortController();
  const renewal = { owner: "me", sessionIds: ["s"], leaseMs: 5_000, blockedBy: "a step", signal };
  expect(await renew({ urls: [foreign, server.url], token: TOKEN }, renewal)).toBe(true);
  await expect(renew({ urls: [foreign], token: TOKEN }, renewal)).rejects.toThrow("HTTP 404");
});

test("a list of coordinators without one is refused", () => {
  expect(() => new CoordinatorConnection({ url: [], token: TOKEN })).toThrow("URL is missing");
});

async function open(httpVersion: (typeof HTTP)[number]) {
  const memory = new MemoryStorage();
  const server: StorageServer = await serveStorage(memory, { httpVersion });
  const storage = openRemoteStorage({ url: server.url, token: TOKEN, httpVersion });
  closers.push(server.close, () => storage.close());
  return { memory, server, storage };
}

/** Answers each request with this status, in no words of ours. */
async function serveForeign(status: number): Promise<string> {
  const server = createHttpServer((_, response) => response.writeHead(status).end("not here"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(async () => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Takes connections and requests, and says nothing. */
async function serveSilence(httpVersion: (typeof HTTP)[number]) {
  const server = httpVersion === "2" ? createHttp2Server() : createHttpServer();
  server.on("stream", (stream: Duplex) => stream.on("error", () => {}));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): Promise<void> => new Promise((resolve) => void server.close(() => resolve()));
  return { url: `http://127.0.0.1:${port}`, close };
}

function creating(sessionId: string): Change & { readonly type: "create_session" } {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: undefined, seed: 1, flags: 0, format: 1 };
}

function signalling(sessionId: string, signalId: string): Change {
  return { type: "send_signal", sessionId, signalId, name: "go", payload: undefined };
}
