// `ServerChanges`: tells screens to read again what they show, because something has changed on the server.
//
//   server-changes-1. A change is read at once. While changes go on, a screen rests between reads for a multiple of a read's time.
//       Neither the page nor the server stalls.
//   server-changes-2. A change that comes while a screen reads or rests is read afterwards.
//   server-changes-3. When the stream breaks, screens read too, and so they find the error and show it.
//   server-changes-4. A hidden page has no stream. It reads every `HIDDEN_MS`, because its title shows the number of open questions.

import { ApiError, watchChanges } from "./client.ts";

const HIDDEN_MS = 15_000;
const REFUSED_MS = 5_000;
const REST_MS = 50;
const REST = 3;

export class ServerChanges {
  readonly #screens = new Set<Screen>();
  readonly #abort = new AbortController();

  begin(): void {
    const { signal } = this.#abort;
    void this.#watch();
    const timer = setInterval(() => {
      if (document.hidden) this.#changed(); // server-changes-4.
    }, HIDDEN_MS);
    signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  }

  end(): void {
    this.#abort.abort();
  }

  /** @param read must not throw. @returns the unsubscriber. */
  onChange(read: () => Promise<unknown>): () => void {
    const screen = new Screen(read);
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
          onEvent: () => this.#changed(),
          onBreak: (error) => {
            if (error !== undefined) this.#changed(); // server-changes-3.
          },
        });
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) return;
      }
      // A user has too many streams, or an older server has none.
      await new Promise((resolve) => setTimeout(resolve, REFUSED_MS));
      this.#changed();
    }
  }

  #changed(): void {
    for (const screen of this.#screens) screen.changed();
  }
}

class Screen {
  readonly #read: () => Promise<unknown>;
  #isBehind = false;
  #isBusy = false;
  #isOver = false;

  constructor(read: () => Promise<unknown>) {
    this.#read = read;
  }

  changed(): void {
    this.#isBehind = true;
    if (!this.#isBusy) void this.#catchUp();
  }

  end(): void {
    this.#isOver = true;
  }

  async #catchUp(): Promise<void> {
    this.#isBusy = true;
    while (this.#isBehind && !this.#isOver) {
      this.#isBehind = false; // server-changes-2.
      const begunAt = performance.now();
      await this.#read();
      const restMs = REST_MS + REST * (performance.now() - begunAt);
      await new Promise((resolve) => setTimeout(resolve, restMs)); // server-changes-1.
    }
    this.#isBusy = false;
  }
}
