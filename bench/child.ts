// Child processes of workloads: killed for real, or measured where nothing else is in memory.

import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What children say. `at` is a moment of `nowMs`, which all processes share. */
export interface ChildMessage {
  readonly type: string;
  readonly at: number;
  readonly [field: string]: unknown;
}

export interface Child {
  /** The next message of this type; others before it are dropped. @throws Error when the child ends first. */
  next(type: string): Promise<ChildMessage>;
  send(message: object): void;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<void>;
  /** Let it end by itself. */
  end(): Promise<void>;
}

const SCRIPTS = {
  sender: import.meta.resolve("./children/sender.ts"),
  restart: import.meta.resolve("./children/restart.ts"),
  "floor-restart": import.meta.resolve("./children/floor-restart.ts"),
  parked: import.meta.resolve("./children/parked.ts"),
} as const;

/** Start one of the scripts, with what it is to do as its argument. */
export function startChild(
  name: keyof typeof SCRIPTS,
  options: object,
  nodeArgs: readonly string[] = [],
): Child {
  const child = fork(fileURLToPath(SCRIPTS[name]), [JSON.stringify(options)], { execArgv: [...nodeArgs] });
  const messages: ChildMessage[] = [];
  let hear: (() => void) | undefined;
  child.on("message", (message) => {
    messages.push(message as ChildMessage);
    hear?.();
  });
  const gone = new Promise<void>((resolve) =>
    child.once("exit", () => {
      resolve();
      hear?.();
    }),
  );
  return {
    async next(type) {
      for (;;) {
        const message = messages.shift();
        if (message?.type === type) return message;
        if (message !== undefined) continue;
        if (hasEnded(child)) throw new Error(`the child process "${name}" ended before it said "${type}"`);
        await new Promise<void>((resolve) => (hear = resolve));
      }
    },
    send: (message) => void child.send(message),
    kill: () => {
      child.kill("SIGKILL");
      return gone;
    },
    end: () => {
      if (child.connected) child.disconnect();
      return gone;
    },
  };
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
