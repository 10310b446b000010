// Agent files and external programs, as the user of a machine has them: they are found, loaded, trusted, placed and made into agents.

export {
  Machine,
  type FileAgent,
  type GivenSandbox,
  type LoadOptions,
  type LocalModel,
  type MachineOptions,
  type MachineSecrets,
} from "./machine.ts";
export { doublesOf, refuseDoubledName } from "./doubled-names.ts";
export {
  chosenByProfile,
  externalNames,
  installedAgents,
  isOfProfile,
  mirrorsOf,
  protocolOf,
  type ExternalPlace,
} from "./external-agents.ts";
export { rulesFile } from "./project-rules.ts";
