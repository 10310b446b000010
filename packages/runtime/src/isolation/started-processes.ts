// Ending all that a process has started, at once and from a thread, for whoever ends that process by force: nobody else will.
//
// Found are its descendants, and whatever carries the marker of a command of theirs: a daemon has left its parent and its group
// behind. Leaky: without /proc nothing is found, and neither is a daemon that cleared its environment or outlived its command.
//
// It knows no tasks and no sessions. Synchronous, as it may be the last thing that happens.

import { readdirSync, readFileSync } from "node:fs";

/** The name by which the environment of a command, and so that of all it starts, says which command it is. */
export const EXECUTION_MARKER = "HOLDFAST_EXECUTION";
/** What was just being started is found by the next look. */
const LOOKS_MAX = 10;

interface Found {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
}

/** SIGKILL for everything that the process with this id has started, and not for itself. Never throws. */
export function killStartedBy(root: number): void {
  const markers = new Set<string>();
  for (let look = 0; look < LOOKS_MAX; look++) {
    const found = startedBy(root, markers);
    if (found.length === 0) return;
    const own = new Set(found.map(({ pid }) => pid));
    for (const { pid, group } of found) {
      kill(pid);
      if (own.has(group)) kill(-group); // As a whole, with what its members start meanwhile.
    }
  }
}

/** @param markers of commands that were found; those that are new are added. */
function startedBy(root: number, markers: Set<string>): readonly Found[] {
  const all = processes();
  const found = new Map<number, Found>();
  const parents = new Set([root]);
  for (let known = 0; known < parents.size;) {
    known = parents.size;
    for (const each of all) {
      if (!parents.has(each.parent) || each.pid === root) continue;
      parents.add(each.pid);
      found.set(each.pid, each);
    }
  }
  for (const { pid } of found.values()) for (const marker of markersOf(pid)) markers.add(marker);
  if (markers.size === 0) return [...found.values()];
  for (const each of all) {
    if (found.has(each.pid) || each.pid === root) continue;
    if (markersOf(each.pid).some((marker) => markers.has(marker))) found.set(each.pid, each);
  }
  return [...found.values()];
}

/** Those that run, without zombies: they are gone, only not yet collected by their parent. */
function processes(): readonly Found[] {
  return namesIn("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const status = textOf(`/proc/${name}/stat`);
    // pid (name) state parent group …, and the name may hold spaces and parentheses.
    const [state = "", parent, group] = status.slice(status.lastIndexOf(")") + 2).split(" ");
    if ("ZX".includes(state)) return [];
    return [{ pid: Number(name), parent: Number(parent), group: Number(group) }];
  });
}

function markersOf(pid: number): readonly string[] {
  const variables = textOf(`/proc/${pid}/environ`).split("\0");
  return variables.filter((variable) => variable.startsWith(`${EXECUTION_MARKER}=`));
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Of a process that has gone, or is another user's, nothing. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has gone, or changed its user.
  }
}
