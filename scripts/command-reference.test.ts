// docs/commands.md is what the tables of the commands say.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { COMMANDS } from "../packages/holdfast/src/commands/index.ts";
import { COMMANDS_PAGE, commandReference } from "./command-reference.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

test("the page is that of the present tables: `npm run api-report` writes it", async () => {
  expect(readFileSync(join(root, COMMANDS_PAGE), "utf8")).toBe(await commandReference());
});

test("the page has each command once, and all of its options and actions", async () => {
  const page = readFileSync(join(root, COMMANDS_PAGE), "utf8");
  const sections = page.split("\n### holdfast ").slice(1);
  expect(sections.map((section) => section.split("\n")[0]!).toSorted()).toEqual(
    Object.keys(COMMANDS).toSorted(),
  );
  for (const section of sections) {
    const { name, options, actions = {} } = await COMMANDS[section.split("\n")[0]!]!.load();
    for (const option of Object.keys(options)) expect(section).toMatch(new RegExp(`\`--${option}[ \`]`));
    for (const action of Object.keys(actions))
      expect(section).toMatch(new RegExp(`\\| \`${name} \\[?${action}\\b`));
  }
});
