// Dispatch alone, for whoever runs it without a server around it: the simulator.

export { Dispatcher, type DispatcherHost } from "./dispatcher.ts";
export { Registry, type StoredRunner } from "./registry.ts";
export type { PollAnswer, PollRequest } from "./seat.ts";
