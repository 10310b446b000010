// The way of an external agent back to its session (`WayBack`): an MCP server over a socket of this process,
// for one program.
//
//   - A program of ours, which the agent starts as an MCP server over standard streams, passes bytes to the
//     socket. Every agent that knows MCP accepts this transport. Agents without MCP call by their own
//     protocol (`call`).
//   way-back-2. The socket listens on loopback. Its first line must be a token, which is good for this program
//       alone. The token is in the environment of the program and in no argument list, and adapters replace
//       it in all that is recorded. It is in no variable of the agent.
//   way-back-3. After `close` nothing listens, and every connection is closed.
//   way-back-4. A line, the calls that wait, the connections and the time without a token have limits.
//       Nothing more is read from a client that does not read its answers. A call with the id of one that
//       still waits is refused: an id stands for one call.

import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { StringDecoder } from "node:string_decoder";
import { clearTimeout, setTimeout } from "node:timers";
import { OutputLines } from "@holdfast/system";

import { fieldsOf, parseFields, textOr, type Fields } from "../fields.ts";
import { readCall, wayBackTools, type SessionCall, type WayBackTool } from "./way-back-tools.ts";

/** way-back-4. */
const LIMITS = { lineChars: 256 * 1024, calls: 32, connections: 16, tokenMs: 10_000 } as const;
const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;

/** The result of a call, for the agent to read. */
export interface CallResult {
  readonly text: string;
  readonly isError: boolean;
}

/** The parts that adapters give to their agents. */
export interface WayBack {
  /** The program of the MCP server. */
  readonly command: string;
  readonly args: readonly string[];
  /** Holds the token (way-back-2). */
  readonly env: Readonly<Record<string, string>>;
  readonly token: string;
  readonly tools: readonly WayBackTool[];
  /**
   * Carries out a call of one of its tools. Never rejects; a call that is cut off with its turn never
   * settles.
   *
   * @param signal The agent does not wait for the result any more.
   */
  call(tool: string, input: unknown, signal?: AbortSignal): Promise<CallResult>;
}

export interface OpenedWayBack extends WayBack {
  /** way-back-3. */
  close(): void;
}

/** It ends with its input, and with the socket. */
const PROGRAM =
  'const s=require("net").connect(Number(process.env.HOLDFAST_WAY_BACK_PORT),"127.0.0.1");' +
  's.write(process.env.HOLDFAST_WAY_BACK_TOKEN+"\\n");process.stdin.pipe(s).pipe(process.stdout);' +
  's.on("error",()=>process.exit(1)).on("close",()=>process.exit(0))';

/**
 * @param carryOut has the session carry out a checked call. May be called for several calls at a time.
 */
export async function openWayBack(
  carryOut: (call: SessionCall, signal?: AbortSignal) => Promise<CallResult>,
  tools: readonly WayBackTool[] = wayBackTools({ startsAgents: false, deletesSessions: false }),
): Promise<OpenedWayBack> {
  const token = randomBytes(32).toString("hex");
  const call: WayBack["call"] = async (tool, input, signal) => {
    const isOffered = tools.some(({ name }) => name === tool);
    const read = isOffered ? readCall(tool, input) : `there is no tool "${tool}"`;
    return typeof read === "string" ? { text: read, isError: true } : carryOut(read, signal);
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => {}); // The agent has gone.
    serve(socket, { token, tools, call });
  });
  server.maxConnections = LIMITS.connections;
  const port = await listen(server);
  server.unref();
  return {
    command: process.execPath,
    args: ["-e", PROGRAM],
    env: { HOLDFAST_WAY_BACK_PORT: String(port), HOLDFAST_WAY_BACK_TOKEN: token },
    token,
    tools,
    call,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return (server.address() as AddressInfo).port;
}

/** way-back-2. The lines after that of the token are messages of MCP. */
function serve(socket: Socket, { token, tools, call }: Pick<WayBack, "token" | "tools" | "call">): void {
  const lines = new OutputLines(LIMITS.lineChars);
  const decoder = new StringDecoder("utf8");
  const waiting = new Map<unknown, AbortController>();
  const tooLate = setTimeout(() => socket.destroy(), LIMITS.tokenMs);
  socket.once("close", () => {
    clearTimeout(tooLate);
    for (const controller of waiting.values()) controller.abort();
  });
  const send = (message: Fields): void => {
    if (socket.destroyed || socket.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)) return;
    socket.pause(); // way-back-4.
  };
  socket.on("drain", () => socket.resume());
  const take = (message: Fields): void => {
    const { id, method, params } = message;
    if (method === "notifications/cancelled") waiting.get(fieldsOf(params)["requestId"])?.abort();
    if (id === undefined) return;
    if (waiting.has(id))
      return send({ id, error: { code: -32_600, message: "a call with this id waits already" } });
    if (waiting.size >= LIMITS.calls)
      return send({ id, error: { code: -32_000, message: `more than ${LIMITS.calls} calls wait` } });
    const controller = new AbortController();
    waiting.set(id, controller);
    const own: WayBack["call"] = (tool, input) => call(tool, input, controller.signal);
    void answerMessage(message, { tools, call: own }).then((answered) => {
      waiting.delete(id);
      if (!controller.signal.aborted) send({ id, ...answered });
    });
  };
  let isKnown = false;
  socket.on("data", (piece: Buffer) => {
    for (const line of lines.push(decoder.write(piece))) {
      if (!isKnown && !isToken(line, token)) return void socket.destroy();
      const message = isKnown ? parseFields(line) : undefined;
      isKnown = true;
      clearTimeout(tooLate);
      if (message !== undefined) take(message);
    }
    if (lines.isTooLong) socket.destroy();
  });
}

function isToken(given: string, token: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(token)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** The answer of our server to a message of MCP. */
export async function answerMessage(
  { method, params }: Fields,
  { tools, call }: Pick<WayBack, "tools" | "call">,
): Promise<Fields> {
  const given = fieldsOf(params);
  switch (method) {
    case "initialize": {
      const asked = given["protocolVersion"];
      const protocolVersion = VERSIONS.find((one) => one === asked) ?? VERSIONS[0];
      const serverInfo = { name: "holdfast", version: "1" };
      return { result: { protocolVersion, capabilities: { tools: {} }, serverInfo } };
    }
    case "ping":
      return { result: {} };
    case "tools/list":
      return { result: { tools } };
    case "tools/call": {
      const { text, isError } = await call(textOr(given["name"], ""), given["arguments"]);
      return { result: { content: [{ type: "text", text }], isError } };
    }
    default:
      return { error: { code: -32_601, message: "this server does not know the method" } };
  }
}
