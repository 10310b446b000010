// `@holdfast/programs/testing`: the conformance suite for adapters of external agents, for vitest. Users run
// it on an adapter of their own.

export { externalAgentConformance, type ExternalAgentSubject } from "./testing/external-agent-conformance.ts";
export { openWayBack, type OpenedWayBack } from "./session/way-back/way-back.ts";
export { openWorld, type Opened, type World } from "./testing/executor-world.ts";
export { turnAlone } from "./session/program/turn-alone.ts";
