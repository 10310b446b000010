// Agent Plugins are read where they lie, by version 1.0.0 of their format. The files follow plugins that are
// published.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { McpServers } from "@holdfast/mcp";
import type { AgentPlaces } from "../places/agent-places.ts";
import { readMcpFiles } from "../servers/mcp-files.ts";
import { approveSkills, findSkills } from "../skills/find-skills.ts";
import { trustFolder } from "./trust-project.ts";
import { findPlugins } from "./plugins.ts";

const SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";
const SERVERS = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json";

let folder: string;
let places: AgentPlaces;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-plugins-")));
  const [project, home] = [join(folder, "project"), join(folder, "home")];
  mkdirSync(project);
  mkdirSync(home);
  places = { project, home, env: {}, trustFile: join(home, "trusted-folders.json"), trustsProject: true };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, content: unknown): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}
const manifest = (path: string, fields: object = {}): string =>
  write(`${path}/plugin.json`, { $schema: SCHEMA, name: "mail", ...fields });
const servers = (path: string, mcpServers: unknown): string =>
  write(`${path}/mcp.json`, { $schema: SERVERS, mcpServers });
const skill = (path: string): string =>
  write(`${path}/SKILL.md`, `---\nname: ${path.split("/").at(-1)}\ndescription: Sends mail.\n---\nText.\n`);
const PLACE = "project/.agents/plugins/mail";

describe("Agent Plugins", () => {
  test("a plugin has its skills and servers, and its other fields are reported", () => {
    manifest(PLACE, {
      version: "1.2.0",
      description: "Mail.",
      author: { name: "A" },
      colour: "red",
      extensions: {},
    });
    skill(`${PLACE}/skills/send`);
    servers(PLACE, {
      mail: {
        type: "stdio",
        command: "node",
        args: ["${PLUGIN_ROOT}/server.js"],
        env: { STATE: "${PLUGIN_DATA}/state" },
      },
      remote: { type: "streamable-http", url: "https://mail.example/mcp", headers: { "X-Part": "a" } },
    });
    const root = join(folder, PLACE);
    const data = join(folder, "home/plugin-data/project/mail");
    const [plugin] = findPlugins(places);
    expect(plugin).toMatchObject({ name: "mail", scope: "project", status: "loaded", description: "Mail." });
    expect(plugin?.verdicts.map(({ field, verdict }) => `${field} ${verdict}`)).toEqual([
      "$schema honoured",
      "name honoured",
      "description honoured",
      "version ignored",
      "author ignored",
      "extensions ignored",
      "colour ignored",
    ]);
    expect(findSkills(places)).toMatchObject([{ name: "send", scope: "project", status: "loaded" }]);
    expect(readMcpFiles(places)).toMatchObject([
      {
        path: join(root, "mcp.json"),
        scope: "project",
        status: "loaded",
        servers: {
          mail: {
            type: "stdio",
            command: "node",
            args: [`${root}/server.js`],
            env: { STATE: `${data}/state`, PLUGIN_ROOT: root, PLUGIN_DATA: data },
            cwd: root,
          },
          remote: { type: "http", url: "https://mail.example/mcp", headers: { "X-Part": "a" } },
        },
      },
    ]);
    expect(existsSync(data), "reading makes no folder").toBe(false);
  });

  test("a plugin of a project that is not trusted is listed and not read, and neither are its parts", () => {
    manifest(PLACE, { name: "NOT a name" });
    skill(`${PLACE}/skills/send`);
    servers(PLACE, { mail: { type: "stdio", command: "node" } });
    const untrusted = { ...places, trustsProject: false };
    expect(findPlugins(untrusted)).toMatchObject([{ name: "mail", status: "untrusted", verdicts: [] }]);
    expect(findSkills(untrusted)).toMatchObject([{ name: "send", status: "untrusted", description: "" }]);
    expect(readMcpFiles(untrusted)).toMatchObject([{ status: "untrusted", servers: {} }]);
  });

  test("a plugin of the project hides one of the user, and its skills need the approval of the user", () => {
    manifest(PLACE);
    manifest("home/.agents/plugins/mail");
    manifest("home/.agents/plugins/own", { name: "own" });
    skill(`${PLACE}/skills/send`);
    skill("home/.agents/plugins/mail/skills/other");
    skill("home/.agents/plugins/own/skills/write");
    expect(findPlugins(places).map(({ name, scope, status }) => `${scope} ${name} ${status}`)).toEqual([
      "project mail loaded",
      "user mail hidden",
      "user own loaded",
    ]);
    trustFolder(places.trustFile, places.project);
    const trusted = { ...places, trustsProject: false };
    const seen = (): string[] => findSkills(trusted).map(({ name, status }) => `${name} ${status}`);
    expect(seen()).toEqual(["send unapproved", "write loaded"]);
    approveSkills(trusted, ["send"]);
    expect(seen()).toEqual(["send loaded", "write loaded"]);
  });

  test("a plugin may start a program of its own, in its folder and with its data folder", async () => {
    manifest(PLACE);
    const program = write(
      `${PLACE}/bin/server`,
      `#!/bin/sh\npwd > "$PLUGIN_DATA/started"\nprintf '%s' "$SECRET_OF_USER" >> "$PLUGIN_DATA/started"\n`,
    );
    chmodSync(program, 0o755);
    servers(PLACE, { mail: { type: "stdio", command: "./bin/server" } });
    const [file] = readMcpFiles(places);
    const mcp = new McpServers({ variable: () => "secret" });
    const server = { sessionId: "s", name: "mail", server: file!.servers["mail"]!, folder };
    // The program speaks no MCP, so the call fails once it has ended.
    await expect(mcp.with(server, () => Promise.resolve())).rejects.toThrow("mail");
    await mcp.close();
    expect(readFileSync(join(folder, "home/plugin-data/project/mail/started"), "utf8")).toBe(
      `${join(folder, PLACE)}\n`,
    );
  });
});

describe("a plugin with a mistake is refused with the reason, and not loaded in part", () => {
  test.each<readonly [what: string, manifest: unknown, reason: string]>([
    ["no JSON", "{", "plugin.json is not JSON"],
    ["no object", "[]", "not a JSON object"],
    ["no $schema", { name: "mail" }, "it is missing: write"],
    ["another version", { $schema: SCHEMA.replace("1.0.0", "2.0.0"), name: "mail" }, "version 1.0.0"],
    ["no name", { $schema: SCHEMA }, "give the plugin a name"],
    ["capital letters", { $schema: SCHEMA, name: "Mail" }, "small letters"],
    ["two hyphens", { $schema: SCHEMA, name: "a--b" }, "small letters"],
    ["two periods", { $schema: SCHEMA, name: "a..b" }, "small letters"],
    ["a path", { $schema: SCHEMA, name: "../mail" }, "small letters"],
    ["a long name", { $schema: SCHEMA, name: "a".repeat(65) }, "up to 64"],
    ["keywords that are no list", { $schema: SCHEMA, name: "mail", keywords: "mail" }, "wrong value"],
  ])("%s", (_, content, reason) => {
    write(`${PLACE}/plugin.json`, content);
    skill(`${PLACE}/skills/send`);
    servers(PLACE, { mail: { type: "stdio", command: "node" } });
    const [plugin] = findPlugins(places);
    expect(plugin?.status).toBe("refused");
    expect(JSON.stringify(plugin)).toContain(reason);
    expect(findSkills(places)).toEqual([]);
    expect(readMcpFiles(places)).toEqual([]);
  });

  test("a link that leads out of the project", () => {
    manifest("outside");
    mkdirSync(join(folder, "project/.agents/plugins"), { recursive: true });
    symlinkSync(join(folder, "outside"), join(folder, PLACE));
    expect(findPlugins(places)).toMatchObject([
      { status: "refused", problem: expect.stringContaining("link") },
    ]);
  });
});

describe("servers of a plugin with a mistake are refused with the reason", () => {
  const good = { type: "stdio", command: "node" };
  test.each<readonly [what: string, server: unknown, reason: string]>([
    ["no type", { command: "node" }, "type"],
    ["the old transport", { type: "sse", url: "https://a.example" }, "type"],
    ["an unknown field", { ...good, timeout: 5 }, "timeout"],
    ["a field of the other type", { ...good, url: "https://a.example" }, "url"],
    ["a number for a variable", { ...good, env: { A: 1 } }, "env.A"],
    ["a variable of the user", { ...good, env: { A: "${AWS_SECRET_ACCESS_KEY}" } }, "has no value here"],
    ["a placeholder in the command", { ...good, command: "${PLUGIN_ROOT}/a" }, "has no value here"],
    [
      "a placeholder in an address",
      { type: "streamable-http", url: "https://a.example/${TOKEN}" },
      "has no value here",
    ],
    ["another scheme", { type: "streamable-http", url: "file:///etc/passwd" }, "url"],
    ["a folder outside of the plugin", { ...good, cwd: "../.." }, "outside of the plugin"],
  ])("%s", (_, server, reason) => {
    manifest(PLACE);
    servers(PLACE, { bad: server, good });
    const [file] = readMcpFiles(places);
    expect(Object.keys(file!.servers)).toEqual(["good"]);
    expect(file!.verdicts.find(({ verdict }) => verdict === "refused")?.text).toContain(reason);
  });

  test.each<readonly [what: string, content: unknown, reason: string]>([
    ["no $schema", { mcpServers: {} }, "version 1.0.0"],
    ["an unknown field", { $schema: SERVERS, mcpServers: {}, inputs: [] }, '"inputs"'],
    ["no servers", { $schema: SERVERS }, "mcpServers is missing"],
    ["no JSON", "{", "mcp.json is not JSON"],
  ])("%s in the file", (_, content, reason) => {
    manifest(PLACE);
    write(`${PLACE}/mcp.json`, content);
    expect(readMcpFiles(places)).toMatchObject([
      { status: "refused", servers: {}, problem: expect.stringContaining(reason) },
    ]);
  });
});
