// The files of `.github`: the jobs that it runs, and the forms of issues. They name only files and scripts that exist.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { NODE_FLOORS } from "@holdfast/system";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const NAMES = readdirSync(join(root, ".github/workflows"));

test.each(NAMES)("%s runs scripts that there are, and may only read by default", (name) => {
  const text = read(`.github/workflows/${name}`);
  const { scripts } = JSON.parse(read("package.json")) as { readonly scripts: object };
  const called = [...text.matchAll(/npm run ([\w-]+)/g)].map(([, script = ""]) => script);
  for (const script of called) expect(scripts).toHaveProperty([script]);
  for (const [, file = ""] of text.matchAll(/run: (\.\S+)/g))
    expect([file, existsSync(join(root, file))]).toEqual([file, true]);
  expect(text).toMatch(/^permissions:\n {2}contents: read\n$/m);
  expect(text).not.toMatch(/secrets\./); // npm trusts the workflow, and no key is stored.
});

test("the tests run on each line of Node that is supported", () => {
  const lines = NODE_FLOORS.map((floor) => floor.split(".")[0]).join(", ");
  expect(read(".github/workflows/test.yml")).toContain(`node: [${lines}]`);
  for (const floor of NODE_FLOORS) expect(read("docs/versions.md")).toContain(floor);
});

test("an issue about a defect asks for the report of doctor, and not for a weakness", () => {
  const text = read(".github/ISSUE_TEMPLATE/defect.yml");
  expect(text).toContain("holdfast doctor --report");
  expect(text).toContain("SECURITY.md");
});
