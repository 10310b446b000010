// The token of a turn of Claude Code, which no command of its model may have.

import { existsSync, statSync } from "node:fs";
import { afterEach, expect, test } from "vitest";

import { ExternalSession } from "../../testing/external-session.ts";
import { openWayBack } from "../../session/way-back/way-back.ts";
import { writeWayBack } from "./way-back-file.ts";

let session: ExternalSession | undefined;
afterEach(async () => {
  await session?.dispose();
  session = undefined;
});

test("commands of Claude Code have no variable of its session's tools, and their file is gone after the start", async () => {
  session = new ExternalSession("claude-code");
  await session.converse("session:report_progress:half env");
  const said = JSON.stringify(await session.entries());
  expect(said).toContain("Reported.");
  expect(said).toContain("PATH");
  expect(said).not.toContain("HOLDFAST_WAY_BACK");
  const { args } = JSON.parse(session.lines("claude.log")[0]!) as { readonly args: readonly string[] };
  const file = args[args.indexOf("--mcp-config") + 1]!;
  expect(file).toMatch(/holdfast-way-back-\w+\/servers\.json$/);
  expect(existsSync(file)).toBe(false);
});

test("the file is for its user alone, and is removed twice without an error", async () => {
  const wayBack = await openWayBack(() => Promise.resolve({ text: "", isError: false }));
  const file = writeWayBack(wayBack);
  expect(statSync(file.path).mode & 0o777).toBe(0o600);
  file.remove();
  file.remove();
  expect(existsSync(file.path)).toBe(false);
  wayBack.close();
});
