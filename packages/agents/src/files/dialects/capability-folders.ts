// `readCapabilities`: the capabilities that a folder agent names, from `capabilities/NAME/` beside the folder
// `agents`.
//
//   capability.json       { name, description, type: text | mcp | script, script }, where the type may be missing
//   capability.text.md    a text for the system prompt
//   capability.mcp.json   { mcpServers }
//
//   - A file that the type does not permit is refused, so that nothing of a capability is dropped.
//   - Two owners of one MCP server or script refuse the agent, and the error names both.

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";

import { FileProblem, readJson, readText } from "../../format/front-matter.ts";
import { splitReference } from "../../record/content-references.ts";

/** The sum of an agent's own parts and those of its capabilities. */
export interface MergedParts {
  readonly texts: readonly string[];
  readonly servers: Readonly<Record<string, unknown>>;
  readonly scripts: readonly string[];
}

const FILES = ["capability.json", "capability.text.md", "capability.mcp.json"] as const;
const SEPARATOR = "\n\n---\n\n";

const fields = z.strictObject({
  name: z.string(),
  description: z.string().optional(),
  type: z.enum(["text", "mcp", "script"]).optional(),
  script: z.string().min(1).optional(),
});

export function joinTexts(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join(SEPARATOR);
}

/** @param path the folder of the agent. @throws FileProblem */
export function readCapabilities(
  path: string,
  names: readonly string[],
  ownServers: Readonly<Record<string, unknown>>,
): MergedParts {
  const texts: string[] = [];
  const servers: Record<string, unknown> = { ...ownServers };
  const owners = new Map(Object.keys(ownServers).map((name) => [`MCP server ${name}`, "agent.mcp.json"]));
  const scripts: string[] = [];
  const own = (what: string, capability: string): void => {
    const other = owners.get(what);
    if (other !== undefined)
      throw new FileProblem(
        `the ${what} is in ${other} and in the capability ${capability}`,
        "take one of them out, or give the servers different names",
      );
    owners.set(what, `the capability ${capability}`);
  };
  for (const name of new Set(names)) {
    const found = readCapability(path, name);
    texts.push(found.text);
    for (const [server, given] of Object.entries(found.servers)) {
      own(`MCP server ${server}`, name);
      servers[server] = given;
    }
    if (found.script === undefined) continue;
    own(`script ${splitReference(found.script).name}`, name);
    scripts.push(found.script);
  }
  return { texts, servers, scripts };
}

/** The files of the capabilities that an agent names, whether they are there or not. */
export function capabilityFiles(path: string, names: readonly string[]): readonly string[] {
  return names.filter(isName).flatMap((name) => FILES.map((file) => join(folderOf(path, name), file)));
}

function readCapability(path: string, name: string) {
  if (!isName(name))
    throw new FileProblem(
      `${JSON.stringify(name)} is no name of a capability`,
      "use letters, digits, - and _",
    );
  const [main, text, mcp] = FILES.map((file) => join(folderOf(path, name), file)) as [string, string, string];
  if (!existsSync(main))
    throw new FileProblem(
      `the capability ${name} is not there`,
      `write ${main}, or take it out of agent.json`,
    );
  const checked = fields.safeParse(readJson(main));
  if (!checked.success)
    throw new FileProblem(
      `the capability ${name} is wrong: ${z.prettifyError(checked.error).replaceAll("\n", " ")}`,
      `correct ${main}`,
    );
  const { script, type = existsSync(mcp) ? "mcp" : script === undefined ? "text" : "script" } = checked.data;
  if (type !== "script" && script !== undefined) throw forbidden(name, type, "a script");
  if (type !== "mcp" && existsSync(mcp)) throw forbidden(name, type, "capability.mcp.json");
  if (type === "script" && script === undefined)
    throw new FileProblem(`the capability ${name} names no script`, `write "script" into ${main}`);
  const { mcpServers = {} } = existsSync(mcp) ? readJson(mcp) : {};
  return {
    text: existsSync(text) ? readText(text).trim() : "",
    servers: mcpServers as Readonly<Record<string, unknown>>,
    script,
  };
}

function forbidden(name: string, type: string, what: string): FileProblem {
  return new FileProblem(
    `the capability ${name} has the type ${type} and ${what}`,
    "correct the type, or make two capabilities of it",
  );
}

function isName(name: string): boolean {
  return /^[A-Za-z0-9][\w-]{0,99}$/.test(name);
}

function folderOf(path: string, name: string): string {
  return join(dirname(dirname(path)), "capabilities", name);
}
