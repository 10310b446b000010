// `configChanges`: what an import would change here, for people to read before anything is replaced.
//
// An import sets what is in the file, and everything that only this machine has stays. A policy is an
// exception. It is replaced whole, because a mixture of two policies would be neither.

import type { Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import type { ConfigFile } from "./config-file.ts";

/** One thing that an import changes, under its path in the file. */
export interface ConfigChange {
  readonly what: string;
  /** Absent for what is new. */
  readonly from?: string;
  /** Absent for what is removed. */
  readonly to?: string;
}

const VALUE_CHARS = 300;
const TEXT_LINES_MAX = 40;

export function configChanges(here: ConfigFile, given: ConfigFile): readonly ConfigChange[] {
  const [before, after] = [itemsOf(here), itemsOf(given)];
  const set = [...after].flatMap(([what, to]): ConfigChange[] => {
    const from = before.get(what);
    if (from === to) return [];
    return [from === undefined ? { what, to } : { what, from, to }];
  });
  const policy = `${POLICY}/`;
  const removed = [...before].flatMap(([what, from]) =>
    given.permissions.runnerPolicy !== undefined && what.startsWith(policy) && !after.has(what)
      ? [{ what, from }]
      : [],
  );
  return [...set, ...removed];
}

const POLICY = "permissions/runnerPolicy";

/** Everything in a file by its path there. A text is itself, and another value is JSON. */
function itemsOf({ user, project, permissions }: ConfigFile): Map<string, string> {
  const json = (place: string, values: object): [string, string][] =>
    Object.entries(values).map(([name, value]) => [`${place}/${name}`, JSON.stringify(value)]);
  return new Map([
    ...json("user/settings", user.settings),
    ...json("project/settings", project.settings),
    ...json(POLICY, permissions.runnerPolicy ?? {}),
    ...Object.entries(user.agents).map(([name, text]) => [`user/agents/${name}`, text] as const),
    ...Object.entries(project.agents).map(([name, text]) => [`project/agents/${name}`, text] as const),
    ...project.schedules.map(
      ({ id, ...schedule }) => [`project/schedules/${id}`, JSON.stringify(schedule)] as const,
    ),
  ]);
}

/** The lines that show a change. */
export function changeLines({ what, from, to }: ConfigChange, { paint }: Io["notes"]): readonly string[] {
  const mark = from === undefined ? paint.green("+") : to === undefined ? paint.red("-") : paint.yellow("~");
  const title = `${mark} ${paint.bold(plainLine(what, VALUE_CHARS))}`;
  if (!what.includes("/agents/")) {
    const values = [from, to].filter((value) => value !== undefined);
    return [`${title}: ${values.map((value) => plainLine(value, VALUE_CHARS)).join(" → ")}`];
  }
  const [removed, added] = changedLines(from ?? "", to ?? "");
  const lines = [
    ...removed.map((line) => paint.red(`    - ${plainLine(line, VALUE_CHARS)}`)),
    ...added.map((line) => paint.green(`    + ${plainLine(line, VALUE_CHARS)}`)),
  ];
  const more = lines.length - TEXT_LINES_MAX;
  return [
    title,
    ...lines.slice(0, TEXT_LINES_MAX),
    ...(more > 0 ? [paint.dim(`    and ${more} lines more`)] : []),
  ];
}

/** The lines between the common beginning and the common end of two texts. */
function changedLines(from: string, to: string): readonly [readonly string[], readonly string[]] {
  const [before, after] = [linesOf(from), linesOf(to)];
  let start = 0;
  while (start < Math.min(before.length, after.length) && before[start] === after[start]) start++;
  let end = 0;
  const isSame = (): boolean => before.at(-1 - end) === after.at(-1 - end);
  while (end < Math.min(before.length, after.length) - start && isSame()) end++;
  return [before.slice(start, before.length - end), after.slice(start, after.length - end)];
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.trimEnd().split("\n");
}
