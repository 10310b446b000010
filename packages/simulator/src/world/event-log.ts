// `EventLog`: the events of a simulation in order, to compare two runs, and to explain a failed one.
//
// Lines are formatted only when somebody reads them, because most runs do not fail.

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

  /** @param about formats further details later, from values that do not change any more. */
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
