// `killStartedBy`: kills everything that a process has started, before that process is ended by force.
//
// It finds the descendants of the process, and daemons, which have left their parent and their group, by the
// marker of their command. Leaky: without /proc it finds nothing. It does not find a daemon that cleared its
// environment or outlived its command.
//
// It knows no tasks and no sessions. It is synchronous, as it may be the last call of a process.

import { readdirSync } from "node:fs";

import { isMarkedBy, markersIn, procText } from "./process-tree.ts";

/** How often to look: a process that was just being started is found by the next look. */
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
      if (own.has(group)) kill(-group); // The whole group, with processes that its members start meanwhile.
    }
  }
}

/** @param markers of commands found so far; new ones are added. */
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
  // mutant: daemon-left
  for (const { pid } of found.values()) for (const marker of markersOf(pid)) markers.add(marker);
  // The marker that the process was given itself is also its parent's.
  for (const marker of markersOf(root)) markers.delete(marker);
  if (markers.size === 0) return [...found.values()];
  for (const each of all) {
    if (found.has(each.pid) || each.pid === root) continue;
    const environment = procText(`/proc/${each.pid}/environ`);
    if ([...markers].some((marker) => isMarkedBy(environment, marker))) found.set(each.pid, each);
  }
  return [...found.values()];
}

/** All running processes. Zombies are left out, as they have ended and only wait for their parent. */
function processes(): readonly Found[] {
  return namesIn("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const status = procText(`/proc/${name}/stat`);
    // pid (name) state parent group …, and the name may hold spaces and parentheses.
    const [state = "", parent, group] = status.slice(status.lastIndexOf(")") + 2).split(" ");
    if ("ZX".includes(state)) return [];
    return [{ pid: Number(name), parent: Number(parent), group: Number(group) }];
  });
}

function markersOf(pid: number): readonly string[] {
  return markersIn(procText(`/proc/${pid}/environ`));
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has gone, or changed its user.
  }
}
