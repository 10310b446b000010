// `healthService`: whether the coordinator and its storage can answer and write, and its version and time.

import type { ServiceImpl } from "@connectrpc/connect";
import { HoldfastError } from "@holdfast/core";
import { VERSION } from "@holdfast/core/internal";
import type { HealthService } from "@holdfast/proto";
import { Refusal } from "../call/refusal.ts";
import type { WriteHealth } from "../store/write-health.ts";
import { type ServiceHost } from "./service-host.ts";

export function healthService(
  { storage, clock }: ServiceHost,
  writes: WriteHealth,
): ServiceImpl<typeof HealthService> {
  return {
    async get() {
      let problem: HoldfastError | undefined;
      try {
        await storage.reader.document("health", "none");
        problem = await writes.problem();
      } catch (cause) {
        problem = new HoldfastError("storage_unavailable", "storage does not answer", { cause });
      }
      // A `Refusal`, because its reason is public and the log need not repeat it.
      if (problem !== undefined) throw new Refusal(problem.code, problem.message);
      return { status: "ok" };
    },

    getVersion: () => ({ version: VERSION, now: BigInt(clock.now()) }),
  };
}
