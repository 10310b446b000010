// Keeps the door to the shared server (`shared-server.ts`) while tests run.

import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer, type PostgresServer } from "./server.ts";
import { DOOR } from "./shared-server.ts";

export default async function setup(): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-door-"));
  const path = join(folder, "door");
  let server: Promise<PostgresServer> | undefined;
  const door = createServer((asking) => {
    asking.on("error", () => undefined);
    server ??= startServer({ fsync: false });
    server.then(
      ({ url }) => asking.end(url),
      (error: unknown) => asking.end(String(error)),
    );
  });
  await new Promise<void>((resolve, reject) => {
    door.once("error", reject);
    door.listen(path, resolve);
  });
  process.env[DOOR] = path;
  return async () => {
    door.close();
    await (await server?.catch(() => undefined))?.stop();
    rmSync(folder, { recursive: true, force: true });
  };
}
