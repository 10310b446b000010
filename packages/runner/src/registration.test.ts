// `register` after the process before it has died, at a coordinator that refuses, is away, and comes back.

import { ConflictError, HoldfastError, UnavailableError } from "@holdfast/core";
import { CoordinatorTime, type CoordinatorConnection } from "@holdfast/storage/remote";
import { countingRandom, TestClock } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { register } from "./registration.ts";
import type { TokenFile } from "./token-file.ts";

const SECOND = new ConflictError("duplicate_runner", "another process is it");
const AWAY = new UnavailableError("storage_unavailable", "away");

test("registration-4: the wait for a dead predecessor begins with the first refusal after an absence", async () => {
  const { registering, clock, answer } = begin(AWAY);
  await clock.advance(60_000);
  answer(SECOND);
  await clock.advance(10_000);
  answer(AWAY); // A coordinator that returns renews the claims of dead runners.
  await clock.advance(20_000);
  answer(SECOND);
  await clock.advance(15_000);
  answer(undefined);
  await clock.advance(2_000);
  expect(await registering).toMatchObject({ runnerId: "r1" });
});

test("registration-4: a process that is still there after that is believed to be the runner", async () => {
  const { registering, clock } = begin(SECOND);
  const refused = expect(registering).rejects.toThrow("another process is it");
  await clock.advance(25_000);
  await refused;
});

test("a coordinator that refuses its version or protocol says what mends it", async () => {
  const fix = "upgrade the coordinators first";
  const { registering } = begin(
    new HoldfastError("unsupported_protocol", "the runner has Holdfast 9", { fix }),
  );
  await expect(registering).rejects.toMatchObject({
    code: "unsupported_protocol",
    message: "the coordinator at http://test refuses this runner: the runner has Holdfast 9",
    fix,
  });
});

/** Registers a process that has a token of its own, at a coordinator whose answers the test decides. */
function begin(first: HoldfastError) {
  const clock = new TestClock();
  let error: HoldfastError | undefined = first;
  const client = {
    register: async () => {
      if (error !== undefined) throw error;
      return { runnerId: "r1", leaseMs: 15_000n, renewMs: 3_000n, pollTimeoutMs: 30_000n, now: 1n };
    },
  };
  const connection = {
    url: "http://test",
    time: new CoordinatorTime(clock),
    useToken: () => {},
    client: () => client as never,
    ask: <T>(call: () => Promise<T>) => call(),
  } as Partial<CoordinatorConnection> as CoordinatorConnection;
  const registering = register({
    connection,
    tokens: { read: () => "own", write: () => {} } as Partial<TokenFile> as TokenFile,
    token: undefined,
    offers: { hostname: "h", project: "", labels: {}, agents: [], taskKinds: [], maxRuns: 1 },
    process: "p",
    clock,
    random: countingRandom(),
    signal: new AbortController().signal,
    lost: () => {},
    lowered: () => {},
  });
  return { registering, clock, answer: (by: HoldfastError | undefined) => void (error = by) };
}
