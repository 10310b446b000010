// `sandboxes`: the start of a sandbox, and what it adds to a command. The floor of a command is the same
// command in the folder itself.
//
// It does not measure remote services, or the first download of an image.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ownSandboxes } from "@holdfast/workspace";
import type { Measured } from "../line.ts";
import { assertDone, inTurns, median, nowMs, percentile } from "../measure.ts";
import { withFolder } from "../storages.ts";
import type { Bench, Workload } from "../workload.ts";

/** Goals in milliseconds: the start of the folder itself, and what a command of bubblewrap takes beyond one there. */
const START_GOAL_MS = 5;
const COMMAND_GOAL_MS = 50;
const COMMAND = "true";

export const sandboxes: Workload = {
  id: "sandboxes",
  title: "the start of each sandbox of this machine, and a command in it",
  refuses: (storage) => (storage === "sqlite" ? undefined : "a sandbox has no storage"),
  async *run(bench) {
    const backends = ownSandboxes({ keys: () => Promise.resolve(undefined) });
    const plain = backends.find(({ name }) => name === "filesystem")!;
    for (const backend of backends) {
      if ((await backend.check()).status === "ready")
        yield* await withFolder(bench.folder, (folder) => measure(bench, backend, plain, folder));
    }
  },
};

type Backend = ReturnType<typeof ownSandboxes>[number];

async function measure(bench: Bench, backend: Backend, plain: Backend, folder: string): Promise<Measured[]> {
  const starts: number[] = [];
  const openOnce = async (kind: Backend, session: string) => {
    const root = join(folder, session);
    mkdirSync(root);
    const startedAt = nowMs();
    const workspace = await kind.open({ session, root }, {});
    starts.push(nowMs() - startedAt);
    return workspace;
  };
  const places = Array.from({ length: bench.size(20, 2) }, (_, i) => `${backend.name}-${i}`);
  for (const session of places) await openOnce(backend, session);
  const startMs = median(starts);
  const ours = await openOnce(backend, "ours");
  const floor = await openOnce(plain, "floor");
  const timed = (workspace: typeof ours) => async () => {
    const startedAt = nowMs();
    const { end } = await workspace.execute(COMMAND);
    assertDone(`a command in ${backend.name}`, end, { type: "exit", exitCode: 0 });
    return nowMs() - startedAt;
  };
  const times = await inTurns(bench.size(30, 2), timed(ours), timed(floor));
  for (const session of [...places, "ours"]) await backend.destroy({ session, root: join(folder, session) });
  const [commandMs, floorMs] = [median(times.ours), median(times.floors)];
  const isPlain = backend === plain;
  return [
    {
      variant: `${backend.name}: start`,
      unit: "ms",
      value: startMs,
      ...(isPlain ? { goal: `<= ${START_GOAL_MS} ms`, isGoalMet: startMs <= START_GOAL_MS } : {}),
    },
    {
      variant: `${backend.name}: a command`,
      unit: "ms",
      value: commandMs,
      floor: floorMs,
      p50Ms: commandMs,
      p99Ms: percentile(times.ours, 0.99),
      ...(backend.name === "bubblewrap"
        ? { goal: `<= ${COMMAND_GOAL_MS} ms more`, isGoalMet: commandMs - floorMs <= COMMAND_GOAL_MS }
        : {}),
    },
  ];
}
