// The server that holds sessions for a fleet.

export { type Page } from "./api/api.ts";
export { type Caller } from "./call/caller.ts";
export { API_LIMITS } from "./api/limits.ts";
export { createPage, pageProblem, type PageOptions } from "./page/page.ts";
export { auditedMerge } from "./services/sessions/session-work.ts";
export { serveSessions } from "./sessions-server.ts";
export {
  createCoordinator,
  type Coordinator,
  type CoordinatorConfig,
  type CoordinatorOptions,
} from "./coordinator.ts";
