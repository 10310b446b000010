// Runs before each file of tests (`setupFiles` of vitest), and plants a secret whose appearance anywhere
// fails the file (X15).
//
//   - The secret is in the environment of the test process, and so in that of everything which it starts with
//     its environment. A runtime or supervisor in a test gives its agents, executors, hooks and servers only
//     what they may have.
//   - The search covers what `canary-watch.ts` sees, and the arguments of all processes after the last test
//     of the file. `holdfast-process.ts` does the same for each project, with a secret of its own.

import { randomBytes } from "node:crypto";
import { afterAll } from "vitest";
import { CanaryScan } from "../packages/testkit/src/canary-scan.ts";
import { armScan } from "../packages/testkit/src/canary-watch.ts";

const VARIABLE = "HOLDFAST_TEST_SECRET";

// Letters and digits alone are the same in most encodings, which keeps the search cheap.
const scan = new CanaryScan(`canary${randomBytes(16).toString("hex")}`);
const disarm = armScan(scan);
process.env[VARIABLE] = scan.secret;

afterAll(() => {
  disarm();
  scan.searchArguments();
  if (scan.found.length > 0)
    throw new Error(`the secret ${VARIABLE} of these tests is in ${scan.found.join(", ")}`);
});
