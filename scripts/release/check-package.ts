// `checkPackage`: the check of a package before it is published. A package has nothing but what its users
// need, and nothing of the machine that built it.

import { readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Packed } from "./publish.ts";
import { deadLinks } from "./shipped-docs.ts";

/** Files and folders at the top of a package. */
const PARTS =
  /^(package\.json|README\.md|LICENSE|SKILL\.md|llms\.txt|(dist|bin|docs|examples|proto|included-executors|built-page|templates)\/.+)$/;
/** Parts that are sources on purpose: projects to begin with, and what documents show. */
const SOURCES = /^(templates|examples|docs\/ipc)\//;
/** Folders of projects that have their agents and skills there. */
const HIDDEN_ON_PURPOSE = /^examples\/[^/]+\/\.(holdfast|agents|claude)\//;
/** Tests that users call: their suites need a test runner, which these packages do not depend on. */
const FOR_TESTS = ["@holdfast/testkit"];
const TEST_LIBRARIES = /\bfrom "(vitest|fast-check|playwright-core|verdaccio)["/]/;
const SUITES_OF_USERS = /^dist\/(entries\/conformance|testing\/|testing\.)/;
/** Licenses that ask for no more than their text. */
const LICENSES = /^(MIT|MIT-0|Apache-2\.0|BSD-[23]-Clause|ISC|0BSD|BlueOak-1\.0\.0|Unlicense|CC0-1\.0)$/;
const BUNDLED = [
  // `bundle.ts` writes the first form, and Vite the second one.
  { file: "dist/third-party-licenses.txt", title: /^(\S+) \S+ \((.*)\)$/gm },
  { file: "built-page/third-party-licenses.md", title: /^## (\S+) - \S+ \((.*)\)$/gm },
];

/** @returns the problems, each with the package and the file. */
export function checkPackage({ folder, manifest }: Packed, root: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll("\\", "/"),
    )
    .toSorted();
  return [
    ...checkManifest(manifest, root),
    ...files.flatMap((path) =>
      checkFile(path, readFileSync(join(folder, path), "utf8"), manifest.name, root),
    ),
    ...["README.md", "LICENSE"].filter((path) => !files.includes(path)).map((path) => `${path}: is missing`),
    ...checkLicenses(folder, files),
    ...checkLinks(folder, files),
  ].map((problem) => `${manifest.name}: ${problem}`);
}

function checkManifest(manifest: Packed["manifest"], root: string): string[] {
  const own = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Packed["manifest"];
  const problems: string[] = [];
  if (manifest.version !== own.version) problems.push(`its version is not ${own.version}`);
  if (manifest.license !== own.license) problems.push(`its license is not ${own.license}`);
  if (manifest.engines?.["node"] !== own.engines?.["node"])
    problems.push(
      `engines.node is not ${own.engines?.["node"]}: npm would choose this version under an old Node`,
    );
  if (manifest.private === true) problems.push("it is private");
  if (manifest.scripts !== undefined) problems.push("it has scripts, which would run at the installation");
  for (const [name, range] of Object.entries(manifest.dependencies ?? {}))
    if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(range)) problems.push(`${name}: ${range} is no exact version`);
  return problems;
}

function checkFile(path: string, text: string, packageName: string, root: string): string[] {
  const problems: string[] = [];
  if (!PARTS.test(path)) problems.push("is no part of a published package");
  const isHidden = /(^|\/)(\.|node_modules\/)/.test(path.replace(HIDDEN_ON_PURPOSE, ""));
  if (isHidden || path.endsWith(".map")) problems.push("is not for users");
  if (!SOURCES.test(path)) {
    if (/(?<!\.d)\.[cm]?tsx?$/.test(path)) problems.push("is a source");
    if (/\.test\./.test(path)) problems.push("is a test");
  }
  if (/^\s*\/\/# sourceMappingURL/m.test(text)) problems.push("names a source map");
  const paths = [root.replace(/\/$/, ""), homedir(), "/node_modules/.cache/"];
  for (const one of paths)
    if (one.length > 1 && new RegExp(`${one.replaceAll(/\W/g, "\\$&")}(?=[/"'\`\\s]|$)`, "m").test(text))
      problems.push(`has ${one}, a path of the machine that built it`);
  const isSuite = FOR_TESTS.includes(packageName) || SUITES_OF_USERS.test(path);
  if (/^dist\/.*\.js$/.test(path) && !isSuite && TEST_LIBRARIES.test(text))
    problems.push("imports a library for tests");
  return problems.map((problem) => `${path} ${problem}`);
}

/** npm and editors show the documents of a package, where a link to the repository leads nowhere. */
function checkLinks(folder: string, files: readonly string[]): string[] {
  const shipped = new Set(files);
  return files
    .filter((path) => path.endsWith(".md") && !path.startsWith("templates/"))
    .flatMap((path) =>
      deadLinks(path, readFileSync(join(folder, path), "utf8"), shipped).map(
        (to) => `${path} links to ${to}, which is no file of the package`,
      ),
    );
}

function checkLicenses(folder: string, files: readonly string[]): string[] {
  return BUNDLED.filter(({ file }) => files.includes(file)).flatMap(({ file, title }) => {
    const text = readFileSync(join(folder, file), "utf8");
    const found = [...text.matchAll(title)];
    if (found.length === 0) return [`${file} names no package`];
    return found.flatMap(({ 0: line, 1: name = "", 2: license = "", index }, i) => {
      const own = text.slice(index + line.length, found[i + 1]?.index);
      if (!LICENSES.test(license))
        return [`${file}: ${name} has the license ${license}, which nobody has looked at`];
      return own.trim().length > 100 ? [] : [`${file}: the text of the license of ${name} is missing`];
    });
  });
}
