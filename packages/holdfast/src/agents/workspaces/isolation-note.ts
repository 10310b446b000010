// `noteIsolation`: the hint for a person that sandboxes with isolation are there. Each user sees it once.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { AgentRecord } from "@holdfast/agents";
import { makePrivateFolder, replacePrivate } from "@holdfast/system";
import type { Io } from "@holdfast/terminal/frame/command";
import { dataFolder } from "@holdfast/system";
import { findSandbox } from "../sandbox-settings.ts";

/** Nothing where the agent or the user has chosen a sandbox, or where no person reads the notes. */
export function noteIsolation({ sandbox }: Pick<AgentRecord, "sandbox">, io: Io): void {
  const { value, origin } = findSandbox(io);
  const isChosen = sandbox !== null || origin !== "default" || value !== "filesystem";
  const seen = join(dataFolder(io), "isolation-note");
  if (isChosen || io.notes.columns === Infinity || existsSync(seen)) return;
  try {
    makePrivateFolder(dataFolder(io));
    replacePrivate(seen, "");
  } catch {
    return; // It would be said each time.
  }
  const better = process.platform === "darwin" ? "seatbelt" : "bubblewrap";
  io.note(
    io.notes.paint.dim(
      `commands of agents run as your user, in the sandbox filesystem; ${better} and virtual isolate them. ` +
        `\`sandbox: ${better}\` below \`holdfast:\` in an agent's file chooses one, or HOLDFAST_SANDBOX=${better} for all agents`,
    ),
  );
}
