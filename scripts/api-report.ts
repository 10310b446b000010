// `npm run api-report`: writes the public API into `docs/api-report`, one file for each entry, and into the
// page docs/api-reference.md, and prints how many names it has. It writes the commands into docs/commands.md,
// and the table of `agent-table.ts`. Tests compare these files with the sources, so a change of the public API
// is seen in the difference of a commit.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AGENT_PAGE, withAgentTable } from "./agent-table.ts";
import { apiReference, REFERENCE } from "./api-reference.ts";
import { COMMANDS_PAGE, commandReference } from "./command-reference.ts";
import { publicNames, reports } from "./public-api.ts";
import { readTree } from "./tidy/tree.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const tree = readTree(root);
const names = publicNames(tree);
const folder = join(root, "docs", "api-report");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const [file, text] of reports(names)) {
  writeFileSync(join(root, file), text);
  console.log(text.slice(0, text.indexOf(".")));
}
writeFileSync(join(root, REFERENCE), apiReference(names, tree));
const page = join(root, AGENT_PAGE);
writeFileSync(page, withAgentTable(readFileSync(page, "utf8")));
writeFileSync(join(root, COMMANDS_PAGE), await commandReference());
console.log(
  `public names: ${names.length}, of which ${names.filter(({ isType }) => isType).length} are types`,
);
