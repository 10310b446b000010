// `@holdfast/machine/programs`: the external programs of a machine. The adapters take long to load.

export { doublesOf, refuseDoubledName } from "./doubled-names.ts";
export { chosenByProfile, externalNames, installedAgents, mirrorsOf, protocolOf } from "./external-agents.ts";
