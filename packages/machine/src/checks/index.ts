// `@holdfast/machine/checks`: what is wrong with agents and hooks besides the fields of their files.

export { agentWarnings, trifectaText, type WarningsOf } from "./agent-warnings.ts";
export { hookWarnings } from "./hook-programs.ts";
