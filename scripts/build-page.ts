// `npm run page`: builds the page into `packages/coordinator/built-page`, where a coordinator and
// `holdfast ui` find it. The set-up of a checkout, the tests and `npm run pack` do it, too.
//
//   - It builds only when a source has changed: the folder holds a key of the sources that it was made of.
//     The time of the key says when that was looked at last, for the set-up, which only compares times.
//   - The folder appears whole. It is built beside its place and then moved.

import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const sources = join(root, "packages", "dashboard");
const folder = join(root, "packages", "coordinator", "built-page");
const cache = join(root, "node_modules", ".cache");
const KEY = "key";

/** Makes the page if its sources have changed since the last time. Vitest calls it before the tests. */
export default async function buildPage(): Promise<void> {
  const key = keyOfSources();
  if (keyOfPage() === key) return utimesSync(join(folder, KEY), new Date(), new Date());
  const [{ build }, { default: tailwind }] = await Promise.all([import("vite"), import("@tailwindcss/vite")]);
  mkdirSync(cache, { recursive: true });
  const made = mkdtempSync(join(cache, "page-"));
  const environment = process.env["NODE_ENV"];
  process.env["NODE_ENV"] = "production"; // Vitest says `test`, and the page would be made for development.
  try {
    await build({
      root: sources,
      base: "/ui/",
      configFile: false,
      mode: "production",
      logLevel: "error",
      plugins: [tailwind()],
      build: {
        outDir: made,
        emptyOutDir: true,
        target: "es2023",
        // A file as a `data:` address would be refused by the page's policy.
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        reportCompressedSize: false,
        // The licenses of what is bundled ask for their texts.
        license: { fileName: "third-party-licenses.md" },
      },
    });
    writeFileSync(join(made, KEY), key);
    rmSync(folder, { recursive: true, force: true });
    renameSync(made, folder);
  } catch (error) {
    if (keyOfPage() !== key) throw error; // Another build may have moved its folder first.
  } finally {
    if (environment === undefined) delete process.env["NODE_ENV"];
    else process.env["NODE_ENV"] = environment;
    rmSync(made, { recursive: true, force: true });
  }
}

function keyOfPage(): string | undefined {
  const file = join(folder, KEY);
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}

function keyOfSources(): string {
  const files = [
    ...filesBelow(sources),
    ...filesBelow(join(root, "packages", "proto", "src", "view")),
    join(root, "package-lock.json"),
    import.meta.filename,
  ];
  const hash = createHash("sha256");
  for (const file of files.sort()) hash.update(file.slice(root.length)).update(readFileSync(file));
  return hash.digest("hex");
}

function filesBelow(path: string): string[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes("node_modules"))
    .map((entry) => join(entry.parentPath, entry.name));
}

if (process.argv[1] === import.meta.filename) await buildPage();
