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

const LOADED_MAX = { bytes: 860_000, files: 19 };
/** Modules of Node that take a millisecond or more, and that many programs never use. */
const LATE_NODE_MODULES = "child_process fs/promises http http2 inspector tls v8 worker_threads".split(" ");

interface Loaded {
  /** The address and the bytes of each. */
  readonly files: readonly (readonly [string, number])[];
  /** The modules of Node. */
  readonly node: readonly string[];
}

const LOADED = `await (async () => {
  const files = [];
  (await import("node:module")).registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      if (url.startsWith("file:")) files.push([url, loaded.source.length]);
      return loaded;
    },
  });
  const before = new Set(process.moduleLoadList);
  await import("holdfast");
  const node = process.moduleLoadList.filter((each) => !before.has(each)).map((each) => each.replace("NativeModule ", ""));
  return JSON.stringify({ files, node });
})()`;

/** Suites of vitest are imported in a run of vitest; every other entry is imported by Node alone. */
async function namesOf(entry: string): Promise<readonly string[]> {
  const name = JSON.stringify(entry);
  if (entry !== "holdfast/conformance")
    return JSON.parse(evaluate(`JSON.stringify(Object.keys(await import(${name})))`)) as string[];
  return Object.keys((await import(/* @vite-ignore */ evaluate(`import.meta.resolve(${name})`))) as object);
}

function evaluate(expression: string): string {
  const code = `const text = ${expression}; process.stdout.write(text);`;
  return execFileSync(process.execPath, ["--input-type=module", "--eval", code], {
    cwd: folder,
    encoding: "utf8",
  });
}

test.each([...entries])("%s has the values of its report", { timeout: 60_000 }, async (entry, ofEntry) => {
  const values = ofEntry.filter(({ isType }) => !isType).map(({ name }) => name);
  expect((await namesOf(entry)).toSorted()).toEqual(values.toSorted());
});

// Each 100 KB costs a program 2 to 3 ms of CPU at its start, and each file half a millisecond. Before you raise a
// limit, let the code that is new here be loaded with its first use, or by an entry that needs it.
test("the import of holdfast loads what each program needs, and no more", () => {
  const { files, node } = JSON.parse(evaluate(LOADED)) as Loaded;
  const ours = files.map(
    ([url, bytes]) => [url.slice(url.lastIndexOf("node_modules/") + 13), bytes] as const,
  );
  const bytes = ours.reduce((sum, [, size]) => sum + size, 0);
  const shown = ours.toSorted(([, one], [, other]) => other - one).map(([path, size]) => `${size} ${path}`);
  expect(bytes, shown.join("\n")).toBeLessThan(LOADED_MAX.bytes);
  expect(ours.length, shown.join("\n")).toBeLessThanOrEqual(LOADED_MAX.files);
  expect(node.filter((name) => LATE_NODE_MODULES.includes(name))).toEqual([]);
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
