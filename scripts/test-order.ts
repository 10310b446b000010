// The order in which vitest starts the files of tests: those of `LONG` before all others.
//
// Vitest starts the files first that took longest in the run before, and in a fresh clone the largest files.
// A small file with a long suite would then start last, when nothing is left to run beside it.

import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Small files with tests of many seconds. */
const LONG = /sandboxes\/sandboxes\.test\.ts$/;

export class TestOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => Number(LONG.test(b.moduleId)) - Number(LONG.test(a.moduleId)));
  }
}
