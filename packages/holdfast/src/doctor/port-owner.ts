// `portOwner`: whether something listens on a port of this machine, and which process that is.
//
// Leaky: the sockets of another user's process can be seen, and not the process that has them.

import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { userInfo } from "node:os";
import { tryProgram } from "@holdfast/system/processes";

const CONNECT_MS = 1_000;
const LSOF_MS = 3_000;

/** `process` is a text for people, where anything is known about the process. */
export type PortUse =
  | { readonly status: "free" }
  | { readonly status: "used"; readonly pid?: number; readonly process?: string };

export async function portOwner(port: number): Promise<PortUse> {
  const [accepts, owner] = await Promise.all([
    isAccepting(port),
    process.platform === "linux" ? ownerByProc(port) : ownerByLsof(port),
  ]);
  return owner !== undefined || accepts ? { status: "used", ...owner } : { status: "free" };
}

function isAccepting(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, timeout: CONNECT_MS });
    const end = (is: boolean): void => {
      socket.destroy();
      resolve(is);
    };
    socket.on("connect", () => end(true));
    socket.on("timeout", () => end(true)); // A full backlog of a process that is stopped.
    socket.on("error", () => end(false));
  });
}

interface Owner {
  readonly pid?: number;
  readonly process?: string;
}

const LISTENING = "0A";

function ownerByProc(port: number): Owner | undefined {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = ["tcp", "tcp6"].flatMap((name) => textOf(`/proc/net/${name}`).split("\n").slice(1));
  for (const line of lines) {
    const [, local = "", , state, , , , uid, , inode] = line.trim().split(/\s+/);
    if (state !== LISTENING || !local.endsWith(suffix)) continue;
    const pid = pidWithSocket(`socket:[${inode}]`);
    if (pid !== undefined) return { pid, process: `process ${pid} (${textOf(`/proc/${pid}/comm`).trim()})` };
    const isOther = Number(uid) !== userInfo().uid;
    return isOther ? { process: `a process of user ${uid}` } : {};
  }
  return undefined;
}

function pidWithSocket(socket: string): number | undefined {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const folder = `/proc/${pid}/fd`;
      for (const name of readdirSync(folder))
        if (readlinkSync(`${folder}/${name}`) === socket) return Number(pid);
    } catch {
      // A process that has just ended, or another user's.
    }
  }
  return undefined;
}

async function ownerByLsof(port: number): Promise<Owner | undefined> {
  const args = ["-nP", `-iTCP:${port}`, "-sTCP:LISTEN", "-Fpc"];
  const listed = await tryProgram("lsof", args, { ms: LSOF_MS, env: process.env });
  const [, pid, , name] = (listed.status === "done" && /^p(\d+)\n(.*\n)*?c(.*)$/m.exec(listed.output)) || [];
  return pid === undefined ? undefined : { pid: Number(pid), process: `process ${pid} (${name})` };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
