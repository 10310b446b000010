// `HealthService`: whether the coordinator and its storage can answer and write, and its version and time.

import type { ServiceImpl } from "@connectrpc/connect";
import { HoldfastError, VERSION } from "@holdfast/core";
import type { HealthService as Contract } from "@holdfast/proto";
import { Refusal } from "../call/refusal.ts";
import type { WriteHealth } from "../store/write-health.ts";
import type { ServiceHost } from "./service-host.ts";

export class HealthService implements ServiceImpl<typeof Contract> {
  readonly #host: Pick<ServiceHost, "storage" | "clock">;
  readonly #writes: WriteHealth;

  constructor(host: Pick<ServiceHost, "storage" | "clock">, writes: WriteHealth) {
    this.#host = host;
    this.#writes = writes;
  }

  async get() {
    let problem: HoldfastError | undefined;
    try {
      await this.#host.storage.reader.document("health", "none");
      problem = await this.#writes.problem();
    } catch (cause) {
      problem = new HoldfastError("storage_unavailable", "storage does not answer", { cause });
    }
    // A `Refusal`, because its reason is public and the log need not repeat it.
    if (problem !== undefined) throw new Refusal(problem.code, problem.message);
    return { status: "ok" };
  }

  getVersion() {
    return { version: VERSION, now: BigInt(this.#host.clock.now()) };
  }
}
