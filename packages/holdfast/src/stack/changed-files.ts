// `FileWatch`: notices that files have changed, by looking at them.
//
// Notices of the system would be sooner by some milliseconds. They are lost on some file systems, and editors
// replace files in ways that end them.

import { statSync } from "node:fs";
import { clearInterval, setInterval } from "node:timers";

const LOOK_MS = 300;

export class FileWatch {
  readonly #onChange: () => void;
  readonly #timer: NodeJS.Timeout;
  #known = new Map<string, string>();
  #isChanging = false;

  /** @param onChange called after files have changed, once they are the same for one look. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#timer.unref();
  }

  /** Watch these files, as they are now, in place of those before. */
  watch(files: readonly string[]): void {
    this.#known = new Map(files.map((file) => [file, this.#known.get(file) ?? stateOf(file)]));
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    let isOther = false;
    for (const [file, before] of this.#known) {
      const now = stateOf(file);
      if (now === before) continue;
      this.#known.set(file, now);
      isOther = true;
    }
    // An editor or a checkout may still be writing.
    if (isOther) this.#isChanging = true;
    else if (this.#isChanging) {
      this.#isChanging = false;
      this.#onChange();
    }
  }
}

function stateOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? "" : `${found.ino} ${found.size} ${found.mtimeMs}`;
}
