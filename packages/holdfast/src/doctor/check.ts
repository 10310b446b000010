// A check of the installation: what was found, whether it is as it should be, and what a person should do
// (`runChecks`).
//
//   - A check changes nothing, and ends: after `CHECK_MS` it is a warning.
//   - An error that a check throws is a problem. The exit code is that of the error.
//   - No check prints the value of a secret.

import { clearTimeout, setTimeout } from "node:timers";
import { shownError } from "@holdfast/terminal/frame/command-error";
import type { Look } from "@holdfast/terminal/frame/command";
import { count, plainLine, table, wrapped } from "@holdfast/terminal/frame/plain-text";

/** One text, or several that are shown one below the other. */
type Texts = string | readonly string[];

/** The result of a check. A warning leaves Holdfast usable, a problem does not. */
export type Finding =
  | { readonly status: "ok"; readonly found: Texts; readonly fix?: Texts }
  | { readonly status: "warning"; readonly found: Texts; readonly fix: Texts }
  | { readonly status: "problem"; readonly found: string; readonly fix: string; readonly exitCode: number };

export type Check = Finding & { readonly subject: string };

export type Checks = Readonly<Record<string, () => Finding | Promise<Finding>>>;

const CHECK_MS = 10_000;
const FOUND_CHARS = 400;
const WIDTH_MIN = 40;
const NAMES_SHOWN = 5;
const NAME_CHARS = 60;

/** All of them at once, in their order. Never rejects. */
export function runChecks(checks: Checks, checkMs = CHECK_MS): Promise<readonly Check[]> {
  return Promise.all(
    Object.entries(checks).map(async ([subject, check]) => ({
      subject,
      ...(await inTime(check, checkMs).catch(problemOf)),
    })),
  );
}

async function inTime(check: Checks[string], checkMs: number): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Finding>((resolve) => {
    timer = setTimeout(
      () =>
        resolve({ status: "warning", found: `no answer in ${checkMs / 1_000} s`, fix: "try again later" }),
      checkMs,
    );
  });
  try {
    return await Promise.race([check(), late]);
  } finally {
    clearTimeout(timer);
  }
}

export function problemOf(thrown: unknown): Extract<Finding, { status: "problem" }> {
  const { exitCode, message, at, fix = "report this defect of Holdfast" } = shownError(thrown);
  const place = at === undefined || message.includes(at) ? "" : ` (${at})`;
  return { status: "problem", found: `${message}${place}`, fix, exitCode };
}

/** A line for each check, below it what to do, and at the end how many need a person. */
export function checkLines(checks: readonly Check[], { paint, symbols, columns }: Look): string[] {
  const marks = {
    ok: paint.green(symbols.done),
    warning: paint.yellow(symbols.warn),
    problem: paint.red(symbols.failed),
  };
  const indent = Math.max(...checks.map(({ subject }) => subject.length)) + "✓   ".length;
  const broken = (texts: Texts): string[] =>
    [texts]
      .flat()
      .flatMap((text) => wrapped(plainLine(text, FOUND_CHARS), Math.max(WIDTH_MIN, columns - indent)));
  const rows = checks.flatMap(({ subject, status, found, fix }) => {
    const [first = "", ...others] = broken(found);
    return [
      [`${marks[status]} ${subject}`, first],
      ...others.map((line) => ["", line]),
      ...(fix === undefined ? [] : broken(fix)).map((line) => ["", paint.dim(line)]),
    ];
  });
  const counted = (status: Check["status"]): number =>
    checks.filter((check) => check.status === status).length;
  const [problems, warnings] = [counted("problem"), counted("warning")];
  const mark = marks[problems > 0 ? "problem" : warnings > 0 ? "warning" : "ok"];
  const numbers = [problems === 0 ? "no problem" : count(problems, "problem"), count(warnings, "warning")];
  return [...table(rows), "", `${mark} the installation has ${numbers.join(" and ")}`];
}

/** As one text, for programs. */
export function joined(texts: Texts): string {
  return typeof texts === "string" ? texts : texts.join("; ");
}

/** The first names of a list, and how many more there are. */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_SHOWN).map((name) => plainLine(name, NAME_CHARS));
  const more = names.length - shown.length;
  return [...shown, ...(more === 0 ? [] : [`${more} more`])].join(", ");
}
