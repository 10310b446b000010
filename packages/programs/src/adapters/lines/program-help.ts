// `ProgramHelp`: what a program says of its options, for those that not every version has.

import { statSync } from "node:fs";
import type { ProcessSupervisor } from "@holdfast/system";

const HELP_MS = 60_000;
const HELP_BYTES = 256 * 1024;

type Place = Pick<Parameters<ProcessSupervisor["start"]>[0], "env" | "cwd">;

export class ProgramHelp {
  readonly #supervisor: ProcessSupervisor;
  /** The help of each program, by its path and the time of its last change. */
  readonly #helps = new Map<string, Promise<string>>();

  constructor(supervisor: ProcessSupervisor) {
    this.#supervisor = supervisor;
  }

  of(program: string, place: Place): Promise<string> {
    const key = `${program} ${statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0}`;
    const known = this.#helps.get(key) ?? this.#ask(program, place);
    this.#helps.set(key, known);
    return known;
  }

  async #ask(program: string, place: Place): Promise<string> {
    const asked = await this.#supervisor.start({
      argv: [program, "--help"],
      ...place,
      timeoutMs: HELP_MS,
      killGraceMs: 0,
      outputBytes: HELP_BYTES,
    });
    return (await asked.ended).stdout;
  }
}
