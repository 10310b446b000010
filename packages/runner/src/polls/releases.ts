// `releasing`: asks the coordinator for the environments of sessions that the runner holds.
//
// It waits while the coordinator is away, because nothing of the session can go on without it.

import {
  type Clock,
  defined,
  type EnvironmentKeys,
  type Environments,
  type Random,
  toHoldfastError,
} from "@holdfast/core";
import { EnvironmentService, type ReleasedEnvironment } from "@holdfast/proto";
import type { CoordinatorConnection } from "@holdfast/storage/remote";
import { isPassing, pause, pauseMs } from "./poll-loop.ts";

const ANSWER_MS = 10_000;

interface ReleaseHost {
  readonly connection: CoordinatorConnection;
  readonly clock: Clock;
  readonly random: Random;
  /** Ends the waiting. */
  readonly signal: AbortSignal;
  /** The token of the claim by which the runner holds a session. */
  readonly tokenOf: (sessionId: string) => number | undefined;
}

/** The claims of a runner, as `SessionEnvironments` uses them. */
export function releasing(host: ReleaseHost): {
  readonly tokenOf: ReleaseHost["tokenOf"];
  readonly release: (sessionId: string, token: number) => Promise<Environments>;
} {
  return { tokenOf: host.tokenOf, release: (...claim) => askRelease(host, ...claim) };
}

/** @throws HoldfastError when the coordinator refuses, or when the waiting ended. */
async function askRelease(
  { connection, clock, random, signal, tokenOf }: ReleaseHost,
  sessionId: string,
  token: number,
): Promise<Environments> {
  const request = { sessionId, claimToken: BigInt(token) };
  for (let failures = 0; ; failures++) {
    try {
      const { environments } = await connection.ask(() =>
        connection.client(EnvironmentService).release(request, { timeoutMs: ANSWER_MS }),
      );
      return Object.fromEntries(environments.map((one) => [one.name, keysOf(one)]));
    } catch (thrown) {
      const error = toHoldfastError(thrown);
      if (!isPassing(error) || signal.aborted || tokenOf(sessionId) !== token) throw error;
      await pause(pauseMs(failures, random), clock, signal);
    }
  }
}

function keysOf({ keys }: ReleasedEnvironment): EnvironmentKeys {
  return Object.fromEntries(
    keys.map(({ name, value, secret, required }) => [name, { ...defined({ value }), secret, required }]),
  );
}
