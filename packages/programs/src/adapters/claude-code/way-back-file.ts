// The file by which Claude Code learns of the tools of its session (`writeWayBack`).
//
//   - It holds the token of the turn, so it is for this user alone, in a folder of its own. A variable of
//     Claude Code would reach every command that its model runs.
//   - It is removed as soon as the program has read it, and at the latest with the turn.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPrivate } from "@holdfast/system";

import type { WayBack } from "../../session/way-back/way-back.ts";
import { WAY_BACK } from "../../session/way-back/way-back-tools.ts";
import type { ToolFile } from "../lines/line-dialogue.ts";

export function writeWayBack({ command, args, env }: WayBack): ToolFile {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-way-back-"));
  const path = join(folder, "servers.json");
  const server = { type: "stdio", command, args, env, alwaysLoad: true };
  createPrivate(path, JSON.stringify({ mcpServers: { [WAY_BACK]: server } }));
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
