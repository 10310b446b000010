// `serve`: shows a built site on this machine, with its policy also as a header.

import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webp": "image/webp",
};

/** @returns the address, at a free port of this machine. */
export async function serve(folder: string, base: string, policy: string): Promise<string> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://site");
    const path = normalize(decodeURIComponent(pathname)).slice(base.length - 1);
    const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
    if (!pathname.startsWith(base) || !existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end("no such page\n");
      return;
    }
    response.writeHead(200, {
      "Content-Type": TYPES[extname(file)] ?? "text/plain; charset=utf-8",
      "Content-Security-Policy": policy,
    });
    response.end(readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${base}`;
}
