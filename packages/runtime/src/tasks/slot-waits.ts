// `SlotWaits`: finds the standstill in which every task that may run waits for a session of its own runtime,
// whose tasks wait for a slot.
//
// It names the tasks and changes nothing. Such a wait may end without another task, as when a person answers.

import type { AsyncLocalStorage } from "node:async_hooks";
import type { RunningCode } from "./task-session.ts";

interface SlotWaitsHost {
  readonly code: { readonly running: AsyncLocalStorage<RunningCode> };
  readonly warn: (sessionId: string, message: string) => void;
}

interface SlotWait {
  readonly whose: RunningCode;
  /** The awaited session. */
  readonly sessionId: string;
}

export class SlotWaits {
  readonly #host: SlotWaitsHost;
  /** How many tasks run, if others wait for a slot; else 0. */
  readonly #crowd: () => number;
  readonly #waits = new Set<SlotWait>();
  #isNamed = false;

  constructor(host: SlotWaitsHost, crowd: () => number) {
    this.#host = host;
    this.#crowd = crowd;
  }

  /** The end of a session, for the code that calls this. */
  async during<T>(sessionId: string, end: Promise<T>): Promise<T> {
    const whose = this.#host.code.running.getStore();
    if (whose?.task === undefined) return end;
    const wait = { whose, sessionId };
    this.#waits.add(wait);
    this.look();
    try {
      return await end;
    } finally {
      this.#waits.delete(wait);
      this.#isNamed = false;
    }
  }

  /** To be called when a task has to wait for a slot. */
  look(): void {
    const crowd = this.#crowd();
    if (crowd === 0 || this.#isNamed) return;
    const waiting = new Map([...this.#waits].map((wait) => [wait.whose, wait]));
    if (waiting.size < crowd) return;
    this.#isNamed = true;
    const texts = [...waiting.values()].map((wait) => [wait.whose.sessionId, textOf(wait, crowd)] as const);
    for (const [sessionId, text] of texts) this.#host.warn(sessionId, text);
    process.emitWarning(texts[0]![1]);
  }
}

function textOf({ whose, sessionId }: SlotWait, crowd: number): string {
  return (
    `task "${whose.task}" of session ${whose.sessionId} waits for session ${sessionId} of the same runtime, as all ${crowd} tasks do ` +
    "that may run at once: no other task can begin. Let the agent wait for a child (ctx.spawnAgent, ctx.waitForChild), or raise `concurrency`"
  );
}
