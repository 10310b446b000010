// A falling baseline: how many offences each file had when its rule was introduced. The numbers only go down.

import type { Tree, Violation } from "./tree.ts";

export interface Offence {
  readonly file: string;
  readonly line: number;
  /** The rule's part that is broken, in a few words. */
  readonly reason: string;
  readonly text: string;
}

/** Characters of a sentence that a violation shows; `--list` shows it whole. */
const TEXT_MAX = 120;

type Baseline = Readonly<Record<string, number>>;

/** A file may not have more offences than its number, nor keep a number that is higher than its offences. */
export function againstBaseline(
  tree: Tree,
  rule: string,
  offences: readonly Offence[],
): readonly Violation[] {
  const allowed = readBaseline(tree, rule);
  const found = countByFile(offences);
  const violations: Violation[] = [];
  for (const [file, count] of Object.entries(found)) {
    const max = allowed[file] ?? 0;
    if (count > max)
      violations.push(
        ...excess(
          offences.filter((offence) => offence.file === file),
          max,
          rule,
        ),
      );
  }
  for (const [file, max] of Object.entries(allowed)) {
    const count = found[file] ?? 0;
    if (count >= max) continue;
    const what = `has ${count} offences against ${rule}, and ${max} are allowed: run \`node scripts/tidy.ts --lower\``;
    violations.push({ file, what });
  }
  return violations;
}

/** The baseline with every number that is too high lowered. No number rises, and no file is added. */
export function lowered(tree: Tree, rule: string, offences: readonly Offence[]): Baseline {
  const found = countByFile(offences);
  const allowed = readBaseline(tree, rule);
  return sorted(Object.keys(allowed).map((file) => [file, Math.min(allowed[file]!, found[file] ?? 0)]));
}

/**
 * The baseline after offences moved between files of a package, with the text that they are in. In a package
 * that has no more of them than before, each file is allowed the offences that it has. In any other package
 * numbers are only lowered.
 */
export function moved(tree: Tree, rule: string, offences: readonly Offence[]): Baseline {
  const found = countByFile(offences);
  const allowed = readBaseline(tree, rule);
  const [before, now] = [sumByPackage(allowed), sumByPackage(found)];
  const isMove = (file: string): boolean => (now[packageOf(file)] ?? 0) <= (before[packageOf(file)] ?? 0);
  const files = new Set([...Object.keys(allowed), ...Object.keys(found)]);
  return sorted(
    [...files].map((file) => {
      const count = found[file] ?? 0;
      return [file, isMove(file) ? count : Math.min(count, allowed[file] ?? 0)];
    }),
  );
}

export function baselineFile(rule: string): string {
  return `scripts/tidy/${rule}-baseline.json`;
}

/** Nothing tells the new offences of a file from its old ones, so a file with old ones is reported by their number. */
function excess(offences: readonly Offence[], max: number, rule: string): Violation[] {
  if (max === 0) {
    return offences.map(({ file, line, reason, text }) => ({
      file,
      line,
      what: `${reason}: ${text.slice(0, TEXT_MAX)}`,
    }));
  }
  const file = offences[0]!.file;
  const list = `node scripts/tidy.ts --list ${rule} ${file}`;
  return [{ file, what: `${offences.length} offences, and ${max} are allowed: \`${list}\` shows them` }];
}

function readBaseline(tree: Tree, rule: string): Baseline {
  return JSON.parse(tree.read(baselineFile(rule)) ?? "{}") as Baseline;
}

function sorted(entries: readonly (readonly [string, number])[]): Baseline {
  return Object.fromEntries(
    entries.filter(([, count]) => count > 0).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
}

function sumByPackage(counts: Baseline): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [file, count] of Object.entries(counts)) {
    sums[packageOf(file)] = (sums[packageOf(file)] ?? 0) + count;
  }
  return sums;
}

function packageOf(file: string): string {
  return /^packages\/[^/]+/.exec(file)?.[0] ?? file.split("/")[0]!;
}

function countByFile(offences: readonly Offence[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { file } of offences) counts[file] = (counts[file] ?? 0) + 1;
  return counts;
}
