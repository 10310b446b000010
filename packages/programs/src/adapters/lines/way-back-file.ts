// The file by which a program learns of the tools of its session, as the MCP servers of `.mcp.json` are written
// (`writeWayBack`). It is the `toolFile` of a program that takes such a file by an option, as Claude Code does.
//
//   - It holds the token of the turn, so it is for this user alone, in a folder of its own. A variable of the
//     program would reach every command that its model runs.
//   - It is removed with the turn, and before where a dialogue knows that the program has read it.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPrivate } from "@holdfast/system";

import type { WayBack } from "../../session/way-back/way-back.ts";
import { WAY_BACK } from "../../session/way-back/way-back-tools.ts";
import type { ToolFile } from "./line-dialogue.ts";

export function writeWayBack({ command, args, env }: WayBack): ToolFile {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-way-back-"));
  const path = join(folder, "servers.json");
  // `alwaysLoad` is for Claude Code, which would search its tools first. Other programs ignore the field.
  const server = { type: "stdio", command, args, env, alwaysLoad: true };
  // It is of no use after a power failure, and the program waits for it.
  createPrivate(path, JSON.stringify({ mcpServers: { [WAY_BACK]: server } }), false);
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
