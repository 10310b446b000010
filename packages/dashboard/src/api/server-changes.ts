// `ServerChanges`: tells screens what has changed on the server, so that they show it or read it again.
//
//   - A change is read at once. While changes go on, a screen rests between reads for a multiple of a read's
//     time. Neither the page nor the server stalls.
//   - A change that comes while a screen reads or rests is read afterwards.
//   - When the stream breaks, screens read too, and so they find the error and show it.
//   - A hidden page has no stream. It reads every `HIDDEN_MS`, because its title shows the number of open
//     questions.
//   - A few changed sessions come with the change. A screen that can show them without a read does so at
//     once, and reads only after `CHECK_MS`.

import { ApiError, watchChanges, type Change } from "./client.ts";

const HIDDEN_MS = 15_000;
const REFUSED_MS = 5_000;
const REST_MS = 16;
const REST = 2;
const CHECK_MS = 2_000;

const UNKNOWN: Change = { sessions: [], hasOthers: true };

/** A screen's side. Neither function may throw. */
export interface ChangeListener {
  read(): Promise<unknown>;
  /** Shows changed sessions. @returns whether the screen is as after a read. */
  show?(sessions: Change["sessions"]): boolean;
}

export class ServerChanges {
  readonly #screens = new Set<Screen>();
  readonly #abort = new AbortController();

  begin(): void {
    const { signal } = this.#abort;
    void this.#watch();
    const timer = setInterval(() => {
      // A hidden page has no stream, and reads for the number in its title.
      if (document.hidden) this.#changed(UNKNOWN);
    }, HIDDEN_MS);
    signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  }

  end(): void {
    this.#abort.abort();
  }

  /** @returns the unsubscriber. */
  onChange(listener: ChangeListener): () => void {
    const screen = new Screen(listener);
    this.#screens.add(screen);
    return () => {
      screen.end();
      this.#screens.delete(screen);
    };
  }

  async #watch(): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted) {
      try {
        await watchChanges({
          signal,
          onEvent: (change) => this.#changed(change),
          onBreak: (error) => {
            // The screens read, and so they find the error and show it.
            if (error !== undefined) this.#changed(UNKNOWN);
          },
        });
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) return;
      }
      // A user has too many streams, or an older server has none.
      await new Promise((resolve) => setTimeout(resolve, REFUSED_MS));
      this.#changed(UNKNOWN);
    }
  }

  #changed(change: Change): void {
    for (const screen of this.#screens) screen.changed(change);
  }
}

class Screen {
  readonly #listener: ChangeListener;
  #isBehind = false;
  #isBusy = false;
  #isOver = false;
  #check: ReturnType<typeof setTimeout> | undefined;

  constructor(listener: ChangeListener) {
    this.#listener = listener;
  }

  changed({ sessions, hasOthers }: Change): void {
    const isShown = this.#listener.show?.(sessions) === true && !hasOthers;
    if (isShown) this.#check ??= setTimeout(() => this.#readSoon(), CHECK_MS);
    else this.#readSoon();
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#check);
  }

  #readSoon(): void {
    clearTimeout(this.#check);
    this.#check = undefined;
    this.#isBehind = true;
    if (!this.#isBusy) void this.#catchUp();
  }

  async #catchUp(): Promise<void> {
    this.#isBusy = true;
    while (this.#isBehind && !this.#isOver) {
      this.#isBehind = false;
      const begunAt = performance.now();
      await this.#listener.read();
      const restMs = REST_MS + REST * (performance.now() - begunAt);
      // A screen rests between reads, so that neither the page nor the server stalls.
      await new Promise((resolve) => setTimeout(resolve, restMs));
    }
    this.#isBusy = false;
  }
}
