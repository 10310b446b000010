// The parts of a coordinator for the simulator, which runs them without a network.

import { createContextValues, type HandlerContext } from "@connectrpc/connect";
import { identify, type Caller } from "./call/caller.ts";

export type { Caller } from "./call/caller.ts";
export { noticing } from "./store/notices.ts";
export { StoreTime } from "./store/store-time.ts";
export { RunnerService } from "./services/runner-service.ts";
export { createServiceHost, type ServiceHost } from "./services/service-host.ts";
export { StorageService } from "./services/storage-service.ts";

/** The context of a request that did not come over the API. */
export function contextOf(caller: Caller, signal: AbortSignal): HandlerContext {
  const context = { values: createContextValues(), signal } as HandlerContext;
  identify(context, caller, "");
  return context;
}
