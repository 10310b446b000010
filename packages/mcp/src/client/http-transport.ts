// `HttpTransport`: the messages of one MCP server at an address, by the streamable HTTP transport of the SDK.
//
//   - A stream that ends before the answer of its request ends the request, too. Otherwise the caller would
//     wait for its time-out. A server of an older version may continue a stream, which the SDK tries first.
//   - Headers of the settings go to the origin of the server alone (server-fetch-2).

import { setTimeout } from "node:timers";
import { defined } from "@holdfast/core";
import {
  isJSONRPCRequest,
  isJSONRPCResponse,
  StreamableHTTPClientTransport,
  type AuthProvider,
  type JSONRPCMessage,
  type RequestId,
  type Transport,
  type TransportSendOptions,
} from "@modelcontextprotocol/client";

import { STREAM_LOST } from "../protocol/call-errors.ts";
import type { ServerTransport } from "./connection.ts";
import { MCP_LIMITS } from "../protocol/limits.ts";
import { withTaskNoted } from "../protocol/server-tasks.ts";
import { serverFetch } from "./server-fetch.ts";

export interface HttpAddress {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The user's own settings name the server. */
  readonly allowsPrivate: boolean;
  /** The token of a person who has signed in. */
  readonly tokens?: AuthProvider | undefined;
}

/** The types of the SDK differ in whether an option may be `undefined`. */
type InnerOptions = Parameters<StreamableHTTPClientTransport["send"]>[1];

export class HttpTransport implements ServerTransport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport["onmessage"]>;
  /** The SDK then ends the stream of a request that is cancelled. */
  readonly hasPerRequestStream = true;
  readonly isProcess = false;
  readonly #inner: StreamableHTTPClientTransport;
  /** Requests of ours without an answer. */
  readonly #open = new Set<RequestId>();
  #isClosed = false;
  #offence: string | undefined;

  constructor({ url, headers, allowsPrivate, tokens }: HttpAddress) {
    this.#inner = new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers },
      fetch: serverFetch({ allowsPrivate, refused: (offence) => (this.#offence ??= offence) }),
      reconnectionOptions: MCP_LIMITS.reconnection,
      ...defined({ authProvider: tokens }),
      onInsufficientScope: "throw",
    });
    Object.assign(this.#inner, {
      onclose: () => this.#end(),
      onerror: (error: Error) => this.onerror?.(error),
      onmessage: (message: JSONRPCMessage) => {
        if (isJSONRPCResponse(message) && message.id !== undefined) this.#open.delete(message.id);
        this.onmessage?.(withTaskNoted(message));
      },
    });
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  async send(message: JSONRPCMessage, options: TransportSendOptions = {}): Promise<void> {
    if (!isJSONRPCRequest(message)) return this.#inner.send(message, options as InnerOptions);
    const { id } = message;
    this.#open.add(id);
    try {
      await this.#inner.send(message, {
        ...(options as InnerOptions),
        onRequestStreamEnd: () => {
          options.onRequestStreamEnd?.();
          this.#loseAnswer(id);
        },
      });
    } catch (error) {
      this.#open.delete(id);
      throw error;
    }
  }

  /** Asks a server with sessions of its own to forget this one. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    await Promise.race([this.#inner.terminateSession().catch(() => {}), soon(MCP_LIMITS.endMs)]);
    await this.#inner.close();
    this.#end();
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  whyClosed(): string | undefined {
    return this.#offence;
  }

  printed(): string {
    return "";
  }

  #loseAnswer(id: RequestId): void {
    if (!this.#open.delete(id)) return;
    const message = this.#offence ?? "its stream ended before the answer";
    this.onmessage?.({ jsonrpc: "2.0", id, error: { code: STREAM_LOST, message } });
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.onclose?.();
  }
}

function soon(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
