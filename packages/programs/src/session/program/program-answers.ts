// `ProgramAnswers`: what a program says of itself, such as its version and its options. A command looks at a
// program before the session that starts it does, and a real program needs up to a second to answer.

import { statSync } from "node:fs";
import type { ProcessReport, ProcessSupervisor } from "@holdfast/system/processes";

/** Some programs need seconds to start, and more on a busy machine. */
const ANSWER_MS = 60_000;
const ANSWER_BYTES = 256 * 1024;
/** How long an answer holds. The file of the program may be a script that starts another one each time. */
const KNOWN_MS = 60_000;
const KNOWN_MAX = 32;

type Place = Pick<Parameters<ProcessSupervisor["start"]>[0], "env" | "cwd">;

interface Known {
  readonly report: Promise<ProcessReport>;
  /** By `performance.now()`. */
  readonly until: number;
}

export class ProgramAnswers {
  readonly #supervisor: ProcessSupervisor;
  /** By the program, the time of its last change and the argument. */
  readonly #known = new Map<string, Known>();

  constructor(supervisor: ProcessSupervisor) {
    this.#supervisor = supervisor;
  }

  /** How the program ends when it is called with this argument alone. Only an answer with exit code 0 is kept. */
  async of(program: string, argument: "--version" | "--help", place: Place): Promise<ProcessReport> {
    const changedAt = statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    const key = `${program} ${changedAt} ${argument}`;
    const known = this.#known.get(key);
    if (known !== undefined && performance.now() < known.until) return known.report;
    this.#known.delete(key);
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size === KNOWN_MAX) this.#known.delete(oldest);
    const report = this.#ask(key, { ...place, argv: [program, argument] });
    this.#known.set(key, { report, until: performance.now() + KNOWN_MS });
    return report;
  }

  /** Forgets a failure before its callers hear of it, so that the next question starts the program. */
  async #ask(
    key: string,
    call: Place & { readonly argv: readonly [string, string] },
  ): Promise<ProcessReport> {
    const limits = { timeoutMs: ANSWER_MS, killGraceMs: 0, outputBytes: ANSWER_BYTES };
    let isAnswer = false;
    try {
      const report = await (await this.#supervisor.start({ ...call, ...limits })).ended;
      isAnswer = report.end.type === "exit" && report.end.exitCode === 0;
      return report;
    } finally {
      if (!isAnswer) this.#known.delete(key);
    }
  }
}
