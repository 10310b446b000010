// `World`: a fleet of real processes on a real PostgreSQL server, each member in its own network namespace
// where possible.
//
//   - A member that has ended is started again, as a service manager would, unless it is held down.
//   - `close` removes everything: processes, namespaces, the server. The next world removes the leftovers of
//     a killed one.

import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startServer, type PostgresServer, type ReplicatedServer } from "@holdfast/storage/postgres-testing";
import { watchDatabase } from "./database-watch.ts";
import { endProcess, openNetwork, removeOwnNetwork, sweepNetworks, type Network } from "./network.ts";
import { EFFECTS_FOLDER, monotonicMs, RUNNER_NAME } from "./observed.ts";
import { Member, sightings, sweepProcesses } from "./processes.ts";

const FAKETIME = ["x86_64-linux-gnu", "aarch64-linux-gnu"]
  .map((machine) => `/usr/lib/${machine}/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));
const LOOK_EVERY_MS = 250;
/** The maximum wait for a ready coordinator and runner; after it the faults continue anyway. */
const STAFFED_MS = 30_000;
/** The prefix of the folders that `startServer` makes. */
const SERVER_FOLDER = "holdfast-postgres-";
const COORDINATOR_PORT = 8765;
/** The installed `holdfast` command. */
const LAUNCHER = fileURLToPath(new URL("../../../../node_modules/.bin/holdfast", import.meta.url));
const AGENTS = fileURLToPath(new URL("agents.ts", import.meta.url));
const TASKS = fileURLToPath(new URL("tasks.ts", import.meta.url));

export interface WorldOptions {
  /** For everything that is kept. */
  readonly folder: string;
  readonly leaseMs: number;
  readonly coordinators: number;
  readonly runners: number;
  /** Namespaces, where they can be had. */
  readonly isSeparate: boolean;
  /** A database that is there already; a server of its own when absent. */
  readonly databaseUrl?: string;
  /** The server behind `databaseUrl`, when it has a standby. It listens on this machine's own address. */
  readonly replicated?: ReplicatedServer;
}

export class World {
  readonly options: WorldOptions;
  readonly network: Network;
  /** Absent when the database is not ours. */
  readonly server: PostgresServer | undefined;
  readonly databaseUrl: string;
  readonly coordinators: Member[] = [];
  readonly runners: Member[] = [];
  readonly urls: string[] = [];
  readonly held = new Set<Member>();
  adminToken = "";
  #isClosed = false;
  #watching: Promise<void> | undefined;

  static async open(options: WorldOptions): Promise<World> {
    sweepNetworks();
    sweepProcesses();
    mkdirSync(join(options.folder, "effects"), { recursive: true });
    chmodSync(options.folder, 0o755); // The server is another user.
    const names = [...numbered("c", options.coordinators), ...numbered("r", options.runners)];
    const network = openNetwork(names, options.isSeparate);
    try {
      const { host, subnet } = network;
      const server =
        options.databaseUrl === undefined
          ? await startServer({ fsync: true, listen: { host, network: subnet }, parent: options.folder })
          : undefined;
      const world = new World(options, network, server);
      await world.#begin();
      return world;
    } catch (error) {
      sweepProcesses();
      network.close();
      throw error;
    }
  }

  private constructor(options: WorldOptions, network: Network, server: PostgresServer | undefined) {
    this.options = options;
    this.network = network;
    this.server = server;
    this.databaseUrl = options.databaseUrl ?? server!.url;
  }

  /** Why clocks cannot be set here. */
  get withoutClocks(): string | undefined {
    return FAKETIME === undefined ? "there is no libfaketime (package faketime)" : undefined;
  }

  async #begin(): Promise<void> {
    const { coordinators, runners } = this.options;
    for (const name of numbered("c", coordinators)) {
      this.coordinators.push(await this.#addCoordinator(name));
      await this.coordinators.at(-1)!.ready();
      // The first makes the tables; nothing is claimed before.
      if (this.coordinators.length === 1) await watchDatabase(this.databaseUrl);
    }
    this.adminToken = readFileSync(join(this.#folderOf("c1"), "holdfast", "admin-token"), "utf8").trim();
    for (const [i, name] of numbered("r", runners).entries())
      this.runners.push(await this.#addRunner(name, i));
    await Promise.all(this.runners.map((runner) => runner.ready()));
    this.#watching = this.#watch();
  }

  async #addCoordinator(name: string): Promise<Member> {
    const { network, options } = this;
    const host = network.address(name);
    const port = network.without === undefined ? COORDINATOR_PORT : await freePort();
    const folder = this.#folderOf(name);
    const config = join(folder, "coordinator.json");
    writeFileSync(
      config,
      JSON.stringify({ leaseMs: options.leaseMs, renewMs: Math.floor(options.leaseMs / 4) }),
    );
    this.urls.push(`http://${host}:${port}`);
    const where = ["--host", host, "--port", String(port), "--insecure"];
    const args = ["coordinator", "--config", config, "--storage", this.databaseUrl, ...where];
    return this.#start(name, args, "the coordinator listens", {});
  }

  async #addRunner(name: string, index: number): Promise<Member> {
    const url = this.urls[index % this.urls.length]!;
    // One does nothing but tasks of others, and one does both.
    const isTasker = index >= 2 && index === this.options.runners - 1;
    const files = [
      ...(isTasker ? [] : ["--agents", AGENTS]),
      ...(index >= this.options.runners - 2 ? ["--tasks", TASKS] : []),
    ];
    const args = ["runner", "-c", url, "-p", this.#folderOf(name), "--name", name, "--insecure", ...files];
    return this.#start(name, args, "waiting for runs", {
      HOLDFAST_TOKEN: await this.#registrationToken(name),
      [EFFECTS_FOLDER]: this.effectsFolder,
      [RUNNER_NAME]: name,
    });
  }

  async #registrationToken(name: string): Promise<string> {
    const response = await fetch(`${this.urls[0]}/v1/tokens`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.adminToken}`, "content-type": "application/json" },
      body: JSON.stringify({ kind: "registration", name }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`no registration token: ${text}`);
    return (JSON.parse(text) as { readonly secret: string }).secret;
  }

  #start(
    name: string,
    args: readonly string[],
    ready: string,
    more: Readonly<Record<string, string>>,
  ): Member {
    const folder = this.#folderOf(name);
    const member = new Member({
      name,
      command: this.network.command(name, [process.execPath, LAUNCHER, ...args]),
      cwd: folder,
      env: { HOME: folder, XDG_DATA_HOME: folder, ...more, ...this.#clockEnv(name) },
      output: this.outputOf(name),
      ready,
    });
    member.start();
    return member;
  }

  #clockEnv(name: string): Readonly<Record<string, string>> {
    if (FAKETIME === undefined || !this.options.isSeparate) return {};
    this.setClock(name, 0);
    return {
      LD_PRELOAD: FAKETIME,
      FAKETIME_TIMESTAMP_FILE: this.#clockFile(name),
      FAKETIME_CACHE_DURATION: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      DONT_FAKE_MONOTONIC: "1",
      FAKETIME_DISABLE_SHM: "1",
      NO_FAKE_STAT: "1",
    };
  }

  /** Set the offset of a member's wall clock, which takes effect within a second. */
  setClock(name: string, offsetMs: number): void {
    const seconds = offsetMs / 1_000;
    writeFileSync(this.#clockFile(name), `${seconds < 0 ? "" : "+"}${seconds}\n`);
  }

  #clockFile(name: string): string {
    return join(this.#folderOf(name), "clock");
  }

  #folderOf(name: string): string {
    const folder = join(this.options.folder, name);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  outputOf(name: string): string {
    return join(this.options.folder, `${name}.log`);
  }

  get effectsFolder(): string {
    return join(this.options.folder, "effects");
  }

  /** Wait until a coordinator and a runner are ready, at most `STAFFED_MS`, as a fault may prevent them. */
  async untilStaffed(): Promise<void> {
    const until = monotonicMs() + STAFFED_MS;
    const isShort = (): boolean =>
      ![this.coordinators, this.runners].every((all) => all.some(({ isReady }) => isReady));
    while (isShort() && monotonicMs() < until) await sleep(LOOK_EVERY_MS);
  }

  get members(): readonly Member[] {
    return [...this.coordinators, ...this.runners];
  }

  /**
   * The ids that the coordinators know, by the names of runners. A runner's process for trials is named by
   * its pid as well.
   */
  runnerIds(): Readonly<Record<string, string>> {
    const registered = /^(?:\[trial (\d+)\] )?Registered as (rnr_[0-9a-f-]+)/gm;
    return Object.fromEntries(
      this.runners.flatMap(({ name }) =>
        [...readFileSync(this.outputOf(name), "utf8").matchAll(registered)].map(([, trial, id]) => [
          trial === undefined ? name : `${name} ${trial}`,
          id!,
        ]),
      ),
    );
  }

  async #watch(): Promise<void> {
    while (!this.#isClosed) {
      for (const member of this.members) {
        if (member.isRunning || this.held.has(member)) continue;
        this.endStarted(member);
        member.start();
      }
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** End the processes that a runner's tasks have started, which a crash of its machine would end too. */
  endStarted({ name }: Member, of: (runnerPid: number) => boolean = () => true): void {
    for (const { pid, runner, runnerPid } of sightings())
      if (runner === name && of(runnerPid)) endProcess(pid);
  }

  /** Undo all faults: every member runs, the network has no cuts, and the clocks are correct. */
  async heal(): Promise<void> {
    for (const member of this.members) {
      this.network.heal(member.name);
      this.held.delete(member);
      member.signal("SIGCONT");
      if (FAKETIME !== undefined && this.options.isSeparate) this.setClock(member.name, 0);
    }
    while (this.members.some((member) => !member.isRunning)) await sleep(LOOK_EVERY_MS);
    await Promise.all(this.members.map((member) => member.ready().catch(() => {})));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#watching;
    for (const member of this.members) member.signal("SIGKILL");
    await Promise.all(this.members.map((member) => member.ended()));
    sweepProcesses();
    this.network.close();
    await this.server?.stop();
  }
}

/** Clean up when the harness ends and cannot await anything. The server notices its end; nobody needs its files. */
export function closeNow(folder: string): void {
  sweepProcesses();
  removeOwnNetwork();
  for (const name of readdirSync(folder))
    if (name.startsWith(SERVER_FOLDER))
      rmSync(join(folder, name), { recursive: true, force: true, maxRetries: 3 });
}

function numbered(letter: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `${letter}${i + 1}`);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
