// The processor time of test files: `treeMs` measures it, and `keepTimes` and `knownTimes` keep it beside the
// times of vitest.
//
//   - The time of a process tree is that of the process, of its children that have ended, and of its
//     descendants that still run.
//   - A run of some files replaces the times of these files alone.
//
// Leaky: a process that outlives its parent belongs to no tree, so its time is missing. Linux alone says what
// running children have used; elsewhere the time is that of the worker of the tests.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Linux counts the processor time of children in hundredths of a second. */
const MS_PER_TICK = 10;

interface Usage {
  readonly parent: number;
  /** The time of the process and of its children that have ended. */
  readonly ms: number;
}

/** The processor time that this process and its descendants have used until now. */
export function treeMs(): number {
  const usages = readUsages();
  const own = usages.get(process.pid);
  if (own === undefined) {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
  let ms = own.ms;
  const tree = new Set([process.pid]);
  // A process can have a lower id than its parent, so one pass does not find the whole tree.
  for (let found = true; found;) {
    found = false;
    for (const [pid, usage] of usages) {
      if (tree.has(pid) || !tree.has(usage.parent)) continue;
      tree.add(pid);
      ms += usage.ms;
      found = true;
    }
  }
  return ms;
}

function readUsages(): ReadonlyMap<number, Usage> {
  const usages = new Map<number, Usage>();
  if (!existsSync("/proc/self/stat")) return usages;
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const usage = readUsage(readFileSync(`/proc/${name}/stat`, "utf8"));
      usages.set(Number(name), usage);
    } catch {
      // The process has ended in the meantime.
    }
  }
  return usages;
}

/** @param stat the line of `/proc/PID/stat`, in which only the name of the program can hold spaces. */
function readUsage(stat: string): Usage {
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15);
  return { parent: fields[1]!, ms: (user + system + childUser + childSystem) * MS_PER_TICK };
}

/** The processor time of test files in their last runs in this checkout. */
export function knownTimes(root: string): ReadonlyMap<string, number> {
  const path = pathIn(root);
  const known = existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Record<string, number>) : {};
  return new Map(Object.entries(known));
}

export function keepTimes(root: string, times: ReadonlyMap<string, number>): void {
  const path = pathIn(root);
  mkdirSync(dirname(path), { recursive: true });
  const all = Object.fromEntries([...knownTimes(root), ...times]);
  writeFileSync(path, `${JSON.stringify(all, undefined, 1)}\n`);
}

function pathIn(root: string): string {
  return join(root, "node_modules", ".cache", "processor-times.json");
}
