// `loadTypeScript`: imports of a user's files work as TypeScript allows them.
//
// Node strips types, and that is all it does. These hooks add what a compiler does beside that, by the
// transformer and the resolver of Oxc. Both are loaded when a file needs them, and most files do not.
//
//   - The hooks concern the user's own files: none below `node_modules`, and none of our packages. Our
//     packages therefore have one instance in a process, whatever imports them.
//   - An import that Node does not find is looked for as TypeScript does: `./a.js` for `a.ts`, no extension,
//     a folder, and `paths` of tsconfig.json.
//   - A file is compiled if it has an enum, a namespace, a parameter property, a decorator or JSX. An ES
//     module in a package of CommonJS is compiled, too. Errors name lines of the source.
//   typescript-files-4. An import of a type without the word `type` shows only when modules are linked. All
//       files are then compiled, under other addresses, because Node keeps the modules that it could not
//       link. No file has run by then.

import { readFileSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { extname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isOurs } from "@holdfast/core";

/** typescript-files-4. The query of the address of a file that is compiled whatever it contains. */
const COMPILED = "?compiled";
/** Syntax that is no mere annotation. A plain file with one of these words is compiled for nothing. */
const NOT_ERASABLE =
  /\b(?:enum|namespace|module)\s+[\w$.]+\s*\{|\bconstructor\s*\([^)]*\b(?:public|private|protected|readonly|override)\s|^\s*@[\w$]|\b(?:import|export)\s+[\w$]+\s*=/m;
const MODULE_SYNTAX = /^\s*(?:import|export)\b/m;
const NOT_FOUND = [
  "ERR_MODULE_NOT_FOUND",
  "MODULE_NOT_FOUND",
  "ERR_UNSUPPORTED_DIR_IMPORT",
  "ERR_PACKAGE_IMPORT_NOT_DEFINED",
];
const LANGUAGES: Readonly<Record<string, "ts" | "tsx" | "jsx">> = {
  ".ts": "ts",
  ".mts": "ts",
  ".cts": "ts",
  ".tsx": "tsx",
  ".jsx": "jsx",
};

type Transform = typeof import("oxc-transform");
type Resolver = InstanceType<typeof import("oxc-resolver").ResolverFactory>;

const require = createRequire(import.meta.url);
let isInstalled = false;

/** Installs the hooks, once in a process: each further one would double the searches for a file that is not there. */
export function loadTypeScript(): void {
  if (isInstalled) return;
  isInstalled = true;
  let transform: Transform | undefined;
  let resolver: Resolver | undefined;
  registerHooks({
    resolve(specifier, context, next) {
      const { parentURL = "" } = context;
      if (!isUsers(parentURL)) return next(specifier, context);
      const isCompiled = parentURL.endsWith(COMPILED);
      try {
        const resolved = next(specifier, context);
        return isCompiled ? { ...resolved, url: compiledAddress(resolved.url) } : resolved;
      } catch (error) {
        if (!NOT_FOUND.includes((error as { code?: string }).code ?? "")) throw error;
        const path = (resolver ??= makeResolver()).resolveFileSync(fileURLToPath(parentURL), specifier).path;
        if (path === undefined) throw error;
        const url = pathToFileURL(path).href;
        return { url: isCompiled ? compiledAddress(url) : url, shortCircuit: true };
      }
    },
    load(url, context, next) {
      const extension = isUsers(url) ? extname(fileURLToPath(url)) : "";
      const lang = LANGUAGES[extension];
      if (lang === undefined) return next(url, context);
      const path = fileURLToPath(url);
      const source = readFileSync(path, "utf8");
      const isModule = extension !== ".cts" && (extension === ".mts" || MODULE_SYNTAX.test(source));
      const isTakenForCommonJs = isModule && (context.format ?? "").startsWith("commonjs");
      const isNeeded = lang !== "ts" || url.endsWith(COMPILED) || isTakenForCommonJs;
      if (!isNeeded && !NOT_ERASABLE.test(source)) return next(url, context);
      transform ??= require("oxc-transform") as Transform;
      const format = isModule || !(context.format ?? "").startsWith("commonjs") ? "module" : "commonjs";
      return { format, source: compile(transform, path, source, lang), shortCircuit: true };
    },
  });
}

/** typescript-files-4. The address under which a file and all that it imports are compiled. */
export function compiledAddress(url: string): string {
  return isUsers(url) && !url.endsWith(COMPILED) && extname(fileURLToPath(url)) in LANGUAGES
    ? `${url}${COMPILED}`
    : url;
}

function isUsers(url: string): boolean {
  return url.startsWith("file:") && !url.includes("/node_modules/") && !isOurs(`${fileURLToPath(url)}:1:1`);
}

function makeResolver(): Resolver {
  const { ResolverFactory } = require("oxc-resolver") as typeof import("oxc-resolver");
  return new ResolverFactory({
    tsconfig: "auto",
    conditionNames: ["node", "import"],
    extensions: [".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json"],
    extensionAlias: {
      ".js": [".ts", ".tsx", ".js", ".jsx"],
      ".jsx": [".tsx", ".jsx"],
      ".mjs": [".mts", ".mjs"],
      ".cjs": [".cts", ".cjs"],
    },
  });
}

/** @throws SyntaxError with the place of the first error in its stack, as errors of Node have it. */
function compile(
  { transformSync }: Transform,
  path: string,
  source: string,
  lang: "ts" | "tsx" | "jsx",
): string {
  const { code, map, errors } = transformSync(path, source, {
    lang,
    sourcemap: true,
    typescript: { onlyRemoveTypeImports: false },
    decorator: { legacy: true },
  });
  const [error] = errors;
  if (error !== undefined) {
    const line = source.slice(0, error.labels[0]?.start ?? 0).split("\n").length;
    throw Object.assign(new SyntaxError(error.message), {
      stack: `${path}:${line}\n\nSyntaxError: ${error.message}`,
    });
  }
  process.setSourceMapsEnabled(true);
  const inline = Buffer.from(JSON.stringify(map)).toString("base64");
  return `${code}\n//# sourceMappingURL=data:application/json;base64,${inline}\n`;
}
