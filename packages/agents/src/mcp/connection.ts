// `McpConnection`: one client of the SDK, connected to one MCP server. It knows nothing of sessions.
//
//   connection-1. Every wait has a limit, and a server that reaches it is ended: a silent server is no server for the next call either.
//   connection-2. An error names the server, says what the server did, and has the text that its process printed.
//   connection-3. `CallLostError` means that the call was sent and no answer came, so nobody knows whether it took effect.
//   connection-4. The checks of a server's JSON Schemas are left to the server: a pattern in them could stop our process.

import { toError } from "@holdfast/core";
import {
  Client,
  SdkError,
  SdkErrorCode,
  type CallToolResult,
  type JsonSchemaValidator,
  type Tool,
  type Transport,
} from "@modelcontextprotocol/client";

import { MCP_LIMITS } from "./limits.ts";

/** A transport that can say why it is closed. */
export interface ServerTransport extends Transport {
  readonly isClosed: boolean;
  whyClosed(): string | undefined;
  printed(): string;
}

/** A call was sent and its answer was lost (connection-3). */
export class CallLostError extends Error {
  override name = "McpCallLostError";
}

/** A server that cannot be reached, or does not speak MCP. */
export class ServerFailedError extends Error {
  override name = "McpServerError";
}

/** A call, and the person or process that wants it. */
export interface ServerCall {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly onProgress: (progress: unknown) => void;
}

export class McpConnection {
  readonly #name: string;
  readonly #client: Client;
  readonly #transport: ServerTransport;
  #hasNewTools = false;

  private constructor(name: string, client: Client, transport: ServerTransport) {
    this.#name = name;
    this.#client = client;
    this.#transport = transport;
    client.setNotificationHandler("notifications/tools/list_changed", () => {
      this.#hasNewTools = true;
    });
  }

  /**
   * Connects by the newest version of MCP that the server speaks.
   *
   * @param open makes a transport that is not started. Some older servers end at a question of the newest version; they are started again.
   * @throws ServerFailedError
   */
  static async open(name: string, open: () => ServerTransport): Promise<McpConnection> {
    const first = await connect(name, open(), "auto");
    if (!(first instanceof ServerFailedError)) return first;
    if (!first.message.includes(ENDED)) throw first;
    const second = await connect(name, open(), "legacy");
    if (second instanceof ServerFailedError) throw second;
    return second;
  }

  /** @internal For `connect`. */
  static of(name: string, client: Client, transport: ServerTransport): McpConnection {
    return new McpConnection(name, client, transport);
  }

  get isClosed(): boolean {
    return this.#transport.isClosed;
  }

  /** The server said that its tools are other ones now. */
  get hasNewTools(): boolean {
    return this.#hasNewTools;
  }

  get instructions(): string {
    return this.#client.getInstructions() ?? "";
  }

  /** @throws ServerFailedError */
  async tools(): Promise<readonly Tool[]> {
    if (this.#client.getServerCapabilities()?.tools === undefined) return [];
    try {
      return (await this.#client.listTools(undefined, { timeout: MCP_LIMITS.startMs })).tools;
    } catch (error) {
      const why = this.#explain(error, "did not list its tools");
      await this.close();
      throw new ServerFailedError(why);
    }
  }

  /** @throws CallLostError, ServerFailedError, or the reason of the signal */
  async call({ tool, args, signal, meta, onProgress }: ServerCall): Promise<CallToolResult> {
    try {
      return await this.#client.callTool(
        { name: tool, arguments: { ...args }, _meta: meta },
        {
          signal,
          timeout: MCP_LIMITS.callMs,
          maxTotalTimeout: MCP_LIMITS.callTotalMs,
          resetTimeoutOnProgress: true,
          onprogress: onProgress,
        },
      );
    } catch (error) {
      signal.throwIfAborted();
      const why = this.#explain(error, `did not answer the call of ${tool}`);
      if (!isLoss(error)) throw new ServerFailedError(why);
      await this.close(); // connection-1.
      throw new CallLostError(why);
    }
  }

  async close(): Promise<void> {
    await this.#client.close().catch(() => {});
    await this.#transport.close().catch(() => {});
  }

  /** connection-2. */
  #explain(error: unknown, what: string): string {
    return explain(this.#name, this.#transport, error, what);
  }
}

const ENDED = "its process ended";

async function connect(
  name: string,
  transport: ServerTransport,
  mode: "auto" | "legacy",
): Promise<McpConnection | ServerFailedError> {
  const client = new Client(
    { name: "holdfast", version: "1" },
    {
      capabilities: {},
      versionNegotiation: { mode, probe: { timeoutMs: MCP_LIMITS.probeMs } },
      listMaxPages: MCP_LIMITS.pages,
      // connection-4.
      jsonSchemaValidator: {
        getValidator:
          <T>(): JsonSchemaValidator<T> =>
          (input: unknown) => ({ valid: true, data: input as T, errorMessage: undefined }),
      },
    },
  );
  try {
    await client.connect(transport, { timeout: MCP_LIMITS.startMs });
    return McpConnection.of(name, client, transport);
  } catch (error) {
    await transport.close().catch(() => {});
    return new ServerFailedError(explain(name, transport, error, "did not answer when it was started"));
  }
}

function explain(name: string, transport: ServerTransport, error: unknown, what: string): string {
  const printed = transport.printed();
  return `the MCP server ${name} ${what}: ${causeOf(transport, error)}${printed === "" ? "" : ` (${printed})`}`;
}

function causeOf(transport: ServerTransport, error: unknown): string {
  const why = transport.whyClosed();
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)
    return "it was silent for too long";
  if (why !== undefined) return `${ENDED}, ${why}`;
  return toError(error).message;
}

function isLoss(error: unknown): boolean {
  if (!(error instanceof SdkError)) return false;
  return [SdkErrorCode.RequestTimeout, SdkErrorCode.ConnectionClosed, SdkErrorCode.SendFailed].includes(
    error.code,
  );
}
