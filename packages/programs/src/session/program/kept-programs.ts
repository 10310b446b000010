// `KeptPrograms`: the programs of an adapter that wait for the next turn of their session.
//
//   - A session has at most one, which its next turn takes. A program that has ended is not kept any more.
//   - A program is ended when no turn comes in its time, and before where too many wait.

import { clearTimeout, setTimeout } from "node:timers";

export interface KeptProgram {
  /** Settles when nothing of the program runs any more. */
  readonly ended: Promise<unknown>;
  stop(reason: string): Promise<unknown>;
}

interface Waiting<Program> {
  readonly program: Program;
  readonly timer: NodeJS.Timeout;
}

export class KeptPrograms<Program extends KeptProgram> {
  /** By the tags of their sessions, the one that waits longest first. */
  readonly #waiting = new Map<string, Waiting<Program>>();
  readonly #max: number;

  constructor(max = Infinity) {
    this.#max = max;
  }

  has(tag: string): boolean {
    return this.#waiting.has(tag);
  }

  keep(tag: string, program: Program, ms: number): void {
    const timer = setTimeout(() => void this.end(tag, "no turn came"), ms);
    timer.unref();
    this.#waiting.set(tag, { program, timer });
    void program.ended.then(() => {
      if (this.#waiting.get(tag)?.program === program) this.take(tag);
    });
    const [oldest] = this.#waiting.keys();
    if (this.#waiting.size > this.#max && oldest !== undefined) void this.end(oldest, "too many wait");
  }

  take(tag: string): Program | undefined {
    const waiting = this.#waiting.get(tag);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(tag);
    return waiting?.program;
  }

  async end(tag: string, reason: string): Promise<void> {
    await this.take(tag)?.stop(reason);
  }

  async close(reason: string): Promise<void> {
    await Promise.all([...this.#waiting.keys()].map((tag) => this.end(tag, reason)));
  }
}
