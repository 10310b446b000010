// Measures the processor time of each test file, and hands it to the run as `meta.processorMs`.
//
// Vitest loads this file before each test file, in the same process. The time between the two readings is the
// test file's, with that of its imports.

import { afterAll } from "vitest";
import { treeMs } from "./processor-time.ts";

const before = treeMs();

// Hooks run in reverse order, so this one runs after those of the test file.
// oxlint-disable-next-line no-empty-pattern -- Vitest reads the fixtures that a hook wants from this pattern.
afterAll(({}, file) => {
  Object.assign(file.meta, { processorMs: treeMs() - before });
});
