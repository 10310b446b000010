// `McpServers`: the connections of this process to MCP servers, for each session its own.
//
//   mcp-servers-1. A server belongs to one session, so that no session sees the state or the files of another one.
//   mcp-servers-2. A connection that was lost, or that no call has used for some time, is opened again by the next call.
//       The same happens in the process that a session was moved to.
//   mcp-servers-3. A server ends when no call has used it for a minute, and with this process. A process that was killed leaves its
//       server to the next start of the same server, which ends what it finds.

import { createHash } from "node:crypto";
import { HoldfastError } from "@holdfast/core";
import { endTagged, ProcessSupervisor, Redactor, scrubEnvironment } from "@holdfast/runtime/internal";

import type { McpServer } from "../agent-files/agent-record.ts";
import { hostEnvironment } from "../workspace/host-environment.ts";
import { CallLostError, McpConnection, ServerFailedError, type ServerTransport } from "./connection.ts";
import { MCP_LIMITS } from "./limits.ts";
import { fillPlaceholders, type PlaceholderValues } from "./placeholders.ts";
import { StdioTransport } from "./stdio-transport.ts";

/** A server of a session, with the placeholders as they were written. */
export interface SessionServer {
  readonly sessionId: string;
  readonly name: string;
  readonly server: McpServer;
  /** The absolute path of the workspace. */
  readonly folder: string;
}

export interface McpServersOptions {
  /** The values of placeholders. Must not throw. */
  readonly variable: (name: string, sessionId: string) => string | undefined;
}

/** A connection with the values that must not be shown. */
export interface OpenServer {
  readonly connection: McpConnection;
  readonly redactor: Redactor;
}

interface Held {
  readonly opening: Promise<OpenServer>;
  readonly redactor: Redactor;
  connection: McpConnection | undefined;
  usedAt: number;
  calls: number;
}

export class McpServers {
  readonly #variable: McpServersOptions["variable"];
  readonly #supervisor = new ProcessSupervisor({
    environment: hostEnvironment,
    namespaces: "if_available",
  });
  readonly #held = new Map<string, Held>();
  #sweeping: NodeJS.Timeout | undefined;

  constructor(options: McpServersOptions) {
    this.#variable = options.variable;
  }

  /**
   * Uses the connection of a session to a server, and opens it when there is none.
   *
   * @throws ServerFailedError, HoldfastError `config_invalid` for a placeholder without a value, and the errors of `use`.
   */
  async with<T>(wanted: SessionServer, use: (open: OpenServer) => Promise<T>): Promise<T> {
    const held = this.#hold(wanted);
    held.calls++;
    try {
      return await use(await held.opening);
    } catch (error) {
      // The output of a process may have the values that it was given.
      if (error instanceof CallLostError) throw new CallLostError(held.redactor.text(error.message));
      if (error instanceof ServerFailedError) throw new ServerFailedError(held.redactor.text(error.message));
      throw error;
    } finally {
      held.calls--;
      held.usedAt = performance.now();
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#held].map(([key, held]) => this.#close(key, held)));
    await this.#supervisor.close("the process ends");
  }

  #hold(wanted: SessionServer): Held {
    const key = keyOf(wanted);
    const known = this.#held.get(key);
    if (known !== undefined && known.connection?.isClosed !== true) return known; // mcp-servers-2.
    const redactor = new Redactor();
    const held: Held = {
      redactor,
      connection: undefined,
      opening: this.#open(wanted, key, redactor),
      usedAt: performance.now(),
      calls: 0,
    };
    this.#held.set(key, held);
    held.opening.then(
      ({ connection }) => (held.connection = connection),
      () => this.#forget(key, held),
    );
    this.#sweeping ??= setInterval(() => this.#sweep(), MCP_LIMITS.idleMs / 10).unref();
    return held;
  }

  async #open(
    { sessionId, name, server, folder }: SessionServer,
    key: string,
    redactor: Redactor,
  ): Promise<OpenServer> {
    const values: PlaceholderValues = {
      variable: (variable) => this.#variable(variable, sessionId),
      sessionId,
      folder,
    };
    const open = openerOf({ name, server, values, redactor, key, supervisor: this.#supervisor });
    await endTagged(key); // mcp-servers-3.
    return { connection: await McpConnection.open(name, open), redactor };
  }

  #sweep(): void {
    const before = performance.now() - MCP_LIMITS.idleMs;
    for (const [key, held] of this.#held)
      if (held.calls === 0 && held.usedAt < before) void this.#close(key, held);
  }

  async #close(key: string, held: Held): Promise<void> {
    this.#forget(key, held);
    await held.opening.then(
      ({ connection }) => connection.close(),
      () => {},
    );
  }

  #forget(key: string, held: Held): void {
    if (this.#held.get(key) === held) this.#held.delete(key);
    if (this.#held.size > 0) return;
    clearInterval(this.#sweeping);
    this.#sweeping = undefined;
  }
}

interface Opener {
  readonly name: string;
  readonly server: McpServer;
  readonly values: PlaceholderValues;
  readonly redactor: Redactor;
  readonly key: string;
  readonly supervisor: ProcessSupervisor;
}

/** @throws HoldfastError `config_invalid` */
function openerOf({ name, server, values, redactor, key, supervisor }: Opener): () => ServerTransport {
  const at = `the MCP server ${name}`;
  const fill = (text: string): string => {
    const filled = fillPlaceholders(text, values, at);
    if (filled !== text) redactor.add(filled);
    return filled;
  };
  if (server.type === "http")
    throw new HoldfastError("config_invalid", `${at}: servers at an address are not supported yet`);
  const env = Object.fromEntries(
    Object.entries(server.env).map(([variable, value]) => [variable, fill(value)]),
  );
  const program = {
    argv: [fill(server.command), ...server.args.map(fill)] as const,
    env: scrubEnvironment(hostEnvironment, env),
    cwd: values.folder,
    tag: key,
  };
  return () => new StdioTransport(supervisor, program);
}

/** Also the tag of the process tree. It has the definition, so that a changed one is a server of its own. */
function keyOf({ sessionId, name, server, folder }: SessionServer): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([server, folder]))
    .digest("hex")
    .slice(0, 16);
  return `mcp/${sessionId}/${name}/${hash}`;
}
