// The repository checks itself: what no compiler or linter sees, and a reviewer would have to remember.
//
// `npm run tidy`. Each rule is a function from the tree to its violations; `tidy.test.ts` plants at least one
// violation per rule and sees it found. A rule that meets a file which does not exist yet says nothing.

import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import {
  changelogShape,
  clausesHaveTests,
  commandsHaveHelp,
  invariantsPointAtFiles,
} from "./tidy/documents.ts";
import { importDirection, noImportCycles, noTestLibraries } from "./tidy/imports.ts";
import {
  bannedGlobals,
  glossary,
  noUnlinkedTodo,
  privateFiles,
  runsOnOldestNode,
  sizeRatchet,
  skipsHaveReasons,
  sqliteLocks,
  thrownIsRead,
} from "./tidy/sources.ts";
import { lockfileNamesNoAddress, noMachinePaths } from "./tidy/traces.ts";
import { readTree, type Rule, type Violation } from "./tidy/tree.ts";

export const RULES: Readonly<Record<string, Rule>> = {
  "import-direction": importDirection,
  "import-cycle": noImportCycles,
  "test-library": noTestLibraries,
  "banned-global": bannedGlobals,
  glossary,
  size: sizeRatchet,
  "old-node": runsOnOldestNode,
  "sqlite-lock": sqliteLocks,
  "thrown-text": thrownIsRead,
  "private-file": privateFiles,
  skip: skipsHaveReasons,
  todo: noUnlinkedTodo,
  clause: clausesHaveTests,
  invariant: invariantsPointAtFiles,
  changelog: changelogShape,
  "command-help": commandsHaveHelp,
  "machine-path": noMachinePaths,
  lockfile: lockfileNamesNoAddress,
};

export function tidy(root: string): readonly (Violation & { readonly rule: string })[] {
  const tree = readTree(root);
  return Object.entries(RULES).flatMap(([name, rule]) =>
    rule(tree).map((found) => ({ ...found, rule: name })),
  );
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const found = tidy(fileURLToPath(new URL("..", import.meta.url)));
  for (const { rule, file, line, what } of found) {
    console.log(`${file}${line === undefined ? "" : `:${line}`}: ${rule}: ${what}`);
  }
  console.log(
    found.length === 0 ? `tidy: ${Object.keys(RULES).length} rules hold` : `tidy: ${found.length} violations`,
  );
  process.exitCode = found.length === 0 ? 0 : 1;
}
