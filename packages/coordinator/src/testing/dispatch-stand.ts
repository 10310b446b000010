// `openDispatch` runs a dispatcher over a storage in memory, with a clock that tests move. It polls as one
// runner.

import { BEHAVIOUR_FLAGS, type AgentStorage, defined } from "@holdfast/core";
import { MemoryStorage, storageWith, TestClock } from "@holdfast/testkit/test-runtime";
import { Dispatcher } from "../dispatch/dispatcher.ts";
import type { PollRequest } from "../dispatch/poller.ts";
import { Registry, type StoredRunner } from "../store/registry.ts";

const RUNNER: StoredRunner = {
  runnerId: "r1",
  tokenId: "t1",
  hostname: "h",
  project: "",
  labels: {},
  taskKinds: [],
  agents: [{ name: "agent" }],
  maxRuns: 9,
  behaviourFlags: BEHAVIOUR_FLAGS,
  registeredAt: 0,
  seenAt: 0,
};

export interface StandOptions {
  readonly storage?: MemoryStorage;
  readonly clock?: TestClock;
  /** How long storage takes to load a session. */
  readonly loadMs?: number;
  /** The free slots of the runner. */
  readonly free?: number;
  /** How often a session may be lost with a runner that holds nothing else. */
  readonly lossesMax?: number;
  /** Methods of storage that are replaced for this coordinator. */
  readonly changes?: (storage: AgentStorage) => Partial<AgentStorage>;
}

export async function openDispatch({
  storage = new MemoryStorage(),
  clock = new TestClock(),
  loadMs = 0,
  free = 1,
  lossesMax = 1,
  changes = () => ({}),
}: StandOptions = {}) {
  const seen = storageWith(storage, {
    async load(sessionId) {
      const snapshot = await storage.load(sessionId);
      if (loadMs > 0) await new Promise<void>((resolve) => clock.setTimer(resolve, loadMs));
      return snapshot;
    },
    ...changes(storage),
  });
  const registry = new Registry({ storage: seen, clock });
  await registry.change(RUNNER.runnerId, undefined, () => RUNNER);
  const dispatcher = new Dispatcher({
    storage: seen,
    commit: (changed) => seen.commit(changed, clock.now()),
    clock,
    registry,
    leaseMs: 15_000,
    lossesMax,
    warn: () => {},
    claimed: () => {},
  });
  return {
    clock,
    storage,
    dispatcher,
    poll: (
      pollId: string,
      waitMs = 0,
      ackPollId?: string,
      place: Pick<PollRequest, "process" | "number"> = {},
    ) => {
      const acknowledged = { ...place, ...defined({ ackPollId }) };
      const offer = { runnerId: "r1", free, agents: [], taskKinds: [], ackCommandIds: [] };
      return dispatcher.poll({ ...offer, pollId, waitMs, ...acknowledged }, RUNNER);
    },
    create: (sessionId: string) => storage.commit([creation(sessionId)], clock.now()),
  };
}

export function creation(sessionId: string) {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: "null", seed: 1, flags: 0, format: 1 } as const;
}
