// `HarnessStore`: what a session of a harness keeps between its processes. A harness gives its state between
// turns only.
//
//   - The state of the last turn that ended in order is one file, replaced at once.
//   - The calls of the present turn are another file, a line each, removed once the state of that turn is
//     stored. After a crash that file names the calls which the harness does not remember.

import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { HarnessState } from "./harness-v1.ts";

const PRIVATE = { mode: 0o600, flush: true } as const;

export interface MadeCall {
  readonly id: string;
  readonly name: string;
  readonly input: string;
}

export interface Tokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The content of the file of a session. */
export interface KeptSession {
  readonly state: HarnessState;
  /** The last sum that the harness has reported. */
  readonly total: Tokens;
}

/** A line of the file of a turn. */
type Line = { readonly call: MadeCall } | { readonly result: string; readonly text: string };

/** A call that the harness does not remember; `null` for one without a result. */
export interface ForgottenCall extends MadeCall {
  readonly result: string | null;
}

export class HarnessStore {
  readonly #state: string;
  readonly #turn: string;

  /** @param folder a folder for this user alone. */
  constructor(folder: string, sessionId: string) {
    this.#state = join(folder, `${sessionId}.json`);
    this.#turn = join(folder, `${sessionId}.turn`);
  }

  /** `undefined` for a session without a turn that ended in order. */
  kept(): KeptSession | undefined {
    if (!existsSync(this.#state)) return undefined;
    return JSON.parse(readFileSync(this.#state, "utf8")) as KeptSession;
  }

  /** The calls of turns that were cut off since the state was stored. */
  forgotten(): readonly ForgottenCall[] {
    if (!existsSync(this.#turn)) return [];
    const lines = readFileSync(this.#turn, "utf8")
      .split("\n")
      .flatMap((line): readonly Line[] => {
        try {
          return [JSON.parse(line) as Line];
        } catch {
          return []; // The last line may be cut.
        }
      });
    const results = new Map(lines.flatMap((line) => ("result" in line ? [[line.result, line.text]] : [])));
    return lines.flatMap((line) =>
      "call" in line ? [{ ...line.call, result: results.get(line.call.id) ?? null }] : [],
    );
  }

  note(line: Line): void {
    appendFileSync(this.#turn, `${JSON.stringify(line)}\n`, PRIVATE);
  }

  keep(session: KeptSession): void {
    writeFileSync(`${this.#state}.new`, JSON.stringify(session), PRIVATE);
    renameSync(`${this.#state}.new`, this.#state);
    rmSync(this.#turn, { force: true });
  }
}
