// `readPageFiles`: the built files of the dashboard, in memory.
//
// The folder `built-page` of this package is made by `scripts/build-page.ts`. A published package contains
// it. In a checkout, the set-up, `npm test` and `npm run page` make it.

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

export interface PageFile {
  readonly type: string;
  readonly content: Uint8Array;
  readonly zipped: Uint8Array;
  readonly etag: string;
  /** Whether the name has a hash of the content, so that the file never changes. */
  readonly isImmutable: boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

export const INDEX = "index.html";

/** Beside the sources, or beside the built code of the published package. */
const FOLDERS = ["../../built-page", "../built-page"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);

const builtFolder = (): string | undefined => FOLDERS.find((path) => existsSync(join(path, INDEX)));

export function isPageBuilt(folder = builtFolder()): boolean {
  return folder !== undefined && existsSync(join(folder, INDEX));
}

/** The built files by their paths; `undefined` when the page was not built. */
export function readPageFiles(folder = builtFolder()): ReadonlyMap<string, PageFile> | undefined {
  if (folder === undefined || !isPageBuilt(folder)) return undefined;
  const found = readdirSync(folder, { recursive: true, withFileTypes: true });
  return new Map(
    found.flatMap((entry) => {
      const type = TYPES[extname(entry.name)];
      if (!entry.isFile() || type === undefined) return [];
      const file = join(entry.parentPath, entry.name);
      const path = file.slice(folder.length + 1).replaceAll("\\", "/");
      return [[path, pageFile(readFileSync(file), type, path.startsWith("assets/"))] as const];
    }),
  );
}

function pageFile(content: Uint8Array, type: string, isImmutable: boolean): PageFile {
  const etag = `"${createHash("sha256").update(content).digest("base64url").slice(0, 22)}"`;
  return { type, content, zipped: gzipSync(content), etag, isImmutable };
}
