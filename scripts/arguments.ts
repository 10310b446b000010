// Reads the arguments of a script. `--help` prints the script's first comment; a wrong argument ends the
// script with 2.

import { readFileSync } from "node:fs";
import { parseArgs, type ParseArgsConfig } from "node:util";
import { toHoldfastError } from "@holdfast/core";

type Options = NonNullable<ParseArgsConfig["options"]>;

/** @param file the script, whose first comment is its help. */
export function readArguments<const O extends Options>(file: string, options: O, allowPositionals = false) {
  const config = {
    options: { ...options, help: { type: "boolean", short: "h" } },
    allowPositionals,
  } as const;
  try {
    const read = parseArgs(config);
    if (!process.argv.slice(2).some((arg) => arg === "--help" || arg === "-h")) return read;
  } catch (thrown) {
    // Node's own first sentence says which option; the rest is advice about quoting.
    refuse(toHoldfastError(thrown).message.split(". ")[0] ?? "", "-- --help shows the options");
  }
  return printHelp(file);
}

/** Print the first comment of a script, and end with 0. */
export function printHelp(file: string): never {
  const lines = readFileSync(file, "utf8").split("\n");
  const end = lines.findIndex((line) => !line.startsWith("//"));
  console.log(
    lines
      .slice(0, end)
      .map((line) => line.replace(/^\/\/ ?/, ""))
      .join("\n"),
  );
  process.exit(0);
}

/** A whole number of at most nine digits, not below `least`. */
export function readWhole(name: string, text: string, least = 1): number {
  if (/^\d{1,9}$/.test(text) && Number(text) >= least) return Number(text);
  return refuse(`--${name} takes a whole number from ${least} to 999999999`, `it is ${text} now`);
}

export function refuse(what: string, hint: string): never {
  console.error(`error[E_USAGE]: ${what}\n  ${hint}`);
  process.exit(2);
}
