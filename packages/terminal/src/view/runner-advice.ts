// The commands that continue a session that no registered runner matches.

import { isQueuedTaskAgent, type Session } from "@holdfast/core";
import type { Io } from "../frame/command.ts";
import { quoted } from "../frame/plain-text.ts";

/** Labels that a runner has whatever it says. */
const OWN_LABELS = new Set(["machine", "hostname", "runner"]);

/** The command that starts a runner that fits. */
export function runnerCommand({ agent, placement }: Session, io: Pick<Io, "call">): string {
  const labels = Object.entries(placement?.demands ?? {})
    .filter(([name]) => !OWN_LABELS.has(name))
    .map(([name, value]) => ` --label ${quoted(`${name}=${value}`)}`)
    .join("");
  return isQueuedTaskAgent(agent.name)
    ? io.call(`runner --tasks FILE${labels}`)
    : io.call(`runner --agents FILE${labels}`);
}

/** The commands of which one helps: a matching runner, or this process if the session came from a file. */
export function runnerAdvice(session: Session, io: Pick<Io, "call">): string[] {
  const here = session.agent.file === undefined ? [] : [io.call(`resume ${session.sessionId}`)];
  return [runnerCommand(session, io), ...here];
}
