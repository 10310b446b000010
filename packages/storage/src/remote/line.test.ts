// The caller's end of a line, against coordinators that speak it, that do not, and that break off.

import { create, toBinary } from "@bufbuild/protobuf";
import {
  FrameKind,
  frameOf,
  FrameReader,
  GetHealthResponseSchema,
  GREETING,
  greetingOf,
  HealthService,
  LINE_PATH,
  LINE_TYPE,
  StorageService,
  type Frame,
} from "@holdfast/proto";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { CoordinatorConnection } from "./coordinator-connection.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

const HEALTHY = toBinary(GetHealthResponseSchema, create(GetHealthResponseSchema, { status: "ok" }));

interface ServedLine {
  readonly stream: ServerHttp2Stream;
  readonly token: string | undefined;
}

/** A coordinator whose lines do as the test says. It answers requests and counts them. */
async function open(onFrame: (frame: Frame, line: ServerHttp2Stream) => void, refuse?: number) {
  const server = createServer();
  const lines: ServedLine[] = [];
  const seen = { requests: 0 };
  let wake = (): void => {};
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    if (headers[":path"] !== LINE_PATH) {
      seen.requests++;
      stream.respond({ ":status": 200, "content-type": "application/proto" });
      stream.end(HEALTHY);
      return;
    }
    lines.push({ stream, token: headers.authorization });
    stream.respond({ ":status": refuse ?? 200, "content-type": LINE_TYPE });
    const reader = new FrameReader(1_000_000);
    stream.on("data", (bytes: Uint8Array) => reader.read(bytes).forEach((frame) => onFrame(frame, stream)));
    stream.on("end", () => stream.end());
    stream.on("close", () => wake());
    wake();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const connection = new CoordinatorConnection({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: "t",
  });
  closers.push(
    () => server.close(),
    () => connection.close(),
  );
  const client = connection.client(HealthService);
  const get = (options: { signal?: AbortSignal; timeoutMs?: number } = {}) =>
    connection.ask(() => client.get({}, options));
  /** Calls until one went over a line, whatever became of it. */
  const untilByLine = async (): Promise<void> => {
    for (let before = seen.requests; ; before = seen.requests) {
      await get();
      if (seen.requests === before) return;
    }
  };
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) await new Promise<void>((resolve) => (wake = resolve));
  };
  return { connection, get, lines, seen, untilByLine, until };
}

const greet = (line: ServerHttp2Stream, calls = 100, frameBytes = 100_000): void => {
  line.write(frameOf(GREETING, FrameKind.greeting, greetingOf({ calls, frameBytes })));
};
const isCall = ({ kind }: Frame): boolean => kind === FrameKind.call;
const answers = (frame: Frame, line: ServerHttp2Stream): void => {
  if (isCall(frame)) line.write(frameOf(frame.number, FrameKind.answer, HEALTHY));
  else if (frame.kind === FrameKind.greeting) greet(line);
};

test("remote-line-1: the first calls go as requests, and once a line has greeted back, calls go over it", async () => {
  const { get, seen, lines, untilByLine } = await open(answers);
  await get();
  expect(lines).toHaveLength(0);
  await untilByLine();
  const { requests } = seen;
  for (let i = 0; i < 20; i++) expect(await get()).toMatchObject({ status: "ok" });
  expect(seen.requests).toBe(requests);
  expect(lines).toHaveLength(1);
});

test("remote-line-1: every call goes as a request if no greeting comes back or the line is refused", async () => {
  for (const refuse of [undefined, 404]) {
    const { get, seen, lines } = await open(() => {}, refuse);
    for (let i = 0; i < 30; i++) await get();
    expect(seen.requests).toBe(30);
    expect(lines).toHaveLength(1);
  }
});

test("a call that the line has no room for goes as a request", async () => {
  const held: (() => void)[] = [];
  const { get, seen, untilByLine } = await open((frame, line) => {
    if (frame.kind === FrameKind.greeting) greet(line, 1);
    else if (isCall(frame)) held.push(() => answers(frame, line));
    if (held.length === 1) held[0]!();
  });
  await untilByLine();
  const { requests } = seen;
  const waiting = get();
  await get();
  expect(seen.requests).toBe(requests + 1);
  held.at(-1)!();
  await waiting;
});

test("remote-line-2: a call over a line that is cut is unavailable, and is not made again", async () => {
  let isCut = false;
  let calls = 0;
  const { get, seen, untilByLine } = await open((frame, line) => {
    if (isCall(frame)) calls++;
    if (isCut && isCall(frame)) line.close(2);
    else answers(frame, line);
  });
  await untilByLine();
  isCut = true;
  const before = { requests: seen.requests, calls };
  await expect(get()).rejects.toMatchObject({ code: "storage_unavailable" });
  expect({ requests: seen.requests, calls }).toEqual({ ...before, calls: before.calls + 1 });
  expect(await get()).toMatchObject({ status: "ok" });
});

test("an error over a line keeps its code, and an unreadable error is unavailable", async () => {
  const sent = { code: "not_found", message: "no" };
  let content = JSON.stringify(sent);
  let isError = false;
  const { get, untilByLine } = await open((frame, line) => {
    if (isError && isCall(frame)) line.write(frameOf(frame.number, FrameKind.error, Buffer.from(content)));
    else answers(frame, line);
  });
  await untilByLine();
  isError = true;
  await expect(get()).rejects.toMatchObject({ code: "storage_unavailable", got: "NotFound: no" });
  content = "{";
  await expect(get()).rejects.toMatchObject({ code: "storage_unavailable" });
});

test.each(["given up", "too late"])("a call over a line that is %s is cancelled there", async (how) => {
  const cancelled = Promise.withResolvers<number>();
  const controller = new AbortController();
  let isHeld = false;
  let last = 0;
  const { get, untilByLine } = await open((frame, line) => {
    if (frame.kind === FrameKind.cancel) cancelled.resolve(frame.number);
    else if (isHeld && isCall(frame)) {
      last = frame.number;
      controller.abort();
    } else answers(frame, line);
  });
  await untilByLine();
  isHeld = true;
  const options = how === "given up" ? { signal: controller.signal } : { timeoutMs: 20 };
  await expect(get(options)).rejects.toMatchObject({ code: "storage_unavailable" });
  expect(await cancelled.promise).toBe(last);
});

test("remote-line-3: a line without calls is ended", async () => {
  const { lines, untilByLine, until } = await open(answers);
  await untilByLine();
  await until(() => lines[0]!.stream.closed);
  expect(lines[0]!.stream.rstCode).toBe(0);
});

test("remote-line-4: with another token the line is ended, and the next one has that token", async () => {
  const { connection, lines, untilByLine, until } = await open(answers);
  await untilByLine();
  connection.useToken("other");
  await untilByLine();
  await until(() => lines[0]!.stream.closed);
  expect(lines.map(({ token }) => token)).toEqual(["Bearer t", "Bearer other"]);
});

test("remote-line-5: a line that has carried much is followed by another one, and no call is lost in between", async () => {
  const { connection, lines, seen, until } = await open(answers);
  const client = connection.client(StorageService);
  const changes = [new Uint8Array(60_000)];
  for (let i = 0; i < 30; i++) await client.commit({ changes });
  expect(lines.length).toBeGreaterThan(1);
  expect(seen.requests).toBeLessThan(20);
  await until(() => lines[0]!.stream.closed);
  expect(lines[0]!.stream.rstCode).toBe(0);
});

test("remote-line-6: a line that is asked to end answers what is open, and takes no more calls", async () => {
  const held = Promise.withResolvers<Frame>();
  let isHeld = false;
  const { get, lines, seen, untilByLine, until } = await open((frame, line) => {
    if (isHeld && isCall(frame)) held.resolve(frame);
    else answers(frame, line);
  });
  await untilByLine();
  isHeld = true;
  const waiting = get();
  const frame = await held.promise;
  greet(lines[0]!.stream, 0);
  answers(frame, lines[0]!.stream);
  expect(await waiting).toMatchObject({ status: "ok" });
  const { requests } = seen;
  await get();
  expect(seen.requests).toBe(requests + 1);
  await until(() => lines[0]!.stream.closed);
});

test("remote-line-2: a line that ends although a call is open leaves that call unavailable at once", async () => {
  let isEnded = false;
  const { get, untilByLine } = await open((frame, line) => {
    if (isEnded && isCall(frame)) line.end();
    else answers(frame, line);
  });
  await untilByLine();
  isEnded = true;
  await expect(get()).rejects.toMatchObject({ code: "storage_unavailable" });
});
