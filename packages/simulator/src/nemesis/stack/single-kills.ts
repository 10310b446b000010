// `measureSingleKills`: the time from the kill of a process to the moment at which each session that it cut
// off continues.
//
//   - The stack is ready for longer than the restart policy remembers, so that no pause is due, and no
//     session is a suspect. Frequent kills have both on purpose, and their times say nothing.
//   - A killed supervisor is followed by `local start` at once. Its time includes that of the command.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { linesOf, timesOf, type Times } from "../nemesis.ts";
import { monotonicMs, type Effect } from "../observed.ts";
import type { Clients } from "../requests.ts";
import type { KillableStack } from "./killable-stack.ts";

const QUIET_MS = 5_200;
const SESSIONS = 3;
/** The duration of a step: longer than a kill takes. */
const STEP_MS = 1_500;
const LOOK_EVERY_MS = 10;

const MEASURED = ["runner", "supervisor"] as const;
export type ResumedTimes = Readonly<Partial<Record<(typeof MEASURED)[number], Times>>>;

interface SingleKills {
  readonly stack: KillableStack;
  readonly clients: Clients;
  /** The number of kills of each component. */
  readonly times: number;
  /** Starts the stack until it is ready. */
  readonly start: () => Promise<void>;
}

export async function measureSingleKills({
  stack,
  clients,
  times,
  start,
}: SingleKills): Promise<ResumedTimes> {
  const measured: Partial<Record<(typeof MEASURED)[number], number[]>> = {};
  for (let n = 0; n < times; n++)
    for (const component of MEASURED) {
      await sleep(QUIET_MS);
      const ids = await startSessions(clients, `single-${component}-${n}`);
      const runner = stack.pidOf("runner");
      await Promise.all(ids.map((id) => begun(stack, id, (pid) => pid === runner)));
      const killedAt = monotonicMs();
      await stack.kill(component);
      if (component === "supervisor") await start();
      const resumed = await Promise.all(ids.map((id) => begun(stack, id, (pid) => pid !== runner)));
      (measured[component] ??= []).push(...resumed.map((at) => at - killedAt));
      await stack.ready();
    }
  return Object.fromEntries(Object.entries(measured).map(([name, all]) => [name, timesOf(all)]));
}

async function startSessions(clients: Clients, name: string): Promise<readonly string[]> {
  const numbers = Array.from({ length: SESSIONS }, (_, i) => i);
  return Promise.all(
    numbers.map(async (i) => {
      const key = `${name}-${i}`;
      const body = { agent: "walker", input: { key, count: 1, takesMs: STEP_MS } };
      const asked = { method: "POST", path: "/sessions", body, key } as const;
      const answer = await clients.insist({ op: "start", about: key }, asked, { agent: "walker" });
      return String(answer?.body["sessionId"]);
    }),
  );
}

/** @returns when the session began an attempt in such a process. */
async function begun(
  { folder }: KillableStack,
  sessionId: string,
  isWanted: (pid: number) => boolean,
): Promise<number> {
  for (const path = join(folder, "effects", sessionId); ; await sleep(LOOK_EVERY_MS)) {
    const effects = existsSync(path) ? linesOf<Effect>(path) : [];
    const found = effects.find(({ phase, pid }) => phase === "begin" && isWanted(pid));
    if (found !== undefined) return found.at;
  }
}
