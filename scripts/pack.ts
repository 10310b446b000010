// `npm run pack`: the packages as they would be published, in `dist/packages/*.tgz`.
//
// In the repository the manifests point at `src/*.ts`, which runs unbuilt. A published package has no
// sources: each package is built, laid out in `dist/staging` with a manifest that points at `dist/*.js`,
// checked and packed there.
//
// Its modules are bundled (`bundle.ts`). Types stay a file per module, as no program waits for them. A
// package has those that its entries reach.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import buildPage from "./build-page.ts";
import {
  bundlePackage,
  PUBLISHED_FOLDERS,
  publishedExports,
  publishedPackages,
  type Manifest,
  type Package,
} from "./bundle.ts";
import { writeDocs } from "./release/shipped-docs.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const staging = join(root, "dist", "staging");
const target = join(root, "dist", "packages");
const env = {
  ...process.env,
  PATH: [dirname(process.execPath), join(root, "node_modules", ".bin"), process.env["PATH"]].join(delimiter),
};

const packages = publishedPackages(root);
rmSync(join(root, "dist"), { recursive: true, force: true });
// Files of an earlier build whose sources are gone would be published.
for (const { folder } of packages) rmSync(join(folder, "dist"), { recursive: true, force: true });
// A workspace of some packages has no page.
if (packages.some(({ manifest }) => manifest.name === "@holdfast/coordinator")) await buildPage();
run("tsc", ["-b", "--force", "tsconfig.build.json"]);
mkdirSync(target, { recursive: true });
for (const { folder } of packages) {
  // The types of generated code are written already: the compiler reads them and leaves them where they are.
  const generated = join(folder, "src", "gen");
  if (existsSync(generated)) cpSync(generated, join(folder, "dist", "gen"), { recursive: true });
}
for (const each of packages) await pack(each);

async function pack(each: Package): Promise<void> {
  const { folder: from, manifest } = each;
  const to = join(staging, basename(from));
  mkdirSync(to, { recursive: true });
  for (const path of typesOf(each)) {
    mkdirSync(dirname(join(to, "dist", path)), { recursive: true });
    cpSync(join(from, "dist", path), join(to, "dist", path));
  }
  for (const [path, code] of await bundlePackage(each)) {
    mkdirSync(dirname(join(to, "dist", path)), { recursive: true });
    writeFileSync(join(to, "dist", path), code);
  }
  cpSync(join(root, "LICENSE"), join(to, "LICENSE"));
  for (const part of ["README.md", ...PUBLISHED_FOLDERS])
    if (existsSync(join(from, part))) cpSync(join(from, part), join(to, part), { recursive: true });
  if (!existsSync(join(to, "README.md"))) writeFileSync(join(to, "README.md"), readmeOfPart(manifest));
  if (manifest.name === "holdfast") writeDocs(root, to);
  writeFileSync(join(to, "package.json"), `${JSON.stringify(published(manifest, to), null, 2)}\n`);

  const { messages, pkg } = await publint({ pkgDir: to, strict: true });
  const problems = messages
    .filter(({ type }) => type !== "suggestion")
    .map((message) => formatMessage(message, pkg));
  if (problems.length > 0) fail(`${manifest.name}: ${problems.join("\n")}`);
  run("npm", ["pack", "--loglevel=error", "--pack-destination", target, to]);
}

/** Users install `holdfast`, and find the other packages only in their `node_modules`. */
function readmeOfPart({ name, description }: Manifest): string {
  const whole = "[holdfast](https://www.npmjs.com/package/holdfast)";
  return `# ${name}\n\n${String(description)}.\n\nThis package is a part of ${whole}, which has the documents. Install \`holdfast\`, and import from it.\n`;
}

/** The files of types that the entries of a package reach, by their paths below `dist`. */
function typesOf({ folder, manifest }: Package): ReadonlySet<string> {
  const dist = join(folder, "dist");
  const found = new Set<string>();
  const toRead = Object.values(manifest.exports).map((source) =>
    source.replace(/^\.\/src\/(.*)\.ts$/, "$1.d.ts"),
  );
  for (let path = toRead.pop(); path !== undefined; path = toRead.pop()) {
    if (found.has(path)) continue;
    if (!existsSync(join(dist, path)))
      fail(`${manifest.name}: the types of its entries need ${path}, which is not built`);
    found.add(path);
    for (const [, imported = ""] of readFileSync(join(dist, path), "utf8").matchAll(/"(\.[^"]*)\.[jt]s"/g))
      toRead.push(join(dirname(path), `${imported}.d.ts`));
  }
  return found;
}

/** The manifest of the published package: built entry points, and nothing that only the repository needs. */
function published(manifest: Manifest, folder: string): Manifest {
  const { devDependencies: _devDependencies, scripts: _scripts, ...kept } = manifest;
  const exports = publishedExports(manifest, (source, name) => {
    const built = source.replace(/^\.\/src\//, "./dist/");
    if (!/^\.\/dist\/.*\.ts$/.test(built))
      fail(`${manifest.name}: export "${name}" is not a file under ./src`);
    return { types: built.replace(/\.ts$/, ".d.ts"), default: built.replace(/\.ts$/, ".js") };
  });
  const files = ["dist", "docs", "examples", "SKILL.md", "llms.txt", ...PUBLISHED_FOLDERS].filter((part) =>
    existsSync(join(folder, part)),
  );
  return { ...kept, exports, files } as unknown as Manifest;
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
