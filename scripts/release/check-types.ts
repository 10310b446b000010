// Whether a user's TypeScript finds the types of every entry (`checkTypes`), in a project of Node and in one
// of a bundler.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Packed } from "./publish.ts";

const RESOLUTIONS = {
  node16: { module: "node16", moduleResolution: "node16" },
  bundler: { module: "esnext", moduleResolution: "bundler" },
};

/**
 * @param installed has `node_modules` with the packages.
 * @param tsc the compiler.
 * @returns the problems, without those in types of other authors.
 */
export function checkTypes(packages: readonly Packed[], installed: string, tsc: string): readonly string[] {
  const entries = packages.flatMap(({ manifest: { name, exports = {} } }) =>
    Object.keys(exports)
      .filter((entry) => !entry.endsWith(".json"))
      .map((entry) => name + entry.slice(1)),
  );
  const uses = entries.map((entry, i) => `export type * as e${i} from ${JSON.stringify(entry)};\n`);
  writeFileSync(join(installed, "entries.ts"), uses.join(""));
  return Object.entries(RESOLUTIONS).flatMap(([name, resolution]) => {
    const compilerOptions = {
      ...resolution,
      target: "es2024",
      lib: ["es2024", "esnext.disposable", "dom"],
      strict: true,
      noEmit: true,
      skipLibCheck: false,
      types: ["node"],
    };
    const file = join(installed, `tsconfig.${name}.json`);
    writeFileSync(file, JSON.stringify({ compilerOptions, files: ["entries.ts"] }));
    const { stdout, status } = spawnSync(tsc, ["-p", file, "--pretty", "false"], {
      encoding: "utf8",
      cwd: installed,
    });
    const own = stdout
      .split("\n")
      .filter((line) => /^(entries\.ts|node_modules\/(@holdfast\/|(create-)?holdfast\/))/.test(line));
    if (status !== 0 && stdout.trim() === "")
      return [`types under ${name}: the compiler ended with ${status}`];
    return own.map((line) => `types under ${name}: ${line}`);
  });
}
