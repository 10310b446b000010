import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { PendingCalls, type PendingCall } from "./pending-calls.ts";
import { openWayBack, type OpenedWayBack } from "./way-back.ts";

let calls: PendingCalls;
let wayBack: OpenedWayBack;
let taken: PendingCall[];
beforeEach(async () => {
  taken = [];
  calls = new PendingCalls();
  calls.subscribe((call) => taken.push(call));
  wayBack = await openWayBack((call, gone) => calls.carryOut(call, gone));
});
afterEach(() => wayBack.close());

function open(token = wayBack.token): Socket {
  const socket = connect(Number(wayBack.env["HOLDFAST_WAY_BACK_PORT"]), "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`${token}\n`);
  return socket;
}

/** Also where the end came as a reset. */
const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.once("close", () => resolve()));

/** Sends requests. @returns the next answer, as JSON. */
function client(): { send(message: object): void; next(): Promise<unknown> } {
  const socket = open();
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  return {
    send: (message) => void socket.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`),
    next: async () => JSON.parse(String((await lines.next()).value)) as unknown,
  };
}

const progress = { name: "report_progress", arguments: { text: "half" } };
const untilTaken = async (): Promise<PendingCall> => {
  while (taken.length === 0) await new Promise((resolve) => setImmediate(resolve));
  return taken[0]!;
};

test("way-back-2: a connection without the token of the turn gets nothing", async () => {
  const socket = open("0".repeat(wayBack.token.length));
  socket.write(`${JSON.stringify({ id: 1, method: "tools/list" })}\n`);
  let got = "";
  socket.on("data", (piece: Buffer) => (got += piece.toString()));
  await closed(socket);
  expect(got).toBe("");
  expect(JSON.stringify([wayBack.command, wayBack.args])).not.toContain(wayBack.token);
});

test("way-back-3: after the turn its token is good for nothing, and open connections are closed", async () => {
  const before = open();
  await once(before, "connect");
  wayBack.close();
  await closed(before);
  const after = open();
  const [error] = (await once(after, "error")) as [NodeJS.ErrnoException];
  expect(error.code).toBe("ECONNREFUSED");
});

test("way-back-4: a line without end closes the connection", async () => {
  const socket = open();
  socket.write("x".repeat(300 * 1024));
  await closed(socket);
});

test(
  "way-back-4: nothing more is read from a client that does not read its answers, and none is lost",
  ofCampaign,
  async () => {
    const served = Promise.withResolvers<Socket>();
    const onSocket = (message: unknown): void => served.resolve((message as { socket: Socket }).socket);
    subscribe("net.server.socket", onSocket);
    const socket = open().pause();
    const its = await served.promise;
    unsubscribe("net.server.socket", onSocket);
    const requests = Array.from(
      { length: 20_000 },
      (_, id) => `${JSON.stringify({ id, method: "tools/list" })}\n`,
    ).join("");
    const bytes = wayBack.token.length + 1 + requests.length;
    socket.end(requests);
    await expect.poll(() => its.isPaused() || its.bytesRead === bytes, { timeout: 30_000 }).toBe(true);
    expect(its.writableLength).toBeLessThan(4 * 1024 * 1024);
    let answers = 0;
    for await (const line of createInterface({ input: socket }))
      if (line !== "" && ++answers === 20_000) break;
    expect(answers).toBe(20_000);
  },
);

test("way-back-4: the id of a call that waits is good for no second call, and 32 calls wait at most", async () => {
  const { send, next } = client();
  const ask = (ids: readonly number[]) =>
    ids.map((id) => send({ id, method: "tools/call", params: progress }));
  ask([1, 1, 1]);
  expect(await next()).toMatchObject({ id: 1, error: { code: -32_600 } });
  expect(await next()).toMatchObject({ id: 1, error: { code: -32_600 } });
  ask(Array.from({ length: 32 }, (_, n) => n + 2));
  expect(await next()).toMatchObject({ id: 33, error: { code: -32_000 } });
  expect(taken).toHaveLength(32);
  expect(calls.answer(taken[0]!.callId, { text: "Reported.", isError: false })).toBe(true);
  expect(await next()).toMatchObject({ id: 1, result: { isError: false } });
  ask([1]); // The id is free again.
  await expect.poll(() => taken.length).toBe(33);
});

test("a call gets the result of the session, and unknown tools and wrong arguments are refused with the reason", async () => {
  const { send, next } = client();
  send({ id: 1, method: "initialize", params: { protocolVersion: "2025-06-18" } });
  expect(await next()).toMatchObject({ id: 1, result: { protocolVersion: "2025-06-18" } });
  send({ id: 2, method: "tools/call", params: progress });
  const { callId, call } = await untilTaken();
  expect(call).toEqual({ tool: "report_progress", input: { text: "half" } });
  expect(calls.answer(callId, { text: "Reported.", isError: false })).toBe(true);
  expect(await next()).toMatchObject({ id: 2, result: { content: [{ text: "Reported." }], isError: false } });
  for (const [params, reason] of [
    [{ name: "start_agent_session", arguments: {} }, "there is no tool"],
    [{ name: "ask_parent", arguments: { question: "" } }, "the arguments do not fit"],
  ] as const) {
    send({ id: 3, method: "tools/call", params });
    const refused = JSON.stringify(await next());
    expect(refused).toContain(reason);
    expect(refused).toContain('"isError":true');
  }
  send({ id: 4, method: "server/discover" });
  expect(await next()).toMatchObject({ id: 4, error: { code: -32_601 } });
});

test("the result of a call that the agent gave up was not delivered", async () => {
  const { send, next } = client();
  send({ id: 1, method: "tools/call", params: progress });
  const { callId } = await untilTaken();
  send({ method: "notifications/cancelled", params: { requestId: 1 } });
  send({ id: 2, method: "ping" });
  expect(await next()).toMatchObject({ id: 2 }); // The server has read the notification.
  expect(calls.answer(callId, { text: "Reported.", isError: false })).toBe(false);
});
