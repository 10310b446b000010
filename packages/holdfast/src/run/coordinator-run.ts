// `holdfast coordinator`: opens the storage, listens, and stays until it is stopped.
//
//   - Over the network without TLS it does not begin, unless somebody says that something in front of it has
//     it.
//   - Ctrl-C drains: nothing more is given to runners, what is asked is answered, claims stay where they are.
//   - As a process of the local stack it outlives its supervisor until runners have released what they hold,
//     and by some seconds at most.

import { isIP } from "node:net";
import { resolve as absolute } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createSecureContext } from "node:tls";
import { createCoordinator, createPage, pageProblem } from "@holdfast/coordinator";
import {
  ConflictError,
  defined,
  HoldfastError,
  toError,
  toHoldfastError,
  UsageError,
  type AgentStorage,
} from "@holdfast/core";
import { clockFor, firingName, limitProcessMemory, readCron, systemRandom } from "@holdfast/runtime";
import { KEY_FILE_FIX, readKeyFile } from "@holdfast/system";
import { keepAdminToken } from "@holdfast/place/admin-token";
import { STOP_EXIT, type Arguments, type Io, type StopSignal } from "@holdfast/terminal/frame/command";
import { PORT, URL_DEFAULT } from "@holdfast/place/coordinator-access";
import {
  readCoordinatorFile,
  readPem,
  type CoordinatorFile,
} from "@holdfast/place/settings/coordinator-config";
import { databaseFile, openCoordinatorStorage } from "@holdfast/place/coordinator-storage";
import { findFleetMode } from "@holdfast/place/mode";
import { withLogTimes } from "./log-times.ts";
import { pageWorkspaces } from "./page-workspaces.ts";
import { stopper } from "./typing/stopper.ts";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { supervisorLink, type SupervisorLink } from "../stack/process/supervisor-link.ts";

const ANY_ADDRESS: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);
const MESSAGE_CHARS = 500;
/** Longer than a runner takes to end what it was doing. */
const RELEASE_MS = 12_000;
const RELEASE_STEP_MS = 50;

/** @returns the exit code. */
export async function runCoordinator(args: Arguments, ofCommand: Io): Promise<number> {
  const io = withLogTimes(ofCommand, args.has("log-times"));
  limitProcessMemory(); // Without it a flood of 20,000 requests left 180 MiB of empty heap.
  const supervised = supervisorLink(args);
  const stop = awaitStop(io);
  try {
    return await serve(args, io, stop.signal, supervised);
  } catch (error) {
    supervised?.failed(error);
    throw error;
  } finally {
    stop.release();
  }
}

/** @param stopped is awaited once everything stands; a stop that came before is not lost. */
async function serve(
  args: Arguments,
  io: Io,
  stopped: Promise<StopSignal>,
  supervised: SupervisorLink | undefined,
): Promise<number> {
  const configured = args.text("config");
  const file = configured === undefined ? {} : readCoordinatorFile(configured);
  const where = whereOf(args, file);
  const wanted = args.text("storage") ?? file.storage;
  if (findFleetMode(args, io) === "cloud" && wanted === undefined)
    throw new UsageError("no storage is named, and in mode cloud there is none by default", {
      expected: "--storage postgres://USER@HOST/DATABASE, or storage in the configuration",
      fix: "name the storage of the fleet",
    });
  const { storage, name, folder } = await openCoordinatorStorage(wanted, io).catch((error: unknown) => {
    throw explained(error);
  });
  try {
    const environmentKeys = environmentKeysOf(args, io, file, wanted);
    const coordinator = createCoordinator({
      storage,
      clock: clockFor(storage),
      random: systemRandom(),
      schedules: { readCron, firingName },
      config: file,
      environmentKeys,
      page: createPage({
        place: name,
        isLocal: false,
        monotonic: () => performance.now(),
        // In the local stack this process is started in the folder of the project.
        ...(supervised === undefined
          ? {
              workspace: (sessionId) => coordinator.work(sessionId),
              merge: (sessionId, asked) => coordinator.mergeWork(sessionId, asked),
            }
          : pageWorkspaces(storage, io)),
      }),
      log: (message, error) => warn(io, message, error),
    });
    try {
      const { host, port } = await coordinator.listen(where);
      // Not before: one that cannot listen leaves the token of the one that does.
      const admin = await keepAdminToken(coordinator, folder);
      const scheme = where.tls === undefined ? "http" : "https";
      const url = `${scheme}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
      // Nobody is called by the address of all; a certificate is for a name.
      const named = where.tls === undefined ? undefined : file.hosts?.[0];
      const callUrl = ANY_ADDRESS.has(host) ? `${scheme}://${named ?? `localhost:${port}`}` : url;
      reportStart(io, { url, callUrl, storage: name, adminTokenFile: admin.path, isNew: admin.isNew });
      supervised?.report({ type: "listening", url: callUrl, storage: name, adminTokenFile: admin.path });
      const end = await Promise.race([
        stopped,
        ...(storage.lost === undefined ? [] : [storage.lost]),
        ...(supervised === undefined ? [] : [supervised.gone.then(() => untilReleased(storage))]),
      ]);
      if (typeof end !== "string") throw end; // Runners wait for one that can store what they send.
      return STOP_EXIT[end];
    } finally {
      await coordinator.close(); // Nothing more is given to runners, and claims stay where they are.
    }
  } finally {
    await storage.close();
  }
}

/** The texts of the keys of environments. @throws HoldfastError `config_invalid` */
function environmentKeysOf(
  args: Arguments,
  io: Io,
  file: CoordinatorFile,
  storage: string | undefined,
): readonly string[] {
  const given = args.texts("environment-key").map((path) => absolute(io.cwd, path));
  const database = databaseFile(storage, io);
  return (given.length > 0 ? given : (file.environmentKeys ?? [])).map((path) => {
    try {
      return readKeyFile(path, database, "the database");
    } catch (cause) {
      throw new HoldfastError(
        "config_invalid",
        `the key of environments cannot be used: ${toError(cause).message}`,
        {
          at: path,
          expected: "a private file with at least 32 characters",
          fix: KEY_FILE_FIX,
          cause,
        },
      );
    }
  });
}

/**
 * The runner ends with the same supervisor, and releases its sessions here first.
 *
 * @returns the process signal that the end of the supervisor counts as.
 */
async function untilReleased(storage: AgentStorage): Promise<StopSignal> {
  for (const deadline = performance.now() + RELEASE_MS; performance.now() < deadline;) {
    if ((await storage.heldClaims({ now: Date.now(), limit: 1 })).length === 0) break;
    await delay(RELEASE_STEP_MS);
  }
  return "SIGTERM";
}

/** The advice for a locked database, in the words for a coordinator instead of those for agents. */
function explained(error: unknown): unknown {
  if (!HoldfastError.is(error) || error.code !== "locked") return error;
  const { message, at, got } = error;
  return new ConflictError("locked", message, {
    ...defined({ at, got }),
    expected: "one coordinator on a SQLite file",
    fix: "use the coordinator that runs, stop it first, or give this one its own file; only PostgreSQL can be shared",
    cause: error,
  });
}

interface Where {
  readonly host: string;
  readonly port: number;
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** @throws HoldfastError `config_invalid` */
function whereOf(args: Arguments, file: CoordinatorFile): Where {
  const host = args.text("host") ?? file.host ?? "127.0.0.1";
  const port = portOf(args.text("port")) ?? file.port ?? PORT;
  const tls =
    file.tls === undefined
      ? undefined
      : { cert: readPem(file.tls.cert, "the certificate"), key: readPem(file.tls.key, "the private key") };
  if (tls !== undefined) checkPair(tls);
  const isInsecure = args.has("insecure") || file.insecure === true;
  if (tls === undefined && !isLoopback(host) && !isInsecure) {
    throw new HoldfastError(
      "config_invalid",
      `tokens would be sent over the network unencrypted: ${host} is reachable from other machines`,
      {
        at: "host",
        got: `${host} without TLS`,
        expected: "127.0.0.1 or ::1, or tls in the configuration",
        fix: "configure tls, or give --insecure if a proxy in front of the coordinator provides TLS",
      },
    );
  }
  return { host, port, ...defined({ tls }) };
}

/** @throws HoldfastError `config_invalid` */
function checkPair(tls: { readonly cert: string; readonly key: string }): void {
  try {
    createSecureContext(tls);
  } catch (cause) {
    throw new HoldfastError("config_invalid", "the certificate and its private key cannot be used", {
      at: "tls",
      got: toError(cause).message,
      expected: "a certificate in PEM and its private key",
      fix: "correct the files",
      cause,
    });
  }
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new UsageError(`"${text}" is no port`, {
    at: "--port",
    expected: "a number from 0 to 65535; 0 for any that is free",
  });
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

interface Started {
  readonly url: string;
  /** By which it is called from here. */
  readonly callUrl: string;
  readonly storage: string;
  readonly adminTokenFile: string;
  readonly isNew: boolean;
}

function reportStart(io: Io, { url, callUrl, storage, adminTokenFile, isNew }: Started): void {
  if (io.isJson) return io.result({ type: "listening", url, storage, adminTokenFile }, "");
  io.note(
    `${io.notes.symbols.begin} the coordinator listens on ${io.notes.paint.bold(url)}, over ${storage}`,
  );
  io.note(
    isNew ? `a new admin's token is in ${adminTokenFile}` : `the admin's token is in ${adminTokenFile}`,
  );
  const where = callUrl === URL_DEFAULT ? "" : ` --url ${callUrl}`;
  io.note(`its page for the browser is ${callUrl}/ui/`);
  const problem = pageProblem();
  if (problem !== undefined) io.note(io.notes.paint.yellow(problem));
  io.note(`a user's token: ${io.call(`token create NAME${where}`)}. Ctrl-C stops`);
}

function warn(io: Io, message: string, thrown: unknown): void {
  const error = thrown === undefined ? undefined : toHoldfastError(thrown);
  const why = error === undefined ? message : `${message}: ${error.message}`;
  const line = plainLine(why, MESSAGE_CHARS);
  if (io.isJson) io.result({ type: "warning", message: line, ...(error && { code: error.code }) }, "");
  else io.note(io.notes.paint.yellow(`${io.notes.symbols.warn} ${line}`));
}

function awaitStop(io: Io): { readonly signal: Promise<StopSignal>; readonly release: () => void } {
  const { promise, resolve } = Promise.withResolvers<StopSignal>();
  const release = io.onStop(stopper(io, "open requests are answered first; sessions stay", resolve));
  return { signal: promise, release };
}
