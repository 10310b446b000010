// `importError`: why a file of code could not be loaded, for its author.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { decodedPlace, defined, HoldfastError, toError } from "@holdfast/core";
import { withoutKeys } from "@holdfast/system";
import { placeOf } from "@holdfast/terminal/frame/error-place";

/** V8's, of a name that an imported module does not export. */
export const NO_EXPORT = /does not provide an export/;

/** Node's, of an import that leads nowhere. */
const NOT_THERE = ["ERR_MODULE_NOT_FOUND", "ERR_PACKAGE_PATH_NOT_EXPORTED", "ERR_UNKNOWN_BUILTIN_MODULE"];

/** The error of a file that was not loaded, with its place. */
export function importError(thrown: unknown, file: string): HoldfastError {
  const error = toError(thrown);
  const code = "code" in error ? String(error.code) : "";
  const at = placeIn(error, file);
  const details = { at, cause: error };
  if (NOT_THERE.includes(code)) {
    const message = `the file imports something that does not exist: ${withoutPath(error.message)}`;
    return invalid(message, file, { ...details, fix: "install the package, or correct the import" });
  }
  const manifest = commonJsManifest(file);
  if (manifest !== undefined && isModuleSyntaxError(error)) {
    const renamed = basename(file).replace(/\.([jt]s)$/, ".m$1");
    return invalid("the file is written as an ES module, but its package.json declares CommonJS", file, {
      at: file,
      got: `"type": "commonjs" in ${manifest}`,
      expected: '"type": "module"',
      fix: `write "type": "module" into ${manifest}, or name the file ${renamed}`,
      cause: thrown,
    });
  }
  if (error instanceof SyntaxError) {
    const line = code === "" && at === file ? syntaxErrorLine(file) : undefined;
    const fix = NO_EXPORT.test(error.message) ? "correct the name, or export it there" : "correct the line";
    return invalid(`the file cannot be read: ${error.message}`, file, {
      ...details,
      ...defined({ at: line }),
      fix,
    });
  }
  // A refusal of defineAgent already explains the problem.
  const said = HoldfastError.is(thrown) ? thrown : undefined;
  return invalid(`the file threw an error while it was loaded: ${error.message || error.name}`, file, {
    ...details,
    ...defined({ expected: said?.expected }),
    fix:
      said?.fix ??
      "correct the file; code that needs the network or a key belongs in a task, not at the top level",
  });
}

/** The package.json that makes a file CommonJS, if one says so. */
function commonJsManifest(file: string): string | undefined {
  if (!/\.[jt]s$/.test(file)) return undefined;
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const manifest = join(folder, "package.json");
    if (existsSync(manifest)) {
      try {
        const { type } = JSON.parse(readFileSync(manifest, "utf8")) as { type?: unknown };
        return type === "commonjs" ? manifest : undefined;
      } catch {
        return undefined; // Node reports the problem with the file.
      }
    }
    if (folder === dirname(folder)) return undefined;
  }
}

/** Node's error for `import`, `export` or a top-level `await` in a file that it takes for CommonJS. */
function isModuleSyntaxError(error: Error): boolean {
  return (
    error instanceof SyntaxError &&
    /import statement outside a module|Unexpected token 'export'|import\.meta|await is only valid/.test(
      error.message,
    )
  );
}

/** "Cannot find package 'x' imported from /path": the path is told as the place. */
function withoutPath(message: string): string {
  return message.replace(/ imported from .*$/s, "");
}

function placeIn(error: Error, file: string): string {
  const importedFrom = / imported from (.+)$/.exec(error.message)?.[1];
  const place = importedFrom && decodedPlace(importedFrom.replace(/^file:\/\//, ""));
  // A specifier that belongs to this installation is resolved from here.
  if (place !== undefined && place !== fileURLToPath(import.meta.url)) return place;
  return placeOf(error) ?? file;
}

/** Node keeps the place of a syntax error in JavaScript to itself; its `--check` prints it. */
function syntaxErrorLine(file: string): string | undefined {
  const { stderr } = spawnSync(process.execPath, ["--check", file], {
    encoding: "utf8",
    timeout: 5_000,
    env: withoutKeys(process.env),
  });
  return stderr
    .split("\n")
    .find((line) => line.startsWith(file) || line.startsWith("file://"))
    ?.replace(/^file:\/\//, "");
}

/** @param at the file. */
export function invalid(
  message: string,
  at: string,
  details: {
    readonly at?: string;
    readonly got?: string;
    readonly expected?: string;
    readonly fix?: string;
    readonly cause?: unknown;
  },
): HoldfastError {
  return new HoldfastError("agent_invalid", message, { at, ...details });
}
