// Keeps one component of the stack running: `Keeper`.
//
// *Starting*: a process was started and is not ready. *Ready*: it does its work. *Restarting*: it has ended
// unasked, and a pause runs before the next one. A process that another one replaces is *draining* until it
// has ended.
//
//   - The first process must become ready. If it does not, the start of the stack has failed.
//   - A process that ends later is started again, as the restart policy says. After the last restart the
//     keeper gives up.
//   - A replacement becomes ready beside the old process. The old one is told so, and the replacement begins
//     its work after that. If the replacement fails, the old process stays.
//   - At most `OLD_MAX` replaced processes stay for their sessions. The oldest of more is hurried.
//   - Every process is cleaned up after its end, whatever ended it.

import { clearTimeout, setTimeout } from "node:timers";
import { defined, toError } from "@holdfast/core";
import type { ProcessState } from "@holdfast/place/local-stack";
import { RestartPolicy } from "./restart-policy.ts";
import type { StackChild } from "./process/stack-child.ts";

const OLD_MAX = 4;

export interface KeeperHost {
  start(): StackChild;
  /** Resolves when the process is ready. May be called for several processes at once. @throws when it never will be. */
  makeReady(child: StackChild): Promise<void>;
  /** The process may begin its work. */
  begin(child: StackChild): void;
  /** Make a process end when its work is done, because another one replaces it. Resolves when it knows. Never rejects. */
  replaced(child: StackChild): Promise<void>;
  /** Make a replaced process end as soon as it can. Must not throw. */
  hurry(child: StackChild): void;
  /** Must not throw. */
  cleanUp(child: StackChild): void;
  /** Called after each change of `states`. */
  changed(): void;
  log(text: string): void;
  /** Called at most once. */
  gaveUp(lastEnd: string): void;
}

export class Keeper {
  readonly #host: KeeperHost;
  readonly #component: ProcessState["component"];
  readonly #policy = new RestartPolicy();
  readonly #draining = new Set<StackChild>();
  /** Every process that has not ended. */
  readonly #living = new Set<StackChild>();
  /** Processes that this keeper ends itself. */
  readonly #expected = new WeakSet<StackChild>();
  #current: StackChild | undefined;
  #status: ProcessState["status"] = "starting";
  #readyAt: number | undefined;
  #restarts = 0;
  #lastEnd: string | undefined;
  #mode: "first" | "kept" | "stopping" = "first";
  #cancelPause = (): void => {};

  constructor(component: ProcessState["component"], host: KeeperHost) {
    this.#component = component;
    this.#host = host;
  }

  /** @throws what the first process failed with. */
  async start(): Promise<void> {
    await this.#launch();
    if (this.#mode === "first") this.#mode = "kept";
  }

  /** @throws what the replacement failed with. */
  async replace(): Promise<void> {
    const next = this.#begin();
    try {
      await this.#host.makeReady(next);
    } catch (error) {
      next.kill();
      throw error;
    }
    const old = this.#current;
    this.#current = next;
    this.#status = "starting"; // Its end counts as that of the current process from now on.
    this.#readyAt = performance.now();
    if (old !== undefined && this.#living.has(old)) {
      this.#draining.add(old);
      this.#host.changed();
      await this.#host.replaced(old);
      for (const oldest of [...this.#draining].slice(0, -OLD_MAX)) this.#host.hurry(oldest);
    }
    if (this.#current === next && this.#status === "starting") this.#became(next);
  }

  /** Ends the process and starts it again at once, which does not count as a restart. Resolves when it is ready. */
  async renew(graceMs: number): Promise<void> {
    const before = this.#current;
    if (before !== undefined) this.#expected.add(before);
    await before?.stop(graceMs);
    await this.#launch();
  }

  async stop(graceMs: number): Promise<void> {
    this.#mode = "stopping";
    this.#cancelPause();
    await Promise.all([...this.#living].map((child) => child.stop(graceMs)));
  }

  /** Tells every process once more to stop. */
  hurry(): void {
    for (const child of this.#living) child.terminate();
  }

  killAll(): void {
    this.#mode = "stopping";
    for (const child of this.#living) child.kill();
  }

  get states(): readonly ProcessState[] {
    const { pid } = this.#current ?? {};
    const hasEnded = this.#status === "restarting";
    return [
      {
        component: this.#component,
        status: this.#status,
        restarts: this.#restarts,
        ...(pid === undefined || hasEnded ? {} : { pid }),
        ...defined({ lastEnd: this.#lastEnd }),
      },
      ...[...this.#draining].map(({ pid: old }) => ({
        component: this.#component,
        status: "draining" as const,
        restarts: 0,
        ...defined({ pid: old }),
      })),
    ];
  }

  #begin(): StackChild {
    const child = this.#host.start();
    this.#living.add(child);
    void child.ended.then((end) => this.#onEnd(child, end));
    return child;
  }

  async #launch(): Promise<void> {
    const child = this.#begin();
    this.#current = child;
    this.#readyAt = undefined;
    this.#status = "starting";
    this.#host.changed();
    try {
      await this.#host.makeReady(child);
    } catch (error) {
      child.kill();
      throw error;
    }
    if (this.#current === child && this.#status === "starting") this.#became(child);
  }

  #became(child: StackChild): void {
    this.#current = child;
    this.#readyAt = performance.now();
    this.#status = "ready";
    this.#host.begin(child);
    this.#host.changed();
  }

  #onEnd(child: StackChild, end: string): void {
    this.#living.delete(child);
    this.#host.cleanUp(child);
    if (this.#draining.delete(child)) return this.#host.changed();
    if (child !== this.#current || this.#mode !== "kept" || this.#expected.has(child)) return;
    this.#lastEnd = end;
    const pauseMs = this.#policy.next(this.#readyAt === undefined ? 0 : performance.now() - this.#readyAt);
    if (pauseMs === undefined) {
      this.#mode = "stopping";
      return this.#host.gaveUp(end);
    }
    this.#host.log(
      `the ${this.#component} has ended (${end}); it starts again${pauseMs === 0 ? "" : ` in ${pauseMs} ms`}`,
    );
    this.#restarts++;
    this.#status = "restarting";
    this.#host.changed();
    const timer = setTimeout(() => {
      this.#launch().catch((error: unknown) => {
        this.#host.log(`the ${this.#component} did not start: ${toError(error).message}`);
      });
    }, pauseMs);
    this.#cancelPause = () => clearTimeout(timer);
  }
}
