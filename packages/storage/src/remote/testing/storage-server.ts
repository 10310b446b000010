// serveStorage: a StorageService over any storage, as a coordinator's admin sees it. Every call is done as
// requested, with the time that the caller gives. Faults happen between the answer and its caller.

import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ErrorDetailSchema, StorageService } from "@holdfast/proto";
import { defined, toHoldfastError, type AgentStorage, type Arrival, type Change } from "@holdfast/core";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";

export const TOKEN = "hf_adm_test";

export interface StorageServer {
  readonly url: string;
  /** Do the next call, and lose its answer together with its connection. */
  loseAnswer(): void;
  /** Cut every connection, streams included. */
  cut(): void;
  /** Requests answered so far, by method. */
  readonly counts: Map<string, number>;
  close(): Promise<void>;
}

export async function serveStorage(
  storage: AgentStorage,
  { httpVersion = "2", port = 0 }: { readonly httpVersion?: "1.1" | "2"; readonly port?: number } = {},
): Promise<StorageServer> {
  const sockets = new Set<Duplex>();
  const counts = new Map<string, number>();
  let losesAnswer = false;
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const answered = async <T>(context: HandlerContext, ask: () => Promise<T>): Promise<T> => {
    if (context.requestHeader.get("authorization") !== `Bearer ${TOKEN}`)
      throw new ConnectError("who are you?", Code.Unauthenticated);
    counts.set(context.method.name, (counts.get(context.method.name) ?? 0) + 1);
    try {
      const answer = await ask();
      if (losesAnswer) {
        losesAnswer = false;
        cut();
      }
      return answer;
    } catch (thrown) {
      const { code, message, at, got, expected, fix } = toHoldfastError(thrown);
      const value = { code, ...defined({ at, got, expected, fix }) };
      throw new ConnectError(message, Code.FailedPrecondition, undefined, [
        { desc: ErrorDetailSchema, value },
      ]);
    }
  };
  const routes = (router: ConnectRouter): ConnectRouter =>
    router.service(StorageService, {
      commit: (request, context) =>
        answered(context, async () => {
          const changes = request.changes.map((bytes) => withLease(decode<Change>(bytes)));
          const results = await storage.commit(changes, Number(request.now));
          return { results: results.map(encode) };
        }),
      claim: ({ sessionId, owner, now, leaseMs, unlessHeld }, context) =>
        answered(context, async () => {
          const lease = leaseMs === undefined ? Infinity : Number(leaseMs);
          return {
            result: encode(
              await storage.claim({
                sessionId,
                owner,
                now: Number(now),
                leaseMs: lease,
                ...(unlessHeld === undefined ? {} : { unlessHeld }),
              }),
            ),
          };
        }),
      renew: ({ owner, sessionIds, now, leaseMs }, context) =>
        answered(context, () =>
          storage.renew({ owner, sessionIds, now: Number(now), leaseMs: Number(leaseMs) }),
        ),
      heldClaims: ({ sessionId, owner, after, now, limit }, context) =>
        answered(context, async () => {
          const filter = defined({ sessionId, owner, after });
          return { claims: (await storage.heldClaims({ ...filter, now: Number(now), limit })).map(encode) };
        }),
      load: ({ sessionId }, context) =>
        answered(context, async () => {
          const snapshot = await storage.load(sessionId);
          return snapshot === undefined ? {} : { snapshot: encode(snapshot) };
        }),
      arrivals: ({ sessionId, after }, context) =>
        answered(context, async () => ({
          arrivals: encode(await storage.arrivals(sessionId, Number(after))),
        })),
      conversation: ({ sessionId, leaf }, context) =>
        answered(context, async () => ({
          entries: (await storage.conversation(sessionId, Number(leaf))).map(encode),
        })),
      due: ({ now, limit, agents }, context) =>
        answered(context, async () => {
          const names = agents === undefined ? {} : { agents: agents.names };
          return { due: encode(await storage.due({ now: Number(now), limit, ...names })) };
        }),
      read: ({ query, params }, context) =>
        answered(context, async () => {
          const result = await read(storage, query, params === undefined ? {} : decode(params));
          return result === undefined ? {} : { result: encode(result as object) };
        }),
      async *subscribe(_request, { signal }) {
        const waiting: Arrival[] = [];
        let wake = Promise.withResolvers<void>();
        const unsubscribe = storage.subscribe((arrival) => {
          waiting.push(arrival);
          wake.resolve();
        });
        signal.addEventListener("abort", () => wake.resolve());
        try {
          yield { sessionId: "", awaited: false };
          while (!signal.aborted) {
            await wake.promise;
            wake = Promise.withResolvers<void>();
            yield* waiting.splice(0);
          }
        } finally {
          unsubscribe();
        }
      },
    });
  const handler = connectNodeAdapter({ routes });
  const server = httpVersion === "2" ? createHttp2Server(handler) : createHttpServer(handler);
  server.on("connection", (socket: Duplex) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    cut,
    loseAnswer: () => void (losesAnswer = true),
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      cut();
      await closed;
    },
  };
}

async function read(storage: AgentStorage, query: string, params: Params): Promise<unknown> {
  const { reader } = storage;
  switch (query) {
    case "sessions":
      return reader.sessions(params as never);
    case "counts":
      return reader.counts(params as never);
    case "session":
      return reader.session(params["sessionId"] as string);
    case "journal":
      return reader.journal(
        params["sessionId"] as string,
        params["fromSeq"] as number,
        params["limit"] as number,
      );
    case "entries":
      return reader.entries(
        params["sessionId"] as string,
        params["from"] as number,
        params["limit"] as number,
      );
    case "pendingSignals":
      return reader.pendingSignals(params["sessionId"] as string);
    case "seenSignals":
      return reader.seenSignals(params["sessionId"] as string);
    case "schedules":
      return reader.schedules();
    case "document":
      return reader.document(params["collection"] as string, params["id"] as string);
    case "documents":
      return reader.documents(params as never);
    case "audit":
      return reader.audit(params as never);
    default:
      throw new Error(`no read "${query}"`);
  }
}

type Params = Readonly<Record<string, unknown>>;

function encode(value: object): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}

function decode<T>(bytes: Uint8Array): T {
  return JSON.parse(new TextDecoder().decode(bytes)) as T;
}

function withLease(change: Change): Change {
  if (change.type !== "create_session" || change.claimFor === undefined) return change;
  const { owner, leaseMs } = change.claimFor as { readonly owner: string; readonly leaseMs: number | null };
  return { ...change, claimFor: { owner, leaseMs: leaseMs ?? Infinity } };
}
