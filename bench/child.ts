// Child processes of workloads: killed for real, or measured where nothing else is in memory.

import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A message of a child. `at` is a moment of `nowMs`, which all processes share. */
export interface ChildMessage {
  readonly type: string;
  readonly at: number;
  readonly [field: string]: unknown;
}

export interface Child {
  /** The next message of this type; others before it are dropped. @throws Error when the child ends first. */
  next(type: string): Promise<ChildMessage>;
  /** From now on messages of this type go here, as they come, and to nobody who asks for the next. */
  onMessage(type: string, listener: (message: ChildMessage) => void): void;
  send(message: object): void;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<void>;
  /** Waits until the child ends without a signal. */
  end(): Promise<void>;
}

const SCRIPTS = {
  sender: import.meta.resolve("./children/sender.ts"),
  restart: import.meta.resolve("./children/restart.ts"),
  "floor-restart": import.meta.resolve("./children/floor-restart.ts"),
  parked: import.meta.resolve("./children/parked.ts"),
  coordinator: import.meta.resolve("./children/coordinator.ts"),
  runner: import.meta.resolve("./children/runner.ts"),
  "floor-coordinator": import.meta.resolve("./children/floor-coordinator.ts"),
  "floor-runner": import.meta.resolve("./children/floor-runner.ts"),
  herd: import.meta.resolve("./children/herd.ts"),
  readers: import.meta.resolve("./children/readers.ts"),
  fresh: import.meta.resolve("./children/fresh.ts"),
  "external-turns": import.meta.resolve("./children/external-turns.ts"),
  growth: import.meta.resolve("./children/growth.ts"),
  cpu: import.meta.resolve("./children/cpu.ts"),
} as const;

/** Start one of the scripts, with what it is to do as its argument. */
export function startChild(
  name: keyof typeof SCRIPTS,
  options: object,
  nodeArgs: readonly string[] = [],
  env: NodeJS.ProcessEnv = process.env,
): Child {
  const child = fork(fileURLToPath(SCRIPTS[name]), [JSON.stringify(options)], {
    execArgv: [...nodeArgs],
    env,
  });
  const messages: ChildMessage[] = [];
  const listeners = new Map<string, (message: ChildMessage) => void>();
  let wake: (() => void) | undefined;
  child.on("message", (sent) => {
    const message = sent as ChildMessage;
    const listener = listeners.get(message.type);
    if (listener !== undefined) return listener(message);
    messages.push(message);
    wake?.();
  });
  const gone = new Promise<void>((resolve) =>
    child.once("exit", () => {
      resolve();
      wake?.();
    }),
  );
  return {
    async next(type) {
      for (;;) {
        const message = messages.shift();
        if (message?.type === type) return message;
        if (message !== undefined) continue;
        if (hasEnded(child)) throw new Error(`the child process "${name}" ended before it said "${type}"`);
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    onMessage: (type, listener) => void listeners.set(type, listener),
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
