// `McpServers`: the connections of this process to MCP servers, for each session its own.
//
//   - A server belongs to one session, so that no session sees the state or the files of another one.
//   - A connection that was lost, or that no call has used for some time, is opened again by the next call.
//     The same happens in the process that a session was moved to.
//   - A server ends when its session leaves the memory of this process, and with the process. A process that
//     was killed leaves its servers to the next process with the session, which ends them before it starts
//     one.
//   - A program that failed several times in a short time is not started again for some time.

import { createHash } from "node:crypto";
import { clearInterval, setInterval } from "node:timers";
import { MINUTE_MS } from "@holdfast/core";
import { Redactor } from "@holdfast/system";
import { endTagged, ProcessSupervisor } from "@holdfast/system/processes";

import type { McpServer } from "./settings/mcp-server.ts";
import { hostEnvironment } from "@holdfast/workspace";
import { redactedError, ServerFailedError } from "./protocol/call-errors.ts";
import type { McpConnection } from "./client/connection.ts";
import { MCP_LIMITS } from "./protocol/limits.ts";
import type { PlaceholderValues } from "./settings/placeholders.ts";
import type { ServerTokensOptions } from "./sign-in/server-tokens.ts";
import type { SignInStore } from "./sign-in/sign-in-record.ts";

/** A server of a session, with the placeholders as they were written. */
export interface SessionServer {
  readonly sessionId: string;
  readonly name: string;
  readonly server: McpServer;
  /** The absolute path of the workspace. */
  readonly folder: string;
  /** The session's own values of placeholders; none by default. */
  readonly own?: OwnValues;
}

/**
 * Values of a session for the placeholders of one server, by the names of variables. They go before the
 * variables of this process.
 */
export interface OwnValues {
  /** The session has recorded them, so nothing hides them. */
  readonly values: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
}

export interface McpServersOptions {
  /** The values of placeholders that the session has no value for. Must not throw. */
  readonly variable: (name: string, sessionId: string) => string | undefined;
  /** The sign-ins of the user; none by default. */
  readonly signIns?: SignInStore;
  /** A call without any progress may take this long. */
  readonly callMs?: number;
}

/** A connection with the values that must not be shown. */
export interface OpenServer {
  readonly connection: McpConnection;
  readonly redactor: Redactor;
}

interface SessionServers {
  /** Servers of an earlier process have ended. */
  readonly cleaned: Promise<void>;
  /** When a program failed, by its key. */
  readonly failures: Map<string, number[]>;
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
  readonly #callMs: number;
  readonly #signIns: Pick<ServerTokensOptions, "store" | "renewals"> | undefined;
  readonly #supervisor = new ProcessSupervisor({
    environment: hostEnvironment,
    namespaces: "if_available",
  });
  readonly #held = new Map<string, Held>();
  /** The sessions of this process that have used a server, by their tags. */
  readonly #sessions = new Map<string, SessionServers>();
  #sweeping: NodeJS.Timeout | undefined;

  constructor(options: McpServersOptions) {
    this.#variable = options.variable;
    this.#signIns =
      options.signIns === undefined ? undefined : { store: options.signIns, renewals: new Map() };
    this.#callMs = options.callMs ?? MCP_LIMITS.callMs;
  }

  /**
   * Uses the connection of a session to a server, and opens it when there is none.
   *
   * @throws errors of `call-errors.ts`, HoldfastError `config_invalid` for a placeholder without a value, and
   *   the errors of `use`.
   */
  async with<T>(wanted: SessionServer, use: (open: OpenServer) => Promise<T>): Promise<T> {
    const held = this.#hold(wanted);
    held.calls++;
    try {
      return await use(await held.opening);
    } catch (error) {
      throw redactedError(error, held.redactor);
    } finally {
      held.calls--;
      held.usedAt = performance.now();
    }
  }

  async leave(sessionId: string, { isWaiting }: { readonly isWaiting: boolean }): Promise<void> {
    const isOwn = (tag: string): boolean => tag.startsWith(`${tagOfAny(sessionId)}/`);
    if (!isWaiting) for (const tag of [...this.#sessions.keys()].filter(isOwn)) this.#sessions.delete(tag);
    const own = [...this.#held].filter(
      ([key, held]) => isOwn(key) && !(isWaiting && held.connection?.hasOpenCalls === true),
    );
    await Promise.all(own.map(([key, held]) => this.#close(key, held)));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#held].map(([key, held]) => this.#close(key, held)));
    await this.#supervisor.close("the process ends");
  }

  #hold(wanted: SessionServer): Held {
    const key = keyOf(wanted);
    const known = this.#held.get(key);
    if (known !== undefined && known.connection?.isClosed !== true) return known;
    const session = this.#sessionOf(wanted);
    if (known !== undefined) noteFailure(session, key);
    const redactor = new Redactor();
    const held: Held = {
      redactor,
      connection: undefined,
      opening: this.#open(wanted, key, redactor, session),
      usedAt: performance.now(),
      calls: 0,
    };
    this.#held.set(key, held);
    held.opening.then(
      ({ connection }) => (held.connection = connection),
      () => {
        noteFailure(session, key);
        this.#forget(key, held);
      },
    );
    this.#sweeping ??= setInterval(() => this.#sweep(), MCP_LIMITS.idleMs / 10).unref();
    return held;
  }

  async #open(
    { sessionId, name, server, folder, own = { values: {}, secrets: {} } }: SessionServer,
    key: string,
    redactor: Redactor,
    session: SessionServers,
  ): Promise<OpenServer> {
    const ownValues = new Map(Object.entries({ ...own.values, ...own.secrets }));
    const values: PlaceholderValues = {
      variable: (variable) => ownValues.get(variable) ?? this.#variable(variable, sessionId),
      sessionId,
      folder,
    };
    const { connectServer } = await import("./client/connect-server.ts");
    const connect = connectServer({
      name,
      server,
      values,
      shown: new Set(Object.keys(own.values)),
      redactor,
      key,
      supervisor: this.#supervisor,
      signIns: this.#signIns,
    });
    if (server.type === "stdio") refuseFailing(name, session, key);
    await session.cleaned;
    return { connection: await connect(this.#callMs), redactor };
  }

  #sessionOf(wanted: SessionServer): SessionServers {
    const tag = tagOf(wanted);
    const known = this.#sessions.get(tag);
    if (known !== undefined) return known;
    const cleaned = endTagged(tag).then(() => {});
    const session: SessionServers = { cleaned, failures: new Map() };
    this.#sessions.set(tag, session);
    return session;
  }

  #sweep(): void {
    const before = performance.now() - MCP_LIMITS.idleMs;
    for (const [key, held] of this.#held)
      if (held.calls === 0 && held.usedAt < before && held.connection?.hasOpenCalls !== true)
        void this.#close(key, held);
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

function noteFailure({ failures }: SessionServers, key: string): void {
  failures.set(key, [...(failures.get(key) ?? []), performance.now()].slice(-MCP_LIMITS.failures));
}

/** @throws ServerFailedError */
function refuseFailing(name: string, { failures }: SessionServers, key: string): void {
  const times = failures.get(key) ?? [];
  const [first = -Infinity] = times;
  const leftMs = first + MCP_LIMITS.failuresMs - performance.now();
  if (times.length < MCP_LIMITS.failures || leftMs <= 0) return;
  throw new ServerFailedError(
    `the MCP server ${name} failed ${times.length} times and is not started again for ${Math.ceil(leftMs / MINUTE_MS)} minutes`,
  );
}

/** Also the tag of the process tree. It has the definition, so that a changed one is a server of its own. */
function keyOf(wanted: SessionServer): string {
  return `${tagOf(wanted)}/${wanted.name}/${hashOf(JSON.stringify(wanted.server))}`;
}

/** The tag of all servers of a session. Two projects of a machine may have a session of one id. */
function tagOf({ sessionId, folder }: SessionServer): string {
  return `${tagOfAny(sessionId)}/${hashOf(folder)}`;
}

function tagOfAny(sessionId: string): string {
  return `mcp/${sessionId}`;
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
