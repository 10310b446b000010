// The repository checks itself: what no compiler or linter sees, and a reviewer would have to remember.
//
// `npm run tidy`. Each rule is a function from the tree to its violations; `tidy.test.ts` plants at least one
// violation per rule and sees it found. A rule that meets a file which does not exist yet says nothing.
//
// Some rules have a falling baseline: a file may have as many offences as `scripts/tidy/RULE-baseline.json`
// says.
//
//   --list RULE [PATH…]  print the offences against such a rule, in these files and folders
//   --lower              lower the baselines to the offences that there still are
//   --moved              the same after text has moved: its offences move to their new file of the same package
//   --write              write the tables of CONTRIBUTING.md that show the rooms of scripts/tidy/rooms.ts

import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { readArguments } from "./arguments.ts";
import { baselineFile, lowered, moved, type Offence } from "./tidy/baseline.ts";
import { commitSubjects, whyNoCommits } from "./tidy/commits.ts";
import {
  changelogShape,
  clausesHaveTests,
  commandsHaveHelp,
  decisionIndex,
  documentLinks,
  promisesPointAtFiles,
} from "./tidy/documents.ts";
import { gitHasOptions } from "./tidy/git-calls.ts";
import { headerName } from "./tidy/headers.ts";
import { importDirection, noImportCycles, noTestLibraries, packageMap } from "./tidy/imports.ts";
import { inputsHaveRows } from "./tidy/inputs.ts";
import { labelUnique } from "./tidy/labels.ts";
import { lateImports } from "./tidy/late-imports.ts";
import { loopsAreRepeats } from "./tidy/loops.ts";
import { plainWords, plainWordsOffences } from "./tidy/plain-words.ts";
import { roomDirection } from "./tidy/room-direction.ts";
import { ROOM_DOCUMENT, roomTables, withRoomTables } from "./tidy/room-tables.ts";
import { sizeBudgets } from "./tidy/sizes.ts";
import {
  bannedGlobals,
  glossary,
  noUnlinkedTodo,
  privateFiles,
  runsOnOldestNode,
  skipsHaveReasons,
  sqliteLocks,
  thrownIsRead,
} from "./tidy/sources.ts";
import { lockfileNamesNoAddress, noMachinePaths } from "./tidy/traces.ts";
import { readTree, type Rule, type Tree, type Violation } from "./tidy/tree.ts";

export const RULES: Readonly<Record<string, Rule>> = {
  "import-direction": importDirection,
  "import-cycle": noImportCycles,
  "package-map": packageMap,
  "room-direction": roomDirection,
  "room-table": roomTables,
  "test-library": noTestLibraries,
  "banned-global": bannedGlobals,
  glossary,
  size: sizeBudgets,
  "old-node": runsOnOldestNode,
  "sqlite-lock": sqliteLocks,
  "thrown-text": thrownIsRead,
  "private-file": privateFiles,
  "git-call": gitHasOptions,
  input: inputsHaveRows,
  "own-loop": loopsAreRepeats,
  "late-import": lateImports,
  skip: skipsHaveReasons,
  todo: noUnlinkedTodo,
  "plain-words": plainWords,
  clause: clausesHaveTests,
  promise: promisesPointAtFiles,
  "document-link": documentLinks,
  "decision-index": decisionIndex,
  "label-unique": labelUnique,
  "header-name": headerName,
  "commit-subject": commitSubjects,
  changelog: changelogShape,
  "command-help": commandsHaveHelp,
  "machine-path": noMachinePaths,
  lockfile: lockfileNamesNoAddress,
};

/** Rules with a falling baseline, each by the function that finds its offences. */
const BASELINES: Readonly<Record<string, (tree: Tree) => readonly Offence[]>> = {
  "plain-words": plainWordsOffences,
};

export function tidy(tree: Tree): readonly (Violation & { readonly rule: string })[] {
  return Object.entries(RULES).flatMap(([name, rule]) =>
    rule(tree).map((found) => ({ ...found, rule: name })),
  );
}

/** The offences against a rule with a baseline, in these files and folders; in all files when none is given. */
export function listOffences(root: string, rule: string, paths: readonly string[]): readonly Offence[] {
  const offences = BASELINES[rule]?.(readTree(root));
  if (offences === undefined)
    throw new RangeError(`no baseline of ${rule}; there is one of ${names(BASELINES)}`);
  const folders = paths.map((path) => path.replace(/^\.\/|\/$/g, ""));
  return offences.filter(
    ({ file }) => paths.length === 0 || folders.some((path) => file === path || file.startsWith(`${path}/`)),
  );
}

/** Writes each baseline to fit the offences that there are now. */
export function writeBaselines(root: string, change: typeof lowered | typeof moved): void {
  const tree = readTree(root);
  for (const [rule, offences] of Object.entries(BASELINES)) {
    const baseline = change(tree, rule, offences(tree));
    writeFileSync(join(root, baselineFile(rule)), `${JSON.stringify(baseline, undefined, 2)}\n`);
  }
}

function names(record: Readonly<Record<string, unknown>>): string {
  return Object.keys(record).join(", ");
}

function main(root: string): number {
  const { values, positionals } = readArguments(
    fileURLToPath(import.meta.url),
    {
      list: { type: "string" },
      lower: { type: "boolean" },
      moved: { type: "boolean" },
      write: { type: "boolean" },
    },
    true,
  );
  if (values.lower === true || values.moved === true) {
    writeBaselines(root, values.moved === true ? moved : lowered);
    return 0;
  }
  if (values.write === true) {
    const path = join(root, ROOM_DOCUMENT);
    writeFileSync(path, withRoomTables(readFileSync(path, "utf8")));
    return 0;
  }
  if (values.list !== undefined) {
    const offences = listOffences(root, values.list, positionals);
    for (const { file, line, reason, text } of offences) console.log(`${file}:${line}: ${reason}: ${text}`);
    console.log(`${values.list}: ${offences.length} offences`);
    return 0;
  }
  const tree = readTree(root);
  const found = tidy(tree);
  for (const { rule, file, line, what } of found) {
    console.log(`${file}${line === undefined ? "" : `:${line}`}: ${rule}: ${what}`);
  }
  const skipped = whyNoCommits(tree);
  if (skipped !== undefined) console.log(`commit-subject is skipped: ${skipped}`);
  const rules = Object.keys(RULES).length;
  console.log(found.length === 0 ? `tidy: ${rules} rules hold` : `tidy: ${found.length} violations`);
  return found.length === 0 ? 0 : 1;
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.exitCode = main(fileURLToPath(new URL("..", import.meta.url)));
}
