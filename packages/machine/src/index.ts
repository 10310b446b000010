// Agent files, as the user of a machine has them: they are found, loaded, trusted, placed and made into
// agents.

export { Machine, type FileAgent, type LoadOptions } from "./machine.ts";
export type { MachineOptions } from "./machine-options.ts";
export { type LocalModel } from "./machine-options.ts";
export { rulesFile } from "./project-rules.ts";
