// `npm run release`: builds, checks and packs what users get, and publishes it to a registry.
//
//   -- --dry                   builds, checks and packs; publishes nothing. The packages are in dist/packages, their bill of materials and
//                             the statement of their provenance in dist/release
//   -- --registry URL          the same, and then publishes every package to this registry, each after the packages that it needs.
//                             npm's own settings say who publishes (`npm login --registry URL`)
//   -- --packed                takes what `--dry` has packed, instead of building it again
//
// It may be repeated after a failure. A package that is there with the same content is skipped. Other content
// under the same version is refused before anything is published.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readArguments, refuse } from "./arguments.ts";
import { checkPackage } from "./release/check-package.ts";
import { checkTypes } from "./release/check-types.ts";
import { layOut, measureImport, measureSize } from "./release/measure.ts";
import { packedIn, publishAll } from "./release/publish.ts";
import { writeStatements } from "./release/statements.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const env = {
  ...process.env,
  PATH: [dirname(process.execPath), join(root, "node_modules", ".bin"), process.env["PATH"]].join(delimiter),
};

const { values } = readArguments(import.meta.filename, {
  dry: { type: "boolean" },
  registry: { type: "string" },
  packed: { type: "boolean" },
});
const { dry = false, registry, packed: isPacked = false } = values;
if (dry === (registry !== undefined)) refuse("one of --dry and --registry URL is needed", "-- --dry");
if (registry !== undefined && !/^https?:\/\/\S+$/.test(registry))
  refuse("--registry takes an address", `it is ${registry} now; \`npm config get registry\` shows yours`);

const staging = join(root, "dist", "staging");
const target = join(root, "dist", "packages");
if (registry !== undefined && !isLoopback(registry)) requireReleasable();
if (!isPacked) run(process.execPath, [join(root, "scripts", "pack.ts")]);
else if (!existsSync(target)) refuse("nothing is packed yet", "leave --packed out, or pack with --dry first");

const packages = packedIn(staging, target);
const installed = join(root, "dist", "release", "installed");
layOut(packages, installed);
const problems = [
  ...packages.flatMap((one) => checkPackage(one, root)),
  ...checkTypes(packages, installed, join(root, "node_modules", ".bin", "tsc")),
];
const size = measureSize(installed);
const start = measureImport(installed);
say(`core and SQLite: ${size.text}`);
say(`import of holdfast: ${start}`);
problems.push(...size.problems);
for (const problem of problems) console.error(`release: ${problem}`);
if (problems.length > 0) fail(`${problems.length} problems; nothing was published`);
for (const file of writeStatements(root, packages, env)) say(`written: ${file}`);
for (const { file } of packages) say(`packed: dist/packages/${basename(file)}`);
if (registry !== undefined) {
  try {
    publishAll(packages, registry, { env, say });
  } catch (error) {
    fail((error as Error).message);
  }
}

/** A registry keeps each version permanently, except a registry of this machine, which is for tests. */
function requireReleasable(): void {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  if (!readFileSync(join(root, "CHANGELOG.md"), "utf8").includes(`\n## ${version}`))
    fail(`CHANGELOG.md has no section "## ${version}": rename its section Unreleased first`);
  const { stdout } = spawnSync("git", ["status", "--porcelain"], { cwd: root, encoding: "utf8" });
  if (stdout !== "") fail(`these files differ from the commit that would be published:\n${stdout}`);
}

function isLoopback(url: string): boolean {
  return ["127.0.0.1", "localhost", "[::1]"].includes(new URL(url).hostname);
}

function run(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { cwd: root, env, stdio: ["ignore", 2, 2] });
  if (status !== 0) fail(`${args.join(" ")}: ${error?.message ?? `exit ${status}`}`);
}

function say(text: string): void {
  console.log(text);
}

function fail(what: string): never {
  console.error(`release: ${what}`);
  process.exit(1);
}
