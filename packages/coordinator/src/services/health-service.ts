// `healthService`: whether the coordinator and its storage can answer and write.

import type { ServiceImpl } from "@connectrpc/connect";
import { HoldfastError } from "@holdfast/core";
import type { HealthService } from "@holdfast/proto";
import { Refusal } from "../call/refusal.ts";
import type { WriteHealth } from "../store/write-health.ts";
import { type ServiceHost } from "./service-host.ts";

export function healthService(
  { storage }: ServiceHost,
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
  };
}
