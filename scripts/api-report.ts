// `npm run api-report`: writes the public API into `docs/api-report`, one file for each entry, and prints how
// many names it has. `api-report.test.ts` compares the files with the sources, so a change of the public API
// is seen in the difference of a commit.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { publicNames, reports } from "./public-api.ts";
import { readTree } from "./tidy/tree.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const names = publicNames(readTree(root));
const folder = join(root, "docs", "api-report");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const [file, text] of reports(names)) {
  writeFileSync(join(root, file), text);
  console.log(text.slice(0, text.indexOf(".")));
}
console.log(
  `public names: ${names.length}, of which ${names.filter(({ isType }) => isType).length} are types`,
);
