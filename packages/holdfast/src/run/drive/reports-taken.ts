// `reportsTaken`: a text of an external agent is shown after what the agent did before.
//
// The agent reports what it does by signals, and its session records them a moment later. The pieces of its
// text come at once. A text that begins therefore waits until the session has taken the reports before it.

import { setTimeout as delay } from "node:timers/promises";
import type { StorageReader } from "@holdfast/core";
import { AGENT_REPORT } from "@holdfast/proto/view";

const LOOK_MS = 10;
/** A session that is paused takes none. */
const LOOKS_MAX = 100;

/** Resolves when the session has taken the reports that are stored at the call. Never rejects. */
export function reportsTaken(reader: StorageReader, sessionId: string): Promise<void> {
  return untilTaken(reader, sessionId).catch(() => {}); // Storage is away, and the text is shown all the same.
}

async function untilTaken(reader: StorageReader, sessionId: string): Promise<void> {
  const pending = async (): Promise<readonly string[]> =>
    (await reader.pendingSignals(sessionId))
      .filter(({ name }) => name === AGENT_REPORT)
      .map(({ signalId }) => signalId);
  const before = await pending();
  for (let look = 0; before.length > 0 && look < LOOKS_MAX; look++) {
    const now = await pending();
    if (!before.some((id) => now.includes(id))) return;
    await delay(LOOK_MS);
  }
}
