// The servers of sessions of one machine. Ids of sessions are chosen by people, and two projects may have
// chosen the same.

import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { McpServers, type SessionServer } from "./mcp-servers.ts";

const PROGRAM = fileURLToPath(new URL("./testing/mcp-server-program.mjs", import.meta.url));

let folders: readonly string[];
let processes: readonly McpServers[];

beforeEach(() => {
  folders = [0, 1].map(() => realpathSync(mkdtempSync(join(tmpdir(), "holdfast-mcp-"))));
  processes = [0, 1].map(() => new McpServers({ variable: () => undefined }));
});
afterEach(async () => {
  for (const each of processes) await each.close();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Opens the server of the session `release` that works in a folder. @returns how often it was started there. */
async function open(process: McpServers, folder: string): Promise<number> {
  const log = join(folder, "log");
  const wanted: SessionServer = {
    sessionId: "release",
    name: "test",
    server: { type: "stdio", command: globalThis.process.execPath, args: [PROGRAM, "good", log], env: {} },
    folder,
  };
  await process.with(wanted, () => Promise.resolve());
  return readFileSync(log, "utf8").match(/^start/gm)?.length ?? 0;
}

test("a session of another project with the same id does not end the server of a session", async () => {
  expect(await open(processes[0]!, folders[0]!)).toBe(1);
  expect(await open(processes[1]!, folders[1]!)).toBe(1);
  // The end of a server is known a moment later.
  await delay(1_000);
  expect(await open(processes[0]!, folders[0]!)).toBe(1);
});

test("the next process with a session ends the server that another one has left", async () => {
  expect(await open(processes[0]!, folders[0]!)).toBe(1);
  expect(await open(processes[1]!, folders[0]!)).toBe(2);
  await expect.poll(() => open(processes[0]!, folders[0]!)).toBe(3);
});
