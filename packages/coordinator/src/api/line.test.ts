// Lines: calls over one stream of HTTP/2, by the coordinator's own end.

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  FrameKind,
  frameOf,
  FrameReader,
  GREETING,
  GetHealthResponseSchema,
  LINE_PATH,
  LINE_TYPE,
  lineCallOf,
  PollRequestSchema,
  readGreeting,
  type Frame,
} from "@holdfast/proto";
import { once } from "node:events";
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { afterEach, expect, it } from "vitest";
import { startStubApi, type Behave, type StubApi } from "./testing/stub-api.ts";

let api: StubApi;
let session: ClientHttp2Session;
afterEach(async () => {
  session.destroy();
  await api.close();
});

async function start(behave?: Behave, limits: object = {}): Promise<void> {
  api = await startStubApi(behave, { limits });
  session = connect(api.url);
}

function openLine(headers: Record<string, string> = {}): ClientHttp2Stream {
  const stream = session.request({
    ":method": "POST",
    ":path": LINE_PATH,
    "content-type": LINE_TYPE,
    authorization: "Bearer runner",
    ...headers,
  });
  stream.on("error", () => {});
  return stream;
}

/** The frames that arrive over a line, one by one. */
function framesOf(stream: ClientHttp2Stream) {
  const reader = new FrameReader(1_000_000);
  const came: Frame[] = [];
  let wake = (): void => {};
  stream.on("data", (bytes: Uint8Array) => {
    came.push(...reader.read(bytes));
    wake();
  });
  return async (): Promise<Frame> => {
    while (came.length === 0) await new Promise<void>((resolve) => (wake = resolve));
    return came.shift()!;
  };
}

const call = (number: number, path: string, request = new Uint8Array()) =>
  frameOf(number, FrameKind.call, ...lineCallOf(Buffer.from(path), request));
const HEALTH = "holdfast.v1.HealthService/Get";
const POLL = "holdfast.v1.RunnerService/Poll";
const aPoll = toBinary(PollRequestSchema, create(PollRequestSchema, { runnerId: "r", pollId: "p" }));
const errorIn = (frame: Frame) => JSON.parse(Buffer.from(frame.content).toString()) as { code: string };
const closed = (stream: ClientHttp2Stream) =>
  new Promise<void>((resolve) => (stream.closed ? resolve() : stream.once("close", () => resolve())));

it("a line greets back, answers calls under their numbers, and says why one is refused", async () => {
  await start();
  const stream = openLine();
  const next = framesOf(stream);
  stream.write(frameOf(GREETING, FrameKind.greeting));
  expect(readGreeting((await next()).content)).toMatchObject({ calls: 100 });
  stream.write(call(7, HEALTH));
  const answer = await next();
  expect(answer).toMatchObject({ number: 7, kind: FrameKind.answer });
  expect(fromBinary(GetHealthResponseSchema, answer.content).$typeName).toBe("holdfast.v1.GetHealthResponse");
  stream.write(call(8, "holdfast.v1.HealthService/Nothing"));
  const refused = await next();
  expect(refused).toMatchObject({ number: 8, kind: FrameKind.error });
  expect(errorIn(refused).code).toBe("unimplemented");
});

it("api-line-1: each call over a line is checked for its token, its role, its constraints and its bytes", async () => {
  await start();
  const stream = openLine();
  const next = framesOf(stream);
  const code = async (bytes: Uint8Array) => {
    stream.write(bytes);
    return errorIn(await next()).code;
  };
  expect(await code(call(1, "holdfast.v1.AuditService/List"))).toBe("permission_denied");
  expect(await code(call(2, POLL))).toBe("invalid_argument"); // Without its required fields.
  expect(await code(call(3, POLL, new Uint8Array([255, 255])))).toBe("invalid_argument");
  expect(await code(frameOf(4, FrameKind.call))).toBe("unimplemented");
  api.revoked.add("runner");
  expect(await code(call(5, POLL, aPoll))).toBe("unauthenticated");
});

it("a line is refused for an unknown token, a wrong content type and another origin", async () => {
  await start();
  for (const [headers, status] of [
    [{ authorization: "Bearer nobody" }, 401],
    [{ "content-type": "application/proto" }, 501],
    [{ origin: "https://elsewhere.example" }, 403],
  ] as const) {
    const stream = openLine(headers);
    const [answered] = (await once(stream, "response")) as [Record<string, unknown>];
    expect(answered[":status"]).toBe(status);
    stream.close();
  }
});

it("api-line-2: a connection has four lines at most, and a closed one makes room", async () => {
  await start();
  const lines = [openLine(), openLine(), openLine(), openLine()];
  for (const line of lines) await once(line, "response");
  const status = async () =>
    ((await once(openLine(), "response")) as [Record<string, unknown>])[0][":status"];
  expect(await status()).toBe(429);
  lines[0]!.end();
  lines[0]!.resume();
  await closed(lines[0]!);
  expect(await status()).toBe(200);
});

it("api-line-2: a line reads no more while as many calls are open as it may have", async () => {
  const asked: (() => void)[] = [];
  let count = 0;
  let onAsked = (): void => {};
  await start(
    () =>
      new Promise((resolve) => {
        count++;
        asked.push(() => resolve(undefined));
        onAsked();
      }),
    { http2Streams: 2 },
  );
  const stream = openLine();
  const next = framesOf(stream);
  const reach = (n: number) =>
    new Promise<void>((resolve) => {
      onAsked = () => count >= n && resolve();
      onAsked();
    });
  stream.write(call(1, POLL, aPoll));
  await reach(1);
  stream.write(call(2, POLL, aPoll));
  await reach(2);
  stream.write(call(3, POLL, aPoll));
  // A request beside the line comes after that frame, and is answered: the line has not read it.
  const beside = session.request({ ":path": "/openapi.json" });
  beside.resume();
  await once(beside, "end");
  expect(count).toBe(2);
  asked[0]!();
  expect(await next()).toMatchObject({ number: 1 });
  await reach(3);
});

it("api-line-3: a line breaks at a frame that is too long", async () => {
  await start();
  const stream = openLine();
  const frame = new Uint8Array(9);
  new DataView(frame.buffer).setUint32(0, 2 ** 31);
  stream.write(frame);
  await closed(stream);
  expect(stream.rstCode).not.toBe(0);
});

it("api-line-3: a frame that is not completed closes its line, and a line without calls is ended", async () => {
  await start(undefined, { requestMs: 20, http2IdleMs: 60_000 });
  const cut = openLine();
  cut.write(call(1, HEALTH).subarray(0, 6));
  await closed(cut);
  session.destroy();
  await api.close();
  await start(undefined, { http2IdleMs: 20 });
  const idle = openLine();
  expect(readGreeting((await framesOf(idle)()).content)).toMatchObject({ calls: 0 });
  await closed(idle); // This caller does not end it.
});

it("api-line-3: a half frame does not close its line while the line reads no more, and does once it reads again", async () => {
  const first = Promise.withResolvers<void>();
  const isAsked = Promise.withResolvers<void>();
  const behave = async ({ name }: { readonly name: string }): Promise<undefined> => {
    if (name !== "Poll") return;
    isAsked.resolve();
    await first.promise;
  };
  await start(behave, { http2Streams: 1, requestMs: 100 });
  const stream = openLine();
  const next = framesOf(stream);
  const second = call(2, HEALTH);
  stream.write(Buffer.concat([call(1, POLL, aPoll), second.subarray(0, 6)]));
  await isAsked.promise;
  stream.write(second.subarray(6));
  await new Promise((resolve) => setTimeout(resolve, 300));
  first.resolve();
  expect(await next()).toMatchObject({ number: 1 });
  expect(await next()).toMatchObject({ number: 2 });
  stream.write(call(3, HEALTH).subarray(0, 6));
  await closed(stream);
});

it.each(["cancelled", "closed"])("api-line-4: a call is over when it is %s by its caller", async (how) => {
  const over = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  await start((_desc, _request, { signal }) => {
    signal.addEventListener("abort", () => over.resolve());
    asked.resolve();
    return over.promise;
  });
  const stream = openLine();
  stream.write(call(1, POLL, aPoll));
  await asked.promise;
  if (how === "cancelled") stream.write(frameOf(1, FrameKind.cancel));
  else stream.close();
  await over.promise;
});

it("api-line-5: when the API closes, a line asks for its end, and answers what was sent before its caller read that", async () => {
  const asked = Promise.withResolvers<void>();
  await start(
    (_desc, _request, { signal }) =>
      new Promise((resolve) => {
        if (signal.aborted) resolve(undefined);
        signal.addEventListener("abort", () => resolve(undefined));
        asked.resolve();
      }),
  );
  const stream = openLine();
  const next = framesOf(stream);
  stream.write(call(1, POLL, aPoll));
  await asked.promise;
  const closing = api.close();
  expect(readGreeting((await next()).content)).toMatchObject({ calls: 0 });
  expect(await next()).toMatchObject({ number: 1, kind: FrameKind.answer });
  stream.write(call(2, POLL, aPoll));
  expect(await next()).toMatchObject({ number: 2, kind: FrameKind.answer });
  stream.end();
  await once(stream, "end");
  await closing;
});

it("api-line-2: calls that arrive together are no more at once than a line may have", async () => {
  const asked: (() => void)[] = [];
  let onAsked = (): void => {};
  await start(
    () =>
      new Promise((resolve) => {
        asked.push(() => resolve(undefined));
        onAsked();
      }),
    { http2Streams: 2 },
  );
  const stream = openLine();
  const next = framesOf(stream);
  const reach = (n: number) =>
    new Promise<void>((resolve) => {
      onAsked = () => asked.length >= n && resolve();
      onAsked();
    });
  stream.write(Buffer.concat([1, 2, 3, 4, 5].map((number) => call(number, POLL, aPoll))));
  await reach(2);
  // A request beside the line comes after those frames, and is answered: the line has not taken more of them.
  const beside = session.request({ ":path": "/openapi.json" });
  beside.resume();
  await once(beside, "end");
  expect(asked).toHaveLength(2);
  for (const n of [1, 2, 3, 4, 5]) {
    await reach(n);
    asked[n - 1]!();
    expect(await next()).toMatchObject({ number: n });
  }
});

it("a line breaks at a call whose number is that of an open call, and both are over", async () => {
  let over = 0;
  let asked = 0;
  let onAsked = (): void => {};
  await start(
    (_desc, _request, { signal }) =>
      new Promise((resolve) => {
        asked++;
        onAsked();
        signal.addEventListener("abort", () => {
          over++;
          resolve(undefined);
        });
      }),
  );
  const stream = openLine();
  stream.write(call(1, POLL, aPoll));
  await new Promise<void>((resolve) => {
    onAsked = () => resolve();
    if (asked > 0) resolve();
  });
  stream.write(call(1, POLL, aPoll));
  await closed(stream);
  expect(stream.rstCode).not.toBe(0);
  expect({ asked, over }).toEqual({ asked: 1, over: 1 });
});
