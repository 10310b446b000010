// `@holdfast/runtime/gateway`: the gateway between a program and all that it may reach. For the sibling
// packages; not for users.

export {
  type GatewayAnswer,
  type GatewayCall,
  type GatewayHandler,
  type GatewayRoutes,
  type GatewayRun,
} from "./gateway-routes.ts";
export { isHostPattern, type NetworkPolicy } from "./network-policy.ts";
export {
  anthropicProvider,
  googleProvider,
  namedProviders,
  openaiProvider,
  PROVIDER_NAMES,
  type Provider,
  type ProviderKeys,
} from "./provider-proxy.ts";
export { startRunGateway, type RunGateway, type RunGatewayOptions } from "./run-gateway.ts";
