// What happened in a simulation, in order: for the comparison of two runs, and for whoever reads why one failed.
//
// Lines are made only when somebody reads them: most runs fail nobody.

interface Line {
  readonly at: number;
  readonly who: string;
  readonly what: string;
  readonly about: (() => string) | undefined;
}

export class EventLog {
  readonly #now: () => number;
  readonly #lines: Line[] = [];

  /** @param now milliseconds since the simulation began. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** @param about more to say, of things that do not change any more. */
  add(who: string, what: string, about?: () => string): void {
    this.#lines.push({ at: this.#now(), who, what, about });
  }

  get length(): number {
    return this.#lines.length;
  }

  /** The last lines, or all. */
  tail(count = Infinity): string[] {
    const from = Math.max(0, this.#lines.length - count);
    return this.#lines.slice(from).map(({ at, who, what, about }) => {
      const more = about === undefined ? "" : ` ${about()}`;
      return `${String(at).padStart(8)} ${who.padEnd(8)} ${what}${more}`;
    });
  }
}
