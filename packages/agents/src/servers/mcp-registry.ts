// `addMcpServer`, `removeMcpServer`: changes of a file with MCP servers, of a project (`.mcp.json`) or of the
// user.
//
//   - A change keeps everything else in the file, and writes the whole file or nothing.
//   - A file that cannot be read is refused and not replaced.
//   - No secret is written: settings have placeholders in the place of values.

import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { didYouMean, HoldfastError, NotFoundError, UsageError } from "@holdfast/core";
import { makePrivateFolder, replacePrivate } from "@holdfast/system";

import type { McpServer } from "@holdfast/mcp";
import { literalSecret } from "../format/literal-secret.ts";
import type { McpPlace } from "./mcp-files.ts";

type Content = Record<string, unknown> & { mcpServers: Record<string, unknown> };

/**
 * @throws UsageError for a name or settings that cannot be, HoldfastError `config_invalid` for a file that
 *   cannot be used.
 */
export function addMcpServer(place: McpPlace, name: string, server: McpServer): void {
  checkServerName(name);
  const secret = literalSecret(server);
  if (secret !== undefined)
    throw new UsageError(`the settings of ${name} have a secret written out: ${secret}`, {
      expected: "a placeholder, such as ${API_TOKEN}: its value is the variable of that name",
      fix: "write the placeholder in single quotes; replace the secret, because it may have been seen",
    });
  const content = read(place);
  if (Object.hasOwn(content.mcpServers, name))
    throw new UsageError(`there is an MCP server ${name} already`, {
      at: place.path,
      fix: `take another name, or remove it first: \`holdfast mcp remove ${name}\``,
    });
  write(place, { ...content, mcpServers: { ...content.mcpServers, [name]: settingsOf(server) } });
}

/** @throws NotFoundError, HoldfastError `config_invalid` */
export function removeMcpServer(place: McpPlace, name: string): void {
  const content = read(place);
  const { [name]: found, ...others } = content.mcpServers;
  if (found === undefined)
    throw new NotFoundError(
      "not_found",
      `there is no MCP server ${JSON.stringify(name.slice(0, 80))} in this file${didYouMean(name, Object.keys(others))}`,
      { at: place.path, fix: "run `holdfast mcp list` to see all servers and their files" },
    );
  write(place, { ...content, mcpServers: others });
}

/** The name is a part of the names of tools, `mcp__SERVER__TOOL`. @throws UsageError */
function checkServerName(name: string): void {
  if (/^[A-Za-z0-9][\w-]{0,39}$/.test(name) && !name.includes("__")) return;
  throw new UsageError(`${JSON.stringify(name.slice(0, 80))} cannot be the name of an MCP server`, {
    expected: "up to 40 letters, digits, - and single _, such as tickets",
  });
}

function settingsOf(server: McpServer): object {
  if (server.type === "http") {
    const { type, url, headers } = server;
    return { type, url, ...(Object.keys(headers).length === 0 ? {} : { headers }) };
  }
  const { command, args, env } = server;
  return { command, args, ...(Object.keys(env).length === 0 ? {} : { env }) };
}

function read({ path }: McpPlace): Content {
  if (!existsSync(path)) return { mcpServers: {} };
  try {
    const content = JSON.parse(readFileSync(path, "utf8")) as Content | null;
    const { mcpServers = {} } = content ?? {};
    if (isObject(content) && isObject(mcpServers)) return { ...content, mcpServers };
  } catch {
    // The error below says what is expected.
  }
  throw new HoldfastError(
    "config_invalid",
    "the file of MCP servers cannot be changed: it has another form",
    {
      at: path,
      expected: '{ "mcpServers": { "NAME": { "command": "…" } } }',
      fix: "correct the file",
    },
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function write({ path, scope }: McpPlace, content: Content): void {
  const text = `${JSON.stringify(content, null, 2)}\n`;
  if (scope === "user") {
    makePrivateFolder(dirname(path));
    return replacePrivate(path, text);
  }
  const draft = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(draft, text, { flag: "wx" });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new HoldfastError(
      "config_invalid",
      `the file of MCP servers cannot be written: ${(error as Error).message}`,
      {
        at: path,
        fix: "make the folder writable",
      },
    );
  }
}
