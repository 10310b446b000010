// The identity of a process: its id and the time of its start (`processIdentity`).
//
// An id alone names another process after the system has reused it. A file with an id (a PID file) therefore
// keeps both.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque: the boot and the moment within it. Equal only for the same process. */
  readonly startedAt: string;
}

/** The identity of a running process; `undefined` when there is none, or only a zombie. */
export function processIdentity(pid: number): ProcessIdentity | undefined {
  const startedAt = process.platform === "linux" ? startInProc(pid) : startByPs(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

/** Whether this very process still runs, and not another one with its id. */
export function isRunning(identity: ProcessIdentity): boolean {
  return processIdentity(identity.pid)?.startedAt === identity.startedAt;
}

function startInProc(pid: number): string | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, "latin1");
    // pid (name) state parent …, and the name may hold spaces and parentheses. The start is field 22, in
    // ticks.
    const fields = status.slice(status.lastIndexOf(")") + 2).split(" ");
    const [state = "Z"] = fields;
    if ("ZX".includes(state)) return undefined;
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
    return `${boot}:${fields[19]}`;
  } catch {
    return undefined;
  }
}

function startByPs(pid: number): string | undefined {
  try {
    const text = execFileSync("ps", ["-o", "stat=,lstart=", "-p", String(pid)], {
      encoding: "utf8",
      env: { PATH: "/usr/bin:/bin" },
    }).trim();
    return text === "" || text.startsWith("Z") ? undefined : text.replace(/^\S+\s+/, "");
  } catch {
    return undefined;
  }
}
