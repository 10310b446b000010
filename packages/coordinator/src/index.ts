// The server that holds sessions for a fleet.

export { serveApi, type Api, type ApiOptions, type Page } from "./api/api.ts";
export { type Authenticate, type Authenticated, type Caller } from "./call/caller.ts";
export { API_LIMITS, type ApiLimits } from "./api/limits.ts";
export { createPage, pageProblem, type PageOptions, type SignInPage } from "./page/page.ts";
export { serveSessions, type SessionsServer, type SessionsServerOptions } from "./sessions-server.ts";
export { type Listener, type ListenOptions } from "./api/listener.ts";
export {
  createCoordinator,
  type Coordinator,
  type CoordinatorConfig,
  type CoordinatorOptions,
} from "./coordinator.ts";
