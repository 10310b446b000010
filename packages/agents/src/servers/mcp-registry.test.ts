// Changes of files with MCP servers: what is kept, and what is refused before anything is written.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import type { AgentPlaces } from "../places/agent-places.ts";
import type { McpServer } from "@holdfast/mcp";
import { withMcpServers } from "./session-servers.ts";
import { RECORD } from "../testing/agent-record.ts";
import { mcpPlace, readMcpFiles } from "./mcp-files.ts";
import { addMcpServer, removeMcpServer } from "./mcp-registry.ts";

let places: AgentPlaces;

beforeEach(() => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-mcp-files-")));
  places = {
    project: folder,
    home: folder,
    env: {},
    trustFile: join(folder, "data/trusted-folders.json"),
    trustsProject: true,
  };
});

afterEach(() => rmSync(places.project, { recursive: true, force: true }));

const program = (change: Partial<McpServer> = {}): McpServer =>
  ({ type: "stdio", command: "npx", args: [], env: {}, ...change }) as McpServer;
const address = (url: string, headers: Readonly<Record<string, string>> = {}): McpServer => ({
  type: "http",
  url,
  headers,
});

test("a server of the project goes before one of the user, and only the user's may have a private address", () => {
  addMcpServer(mcpPlace(places, "project"), "a", address("https://project.example"));
  addMcpServer(mcpPlace(places, "user"), "a", address("https://user.example"));
  addMcpServer(mcpPlace(places, "user"), "b", address("https://user.example"));
  const [project, user] = readMcpFiles(places);
  expect(project).toMatchObject({ scope: "project", servers: { a: { url: "https://project.example" } } });
  expect(project?.servers["a"]).not.toHaveProperty("isUsers");
  expect(user?.servers["b"]).toMatchObject({ isUsers: true });
});

test("a project cannot say that its server is the user's", () => {
  writeFileSync(
    join(places.project, ".mcp.json"),
    JSON.stringify({ mcpServers: { a: { url: "https://a.example", isUsers: true } } }),
  );
  expect(readMcpFiles(places)[0]?.servers).toEqual({});
});

test("a container gets the names of its variables as arguments, and no value", () => {
  writeFileSync(
    join(places.project, ".mcp.json"),
    JSON.stringify({
      mcpServers: { a: { type: "docker", image: "mcp/git", args: ["-v"], env: { T: "${T}" } } },
    }),
  );
  expect(readMcpFiles(places)[0]?.servers["a"]).toEqual({
    type: "stdio",
    command: "docker",
    args: ["run", "-i", "--rm", "--init", "-e", "T", "mcp/git", "-v"],
    env: { T: "${T}" },
  });
});

test("a file of the user that others may write is refused", () => {
  const place = mcpPlace(places, "user");
  addMcpServer(place, "a", program());
  chmodSync(place.path, 0o666);
  expect(readMcpFiles(places)[0]).toMatchObject({
    status: "refused",
    problem: expect.stringContaining("other users"),
  });
});

test.each<readonly [what: string, name: string, server: McpServer, message: RegExp]>([
  ["an empty name", "", program(), /cannot be the name/],
  ["a name with a path", "../x", program(), /cannot be the name/],
  ["a name that divides the names of tools", "a__b", program(), /cannot be the name/],
  ["a name that is too long", "a".repeat(41), program(), /cannot be the name/],
  [
    "a secret in a header",
    "a",
    address("https://a.example", { Authorization: "Bearer abc" }),
    /written out: Authorization/,
  ],
  [
    "a secret of a known form",
    "a",
    address("https://a.example", { X: `ghp_${"a".repeat(20)}` }),
    /written out: X/,
  ],
  ["a secret in a variable", "a", program({ env: { API_KEY: "abc" } }), /written out: API_KEY/],
  ["a secret as an argument", "a", program({ args: ["--api-key", "abc"] }), /written out: --api-key/],
  ["a secret in an argument", "a", program({ args: ["--token=abc"] }), /written out: --token/],
  ["a password in an address", "a", address("https://u:p@a.example"), /the user name in the address/],
  ["a secret in a query", "a", address("https://a.example/?api_key=abc"), /api_key in the address/],
])("%s is refused, and no file is written", (_what, name, server, message) => {
  const place = mcpPlace(places, "project");
  expect(() => addMcpServer(place, name, server)).toThrow(message);
  expect(existsSync(place.path)).toBe(false);
});

test.each(["{", "[]", "null", '{ "mcpServers": [] }'])(
  "a file with %s is refused and not replaced",
  (text) => {
    const place = mcpPlace(places, "project");
    writeFileSync(place.path, text);
    expect(() => addMcpServer(place, "a", program())).toThrow(/another form/);
    expect(() => removeMcpServer(place, "a")).toThrow(/another form/);
    expect(readFileSync(place.path, "utf8")).toBe(text);
  },
);

test("a second server of one name and the removal of none are refused", () => {
  const place = mcpPlace(places, "project");
  addMcpServer(place, "tickets", program());
  expect(() => addMcpServer(place, "tickets", program())).toThrow(/already/);
  expect(() => removeMcpServer(place, "tickts")).toThrow(/did you mean tickets/);
});

describe("a registry with a folder for each server", () => {
  const register = (id: string, content: object) => {
    mkdirSync(join(places.project, "mcp-servers", id), { recursive: true });
    writeFileSync(join(places.project, "mcp-servers", id, "mcp-server.json"), JSON.stringify(content));
    return readMcpFiles(places)[0];
  };
  const entry = {
    id: "context-store",
    name: "Context Store",
    description: "Documents",
    url: "http://localhost:9501/mcp",
    config_schema: {
      context_id: { type: "string", description: "d", required: true },
      "X-Agent-Tags": { type: "string", required: true, sensitive: false },
      workflow: { type: "string", required: false },
      lang: { type: "string", default: "en" },
    },
    default_config: { "X-Agent-Tags": "internal" },
  };

  test("the configuration is headers, and a required one without a default needs a value", () => {
    const file = register("context-store", entry);
    expect(file?.servers).toEqual({
      "context-store": {
        type: "http",
        url: "http://localhost:9501/mcp",
        headers: { context_id: "${context_id}", "X-Agent-Tags": "internal", lang: "en" },
      },
    });
    expect(file?.verdicts.map(({ field, verdict }) => [field, verdict])).toEqual([
      ["id", "honoured"],
      ["name", "ignored"],
      ["description", "ignored"],
      ["url", "honoured"],
      ["config_schema", "mapped"],
      ["default_config", "mapped"],
    ]);
    const check = (config: Readonly<Record<string, string>>) =>
      withMcpServers({ ...RECORD, mcpServers: { docs: { ref: "context-store", config } } }, places);
    expect(check({ context_id: "${params.prompt}" }).mcpServers["docs"]).toMatchObject({
      headers: { context_id: "${params.prompt}" },
    });
    expect(() => check({})).toThrow(
      /docs, headers\.context_id: the placeholder \$\{context_id\} has no value/,
    );
  });

  test("a sensitive key has a placeholder, also in the configuration of an agent", () => {
    const sensitive = {
      team: { sensitive: true, required: true },
      Lang: { sensitive: true, default: "${LANG}" },
    };
    const file = register("context-store", { ...entry, config_schema: sensitive, default_config: {} });
    expect(file?.servers["context-store"]).toMatchObject({ headers: { team: "${team}", Lang: "${LANG}" } });
    const check = (config: Readonly<Record<string, string>>) => () =>
      withMcpServers(
        { ...RECORD, mcpServers: { docs: { ref: "context-store", config } } },
        { ...places, env: { team: "x", LANG: "x" } },
      );
    expect(check({ Team: "hunter2" })).toThrow(/has a secret written into its settings: Team/);
    expect(check({ Team: "${team}" })).not.toThrow();
  });

  test.each<readonly [what: string, change: object, says: string]>([
    [
      "a sensitive value that is written out",
      { config_schema: { team: { sensitive: true, default: "hunter2" } } },
      "it is sensitive, and its value is written out: write ${team}",
    ],
    [
      "a sensitive default that is written out",
      { config_schema: { "X-Agent-Tags": { sensitive: true } } },
      "write ${X_Agent_Tags}",
    ],
    ["another id than its folder", { id: "other" }, "the folder of the server is context-store"],
    ["no address", { url: undefined }, "it is missing"],
    ["an address of another scheme", { url: "file:///etc/passwd" }, "no URL of http or https"],
    ["an unknown field", { confg: {} }, 'knows no field "confg"'],
    ["a configuration that is a list", { default_config: [] }, "wrong value"],
  ])("%s is refused", (_what, change, says) => {
    const file = register("context-store", { ...entry, ...change });
    expect(file?.servers).toEqual({});
    expect(JSON.stringify(file?.verdicts.filter(({ verdict }) => verdict === "refused"))).toContain(
      JSON.stringify(says).slice(1, -1),
    );
  });

  test("in a project that is not trusted it is listed and not read", () => {
    places = { ...places, trustsProject: false };
    expect(register("context-store", entry)).toMatchObject({ status: "untrusted", servers: {} });
  });
});
