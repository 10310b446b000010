// `holdSecrets`: what a process does from the moment that it holds secrets.
//
//   - Secrets are replaced in everything that the process writes to standard output and standard error. That
//     includes the output of agents, warnings, and the error of a crash. Leaky: a value that is divided over
//     two writes is not found.
//   - On Linux a core file of the process, or of one that it starts, contains no memory.

import { writeFileSync } from "node:fs";
import { Redactor } from "@holdfast/system";
import type { Io } from "../frame/command.ts";

/** @returns the redactor of these values, to which later ones are added. */
export function holdSecrets(values: Iterable<string>, io: Pick<Io, "filterOutput">): Redactor {
  const redactor = new Redactor(values);
  // mutant: output-not-redacted
  io.filterOutput((text) => redactor.text(text));
  try {
    // mutant: memory-in-core-files
    writeFileSync("/proc/self/coredump_filter", "0"); // A core file then contains no memory.
  } catch {
    // Another system, or a kernel without core files.
  }
  return redactor;
}
