// Ends every process that a command has started: `endTree`.
//
// A command runs in its own process group, so one signal reaches the processes that it started. A process
// that left the group (setsid, a daemon) still carries a marker in its environment and is found in /proc.
// Leaky: a process that leaves its group AND clears its environment is not found. Without /proc only the
// group is found.
//
// A process that is itself supervised adds parts to the marker that it was given (`m/n`). The marker of a
// process therefore finds everything below it, also after processes in between have died.

import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { readdir, readlink } from "node:fs/promises";
import { setImmediate as turn, setTimeout as delay } from "node:timers/promises";

/** The environment variable that marks a supervised process and every process it starts. */
export const EXECUTION_MARKER = "HOLDFAST_EXECUTION";
/** The environment variable with the name that a caller gave (`tag`). */
export const TAG_MARKER = "HOLDFAST_TAG";

/**
 * Whether an environment, as /proc has it, carries the marker or one below it.
 *
 * @param marker an entry `NAME=value`
 */
export function isMarkedBy(environment: string, marker: string): boolean {
  const text = `\0${environment}\0`;
  return text.includes(`\0${marker}\0`) || text.includes(`\0${marker}/`);
}

/** The markers of an environment, as entries `NAME=value`. */
export function markersIn(environment: string): readonly string[] {
  return environment.split("\0").filter((variable) => variable.startsWith(`${EXECUTION_MARKER}=`));
}

/**
 * The marks of a command's processes: the process group it leads, and a `NAME=value` entry of its
 * environment.
 */
export interface ProcessTree {
  readonly group?: number;
  readonly marker: string;
  /** A marked process that is not of the tree. */
  readonly except?: number;
}

const POLL_MS = 20;
/** Processes that are looked at in one turn of the event loop: about a millisecond. */
const LOOKS_PER_TURN = 32;
/** Holds the whole of almost every file of /proc. */
const BUFFER = Buffer.allocUnsafe(64 * 1024);
/** A killed process that is still there after this long hangs in the kernel; nobody can end it. */
const KILLED_WAIT_MS = 2_000;

/**
 * SIGTERM, and SIGKILL for what is left after the grace.
 *
 * @returns whether nothing is left.
 */
export async function endTree(tree: ProcessTree, graceMs: number): Promise<boolean> {
  if (await waitUntilGone(tree, "SIGTERM", graceMs)) return true;
  return waitUntilGone(tree, "SIGKILL", KILLED_WAIT_MS);
}

/** Send a signal to everything of the tree that is found; `false` when nothing is. */
export async function signalTree(tree: ProcessTree, signal: NodeJS.Signals): Promise<boolean> {
  // The group at once and as a whole: between finding its members and signalling them they could start
  // others.
  const grouped = tree.group !== undefined && send(-tree.group, signal);
  const found = await findTree(tree);
  for (const { pid, isInGroup } of found) {
    if (!isInGroup) send(pid, signal);
  }
  return process.platform === "linux" ? found.length > 0 : grouped;
}

/** Whether a process of the tree holds what the standard output of this other process is. */
export async function holdsOutputOf(tree: ProcessTree, other: number): Promise<boolean> {
  const output = await readlink(`/proc/${other}/fd/1`).catch(() => undefined);
  if (output === undefined) return true; // Nothing can be said.
  const held = await Promise.all(
    (await findTree(tree)).map(async ({ pid }) => {
      const numbers = await readdir(`/proc/${pid}/fd`).catch(() => []);
      return Promise.all(numbers.map((number) => readlink(`/proc/${pid}/fd/${number}`).catch(() => "")));
    }),
  );
  return held.flat().includes(output);
}

/** The group only, synchronously: for the moment in which our own process ends. */
export function killGroup(group: number): void {
  send(-group, "SIGKILL");
}

async function waitUntilGone(tree: ProcessTree, signal: NodeJS.Signals, waitMs: number): Promise<boolean> {
  const deadline = performance.now() + waitMs;
  let isLeft = await signalTree(tree, signal);
  while (isLeft && performance.now() < deadline) {
    await delay(POLL_MS);
    // SIGKILL again each time: what was just being started did not exist when the first one was sent.
    isLeft = signal === "SIGKILL" ? await signalTree(tree, signal) : await isAlive(tree);
  }
  return !isLeft;
}

async function isAlive(tree: ProcessTree): Promise<boolean> {
  if (process.platform === "linux") return (await findTree(tree)).length > 0;
  return tree.group !== undefined && send(-tree.group, 0);
}

interface FoundProcess {
  readonly pid: number;
  readonly isInGroup: boolean;
}

/** Members of the tree in /proc, without zombies: they are gone, only not yet collected by their parent. */
async function findTree({ group, marker, except }: ProcessTree): Promise<readonly FoundProcess[]> {
  // One file per process, and a second one only while the group is not empty: this runs after every command.
  const members = group !== undefined && send(-group, 0) ? group : undefined;
  return findProcesses((pid) => {
    if (pid === except) return undefined;
    if (members !== undefined && livesInGroup(pid, members)) return { pid, isInGroup: true };
    return isMarkedBy(environmentOf(pid), marker) ? { pid, isInGroup: false } : undefined;
  });
}

/** Whether a process of this user carries one of these markers, which one look at all processes says. */
export async function isMarkedAnywhere(markers: readonly string[]): Promise<boolean> {
  const found = await findProcesses((pid) => {
    const environment = environmentOf(pid);
    return markers.some((marker) => isMarkedBy(environment, marker)) ? pid : undefined;
  });
  return found.length > 0;
}

/** The results for all other processes of this machine. Without /proc there are none. */
async function findProcesses<Found>(look: (pid: number) => Found | undefined): Promise<readonly Found[]> {
  if (process.platform !== "linux") return [];
  const names = await readdir("/proc").catch(() => []);
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const found: Found[] = [];
  for (const [looks, pid] of pids.entries()) {
    if (looks % LOOKS_PER_TURN === LOOKS_PER_TURN - 1) await turn();
    const result = pid === process.pid ? undefined : look(pid);
    if (result !== undefined) found.push(result);
  }
  return found;
}

function livesInGroup(pid: number, group: number): boolean {
  const status = procText(`/proc/${pid}/stat`);
  // pid (name) state parent group …, and the name may hold spaces and parentheses.
  const [state, , groupOf] = status.slice(status.lastIndexOf(")") + 2).split(" ");
  return Number(groupOf) === group && state !== "Z" && state !== "X";
}

/** The environment of a zombie is empty, that of another user's process cannot be read. */
function environmentOf(pid: number): string {
  return procText(`/proc/${pid}/environ`);
}

/**
 * A file of /proc as text; empty for a process that has ended or belongs to another user. A look at all
 * processes reads hundreds of files. `readFile` makes five calls on other threads for each, and takes six
 * times the processor time.
 */
export function procText(path: string): string {
  try {
    const file = openSync(path, "r");
    try {
      const bytes = readSync(file, BUFFER);
      return bytes < BUFFER.length ? BUFFER.toString("latin1", 0, bytes) : readFileSync(path, "latin1");
    } finally {
      closeSync(file);
    }
  } catch {
    return "";
  }
}

function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    // EPERM: it is there, but not ours to end (it changed its user).
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
