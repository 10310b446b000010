// `ClaudeOptions`: the options of Claude Code that not every version has. The program itself says which it
// knows.

import { statSync } from "node:fs";
import type { ProcessSupervisor } from "@holdfast/system";

const HELP_MS = 60_000;
const HELP_BYTES = 256 * 1024;

export class ClaudeOptions {
  readonly #supervisor: ProcessSupervisor;
  /** The help of each program, by its path and the time of its last change. */
  readonly #helps = new Map<string, Promise<string>>();

  constructor(supervisor: ProcessSupervisor) {
    this.#supervisor = supervisor;
  }

  /**
   * The program's own limit of the costs of one process, as a second fence around the budget of the session.
   * Observed with 2.1.329: the limit counts the calls of its process alone, and ends the turn after the call
   * that exceeds it.
   */
  async budget(
    program: string,
    costMicroUsdMax: number | undefined,
    place: { readonly env: Readonly<Record<string, string>>; readonly cwd: string },
  ): Promise<readonly string[]> {
    if (costMicroUsdMax === undefined || costMicroUsdMax <= 0) return [];
    const help = await this.#help(program, place);
    return help.includes("--max-budget-usd") ? ["--max-budget-usd", (costMicroUsdMax / 1e6).toFixed(6)] : [];
  }

  #help(
    program: string,
    place: { readonly env: Readonly<Record<string, string>>; readonly cwd: string },
  ): Promise<string> {
    const key = `${program} ${statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0}`;
    const known = this.#helps.get(key);
    if (known !== undefined) return known;
    const asked = this.#supervisor
      .start({
        argv: [program, "--help"],
        ...place,
        timeoutMs: HELP_MS,
        killGraceMs: 0,
        outputBytes: HELP_BYTES,
      })
      .then(async ({ ended }) => (await ended).stdout);
    this.#helps.set(key, asked);
    return asked;
  }
}
