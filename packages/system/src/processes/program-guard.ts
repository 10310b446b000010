// Ends all programs of a process that was killed: `ProgramGuard`, a small shell that outlives it.
//
//   - A process has one guard, which is started before its first program. The guard leads a session of its
//     own, and no other process holds the pipe that it reads. The end of the pipe is the end of our process,
//     whatever ended it.
//   - At that end the guard sends SIGTERM, and SIGKILL after a grace, until two looks in a row find nothing.
//     It finds the process groups that our process named to it, and each process that carries the id of the
//     guard in its execution marker.
//   - An id of a process that was used again is never signalled. A group counts while its leader has the
//     start time that the guard saw at first, or is gone. A marked process was marked a moment before.
//   - A guard that ends programs has a marker of its own. By it `waitForGuards` finds the guards of dead
//     processes, and a process that resumes their work waits for them.
//
// Leaky: a program that left its group AND cleared its environment is not found, but for one in a PID
// namespace. Leaky: on macOS the environment of the system's own programs cannot be read, and only their
// groups end.

import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

import type { Environment } from "./environment.ts";
import { EXECUTION_MARKER, isMarkedAnywhere } from "./process-tree.ts";

/** The entry in the environment of a guard that ends programs. */
export const ENDING_MARKER = "HOLDFAST_GUARD=ending";
/** How long a resume waits for the guard of a dead process: longer than a guard may take. */
const WAIT_MS = 15_000;
const POLL_MS = 20;

/** A shell function that sets `start` to the start time of a process, and to nothing when it is gone. */
const START_TIME = `
started() {
  start=
  if [ -d /proc/self ]; then
    read -r stat < "/proc/$1/stat" || return 0
    set -- \${stat##*) }
    start=\${20}
  else
    start=$(ps -o lstart= -p "$1" | tr -cd 0-9A-Za-z)
  fi
}`;

/** Waits for the end of its input. Its lines are "+ GROUP" and "- GROUP". */
const WAITING = `${START_TIME}
trap '' HUP INT TERM
groups=' '
while read -r sign group; do
  case $sign in
    +) started "$group"; groups="$groups$group:$start " ;;
    -) case $groups in *" $group:"*)
         after=\${groups#*" $group:"}
         groups="\${groups%%" $group:"*} \${after#* }" ;;
       esac ;;
  esac
done
export ${ENDING_MARKER}
exec /bin/sh -c "$1" holdfast-ending "$2" "$groups"`;

/** The looks with SIGTERM, and all looks: at about 50 ms each, 300 ms and 10 s. */
const ENDS = `${START_TIME}
trap '' HUP INT TERM
marked() {
  if [ -d /proc/self ]; then
    for file in $(grep -ls "$1" /proc/[0-9]*/environ); do
      file=\${file#/proc/}
      echo "\${file%/environ}"
    done
  else
    ps -A -E -ww -o pid= -o command= | awk "/${EXECUTION_MARKER}=[^ ]*$1/ { print \\$1 }"
  fi
}
lives() {
  kill -s 0 -- "-$1" || return 1
  [ ! -d /proc/self ] || grep -qs ") [^ZX] [0-9]* $1 " /proc/[0-9]*/stat
}
look=0; misses=0
while [ $misses -lt 2 ] && [ $look -lt 200 ]; do
  look=$((look + 1)); misses=$((misses + 1)); signal=KILL
  [ $look -gt 6 ] || signal=TERM
  for each in $2; do
    group=\${each%%:*}
    started "$group"
    [ -z "$start" ] || [ "$start" = "\${each#*:}" ] || continue
    lives "$group" || continue
    kill -s $signal -- "-$group" && misses=0
  done
  for pid in $(marked "$1"); do
    kill -s $signal "$pid" && misses=0
  done
  sleep 0.05
done`;

export class ProgramGuard {
  /** Part of the execution marker of each program. */
  readonly id = randomUUID();
  readonly #environment: Readonly<Record<string, string>>;
  readonly #groups = new Set<number>();
  #shell: ChildProcess | undefined;

  constructor(environment: Environment) {
    this.#environment = Object.fromEntries(
      ["PATH", EXECUTION_MARKER].flatMap((name) => {
        const value = environment[name];
        return value === undefined ? [] : [[name, value]];
      }),
    );
  }

  /** Starts the guard, if it does not run. Must precede the start of a program. */
  watch(): void {
    if (this.#shell !== undefined) return;
    const shell = spawn("/bin/sh", ["-c", WAITING, "holdfast-guard", ENDS, this.id], {
      cwd: "/",
      env: this.#environment,
      detached: true, // The guard leads a session of its own, so that it outlives this process.
      stdio: ["pipe", "ignore", "ignore"],
    });
    this.#shell = shell;
    const forget = (): void => {
      if (this.#shell === shell) this.#shell = undefined;
    };
    shell.once("error", forget);
    shell.once("exit", forget);
    shell.stdin.on("error", forget);
    shell.unref();
    (shell.stdin as { unref?: () => void }).unref?.();
    for (const group of this.#groups) this.#say(`+ ${group}\n`);
  }

  /** Names the group that a program leads. */
  add(group: number): void {
    this.#groups.add(group);
    this.#say(`+ ${group}\n`);
  }

  /** Forgets a group in which nothing runs any more: its id may be another's soon. */
  remove(group: number): void {
    this.#groups.delete(group);
    this.#say(`- ${group}\n`);
  }

  #say(line: string): void {
    this.#shell?.stdin?.write(line);
  }
}

const GUARD = Symbol.for("holdfast.program-guard");

/** The guard of this process, also for another copy of this package: it belongs to the process, as its children do. */
export function programGuard(environment: Environment): ProgramGuard {
  const owner = process as { [GUARD]?: ProgramGuard };
  return (owner[GUARD] ??= new ProgramGuard(environment));
}

/** Waits until the guards of dead processes of this machine have ended their programs. */
export async function waitForGuards(): Promise<void> {
  const deadline = performance.now() + WAIT_MS;
  while ((await isMarkedAnywhere([ENDING_MARKER])) && performance.now() < deadline) await delay(POLL_MS);
}
