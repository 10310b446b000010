// A coordinator and runners in this process, over real HTTP on this machine.

import { type AgentStorage, defined } from "@holdfast/core";
import { createCoordinator, type Coordinator, type CoordinatorConfig } from "@holdfast/coordinator";
import { clockFor, MemoryStorage, systemRandom } from "@holdfast/runtime";
import { startRunner, type Runner, type RunnerEvent, type RunnerOptions } from "@holdfast/runner";
import { openRemoteStorage } from "@holdfast/storage/remote";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { join } from "node:path";

export interface Fleet {
  readonly url: string;
  readonly storage: AgentStorage;
  /** As an admin sees it. */
  readonly remote: AgentStorage;
  readonly adminToken: string;
  token(kind: "admin" | "user" | "registration", name: string, owner?: string): Promise<string>;
  runner(options: Partial<RunnerOptions> & { readonly owner?: string }): Promise<FleetRunner>;
  /** Errors that no request received. */
  readonly log: readonly string[];
  /** The coordinator ends, and another one begins on the same storage and port, so long after that. */
  restart(awayMs?: number): Promise<void>;
  close(): Promise<void>;
}

export interface FleetRunner extends Runner {
  readonly events: readonly RunnerEvent[];
}

const NO_SCHEDULES = {
  readCron: () => ({ after: (moment: number) => moment + 1_000 }),
  firingName: (scheduleId: string, dueAt: number) => `${scheduleId}-${dueAt}`,
};

export async function openFleet(
  options: { readonly storage?: AgentStorage; readonly config?: CoordinatorConfig } = {},
): Promise<Fleet> {
  const { storage = new MemoryStorage(), config = {} } = options;
  const log: string[] = [];
  const runners: FleetRunner[] = [];
  const make = (): Coordinator =>
    createCoordinator({
      storage,
      config,
      clock: clockFor(storage),
      random: systemRandom(),
      schedules: NO_SCHEDULES,
      log: (message, error) => void log.push(`${message}: ${String(error)}`),
    });
  let coordinator = make();
  const { port } = await coordinator.listen({ host: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${port}`;
  const adminToken = await coordinator.createToken({ kind: "admin", name: "root" });
  const remote = openRemoteStorage({ url, token: adminToken });
  const token: Fleet["token"] = (kind, name, owner) =>
    coordinator.createToken({ kind, name, ...defined({ owner }) });
  return {
    url,
    storage,
    remote,
    adminToken,
    log,
    token,
    async runner({ owner, ...given }) {
      const events: RunnerEvent[] = [];
      const runner = await startRunner({
        url,
        token: await token("registration", "runner", owner),
        stateFolder: mkdtempSync(join(tmpdir(), "holdfast-runner-")),
        workspace: "/project",
        log: (event) => void events.push(event),
        graceMs: 1_000,
        ...given,
      });
      const watched = Object.assign(runner, { events });
      runners.push(watched);
      return watched;
    },
    async restart(awayMs = 0) {
      await coordinator.close();
      await delay(awayMs);
      coordinator = make();
      await coordinator.listen({ host: "127.0.0.1", port });
    },
    async close() {
      await Promise.all(runners.map((runner) => runner.stop()));
      await remote.close();
      await coordinator.close();
      await storage.close();
    },
  };
}
