// `examineInstallation`: every check of the whole installation, in the order in which a person reads them.

import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { checkAgents } from "./agent-checks.ts";
import { runChecks, type Check } from "./check.ts";
import { checkExternalAgents } from "./external-agent-checks.ts";
import { checkDataFolder, checkDisk, checkSandbox, checkSettings, checkVersions } from "./machine-checks.ts";
import { checkModels } from "./model-checks.ts";
import { lookAtSecrets } from "./secret-checks.ts";
import { askForVersions, checkPort, checkStack } from "./stack-checks.ts";

/** @param database the path of the project's database, if the settings can be read. @returns one check for each subject. */
export function examineInstallation(
  args: Arguments,
  io: Io,
  database: string | undefined,
): Promise<readonly Check[]> {
  const secrets = lookAtSecrets(io);
  const coordinator = askForVersions(args, io);
  return runChecks({
    holdfast: checkVersions,
    settings: () => checkSettings(args, io),
    data: () => checkDataFolder(io),
    disk: () => checkDisk(database, io),
    sandbox: checkSandbox,
    secrets: async () => (await secrets).finding,
    models: async () => checkModels(await secrets, args.has("online"), io),
    agents: () => checkAgents(args, io),
    programs: () => checkExternalAgents(io),
    stack: () => checkStack(io),
    "port 8765": () => checkPort(io),
    coordinator: async () => (await coordinator).versions,
    clock: async () => (await coordinator).clock,
  });
}
