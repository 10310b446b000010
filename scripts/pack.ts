// `npm run pack`: the packages as they would be published, in `dist/packages/*.tgz`.
//
// In the repository the manifests point at `src/*.ts`, which runs unbuilt. A published package has no sources: each
// package is built, laid out in `dist/staging` with a manifest that points at `dist/*.js`, checked and packed there.
//
// Its modules are bundled, with one file for each entry and files that entries share. Finding, reading and linking a
// hundred small files took two thirds of the time that a user's program waits for its imports. Types stay a file per
// module, as no program waits for them.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { rolldown } from "rolldown";

interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string>>;
  readonly private?: boolean;
  readonly bin?: Readonly<Record<string, string>>;
  readonly devDependencies?: unknown;
  readonly scripts?: unknown;
  readonly [field: string]: unknown;
}

/** Modules that are found by their path and not by an import, so that they stay files of their own. */
const FOUND_BY_PATH: Readonly<Record<string, readonly string[]>> = {
  holdfast: ["main"], // By `bin/holdfast.mjs`.
  runtime: ["isolation/watchdog-thread"], // By `new Worker`.
};

const root = fileURLToPath(new URL("..", import.meta.url));
const staging = join(root, "dist", "staging");
const target = join(root, "dist", "packages");
const env = {
  ...process.env,
  PATH: [dirname(process.execPath), join(root, "node_modules", ".bin"), process.env["PATH"]].join(delimiter),
};

const folders = readdirSync(join(root, "packages")).filter((name) => {
  const manifest = join(root, "packages", name, "package.json");
  return existsSync(manifest) && !(JSON.parse(readFileSync(manifest, "utf8")) as Manifest).private;
});
rmSync(join(root, "dist"), { recursive: true, force: true });
// Files of an earlier build whose sources are gone would be published.
for (const folder of folders)
  rmSync(join(root, "packages", folder, "dist"), { recursive: true, force: true });
run("tsc", ["-b", "--force", "tsconfig.build.json"]);
mkdirSync(target, { recursive: true });
for (const folder of folders) {
  // Generated code is JavaScript with its types already: the compiler reads it and leaves it where it is.
  const generated = join(root, "packages", folder, "src", "gen");
  if (existsSync(generated))
    cpSync(generated, join(root, "packages", folder, "dist", "gen"), { recursive: true });
}
for (const folder of folders) await pack(folder);

async function pack(folder: string): Promise<void> {
  const from = join(root, "packages", folder);
  const to = join(staging, folder);
  const manifest = withoutTesting(JSON.parse(readFileSync(join(from, "package.json"), "utf8")) as Manifest);
  mkdirSync(to, { recursive: true });
  if (existsSync(join(from, "bin"))) cpSync(join(from, "bin"), join(to, "bin"), { recursive: true });
  // The files that only tests share are built with the rest, and stay here.
  const filter = (path: string) => !path.endsWith("/testing") && !path.endsWith(".js");
  cpSync(join(from, "dist"), join(to, "dist"), { recursive: true, filter });
  await bundle(join(from, "dist"), join(to, "dist"), [
    ...Object.values(manifest.exports).map((source) => source.replace(/^\.\/src\/(.*)\.ts$/, "$1")),
    ...(FOUND_BY_PATH[folder] ?? []),
  ]);
  for (const part of ["README.md", "LICENSE", "proto", "included-executors"]) {
    const own = join(from, part);
    const file = existsSync(own) ? own : join(root, part);
    if (existsSync(file)) cpSync(file, join(to, part), { recursive: true });
  }
  writeFileSync(join(to, "package.json"), `${JSON.stringify(published(manifest, to), null, 2)}\n`);

  const { messages, pkg } = await publint({ pkgDir: to, strict: true });
  const problems = messages
    .filter(({ type }) => type !== "suggestion")
    .map((message) => formatMessage(message, pkg));
  if (problems.length > 0) fail(`${manifest.name}: ${problems.join("\n")}`);
  run("npm", ["pack", "--loglevel=error", "--pack-destination", target, to]);
}

/** The files that only tests of this repository share are no entry points of a published package. */
function withoutTesting(manifest: Manifest): Manifest {
  const kept = Object.entries(manifest.exports).filter(([, source]) => !source.includes("/testing/"));
  return { ...manifest, exports: Object.fromEntries(kept) };
}

/** Makes a file of each of these modules, with all it imports of its own package and nothing of another. */
async function bundle(from: string, to: string, modules: readonly string[]): Promise<void> {
  const built = await rolldown({
    input: Object.fromEntries(modules.map((name) => [entryName(name), join(from, `${name}.js`)])),
    external: /^[^./]/,
    platform: "node",
  });
  await built.write({ dir: to, chunkFileNames: "[name]-[hash].js" });
  await built.close();
}

/** A module that is found by its path lies beside the bundled code that looks for it. */
function entryName(module: string): string {
  return Object.values(FOUND_BY_PATH).flat().includes(module) ? basename(module) : module;
}

/** The manifest of the published package: built entry points, and nothing that only the repository needs. */
function published(manifest: Manifest, folder: string): Manifest {
  const { devDependencies: _devDependencies, scripts: _scripts, ...kept } = manifest;
  const exports = Object.entries(manifest.exports).map(([name, source]) => {
    const built = source.replace(/^\.\/src\//, "./dist/");
    if (!/^\.\/dist\/.*\.ts$/.test(built))
      fail(`${manifest.name}: export "${name}" is not a file under ./src`);
    return [name, { types: built.replace(/\.ts$/, ".d.ts"), default: built.replace(/\.ts$/, ".js") }];
  });
  const files = ["dist", "bin", "proto", "included-executors"].filter((part) =>
    existsSync(join(folder, part)),
  );
  return { ...kept, exports: Object.fromEntries(exports), files };
}

function run(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { cwd: root, env, stdio: "inherit" });
  const shown = args.map((arg) => (arg.startsWith(root) ? relative(root, arg) : arg));
  if (status !== 0) fail(`${command} ${shown.join(" ")}: ${error?.message ?? `exit ${status}`}`);
}

function fail(what: string): never {
  console.error(`pack: ${what}`);
  process.exit(1);
}
