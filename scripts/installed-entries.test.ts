// The entries of `holdfast`, imported as users import them: from the bundled packages in a folder of
// installed packages.

import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { installCommand } from "./installed-command.ts";
import { publicNames } from "./public-api.ts";
import { readTree } from "./tidy/tree.ts";

const names = publicNames(readTree(fileURLToPath(new URL("..", import.meta.url))));
const entries = Map.groupBy(names, ({ entry }) => entry);
const folder = dirname(dirname(await installCommand()));

interface Dependent {
  readonly name: string;
  readonly dependencies?: object;
}

/** The package in each import by which a bundle loads another one of ours. */
const IMPORTED = /^(?:import|export)\b[^"]*"(@holdfast\/[^/"]+)/gm;

/** Suites of vitest are imported in a run of vitest; every other entry is imported by Node alone. */
async function namesOf(entry: string): Promise<readonly string[]> {
  const name = JSON.stringify(entry);
  if (entry !== "holdfast/conformance")
    return JSON.parse(evaluate(`JSON.stringify(Object.keys(await import(${name})))`)) as string[];
  return Object.keys((await import(/* @vite-ignore */ evaluate(`import.meta.resolve(${name})`))) as object);
}

function evaluate(expression: string): string {
  const code = `process.stdout.write(${expression})`;
  return execFileSync(process.execPath, ["--input-type=module", "--eval", code], {
    cwd: folder,
    encoding: "utf8",
  });
}

test.each([...entries])("%s has the values of its report", { timeout: 60_000 }, async (entry, ofEntry) => {
  const values = ofEntry.filter(({ isType }) => !isType).map(({ name }) => name);
  expect((await namesOf(entry)).toSorted()).toEqual(values.toSorted());
});

// A global installation may give each package its own dependencies, so it finds no others.
test("a package imports only packages of ours on which it depends", () => {
  const modules = join(folder, "node_modules");
  const manifests = globSync(["holdfast/package.json", "@holdfast/*/package.json"], { cwd: modules });
  const strange = manifests.flatMap((path) => {
    const manifest = JSON.parse(readFileSync(join(modules, path), "utf8")) as Dependent;
    const own = { [manifest.name]: "", ...manifest.dependencies };
    const code = globSync("dist/**/*.js", { cwd: join(modules, dirname(path)) });
    return code.flatMap((file) =>
      [...readFileSync(join(modules, dirname(path), file), "utf8").matchAll(IMPORTED)]
        .map(([, name = ""]) => name)
        .filter((name) => !(name in own))
        .map((name) => `${manifest.name}: ${name}`),
    );
  });
  expect(manifests).toHaveLength(17);
  expect(strange).toEqual([]);
});

test("the manifest of the package is found, as tools look for it", () => {
  expect(
    evaluate(`(await import("node:module")).createRequire(import.meta.url)("holdfast/package.json").name`),
  ).toBe("holdfast");
});
