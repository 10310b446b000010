// Profiles of external agents: the places that may permit something, and files that cannot be used.

import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

import type { AgentPlaces } from "../places/agent-places.ts";
import { findProfile, findUsableProfile, readProfiles } from "./profiles.ts";
import { trustFolder } from "./trust-project.ts";

let base: string;
let places: AgentPlaces;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-profiles-")));
  const [project, home] = [join(base, "project"), join(base, "home")];
  places = { project, home, env: {}, trustFile: join(base, "data", "trusted.json") };
  mkdirSync(project);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function write(scope: "home" | "project", name: string, text: string): string {
  const path = join(base, scope, ".holdfast/profiles", name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

test("a profile of the user may permit, and counts before that of a project", () => {
  write(
    "home",
    "fast.yaml",
    "model: sonnet\npermissionMode: acceptEdits\nallowedTools: [shell(git diff:*), read_file]\nsettings: {a: 1}\nmcpServers: {s: {command: x}}\n",
  );
  write("project", "fast.yaml", "model: other\n");
  trustFolder(places.trustFile, places.project);
  expect(findProfile("fast", places)).toEqual({
    name: "fast",
    model: "sonnet",
    permissionMode: "acceptEdits",
    rules: [
      { decision: "allow", tool: "shell", pattern: "git diff:*" },
      { decision: "allow", tool: "read_file", pattern: null },
    ],
    settings: { a: 1 },
    mcpServers: { s: { command: "x" } },
  });
});

test("a profile of the user may choose a program, and the variables that it gets", () => {
  write(
    "home",
    "bedrock.yaml",
    "agent: claude-code\nprogram: /opt/claude\nvariables: [AWS_PROFILE]\nkeys: [MY_KEY]\n",
  );
  expect(findProfile("bedrock", places)).toEqual({
    name: "bedrock",
    agent: "claude-code",
    program: "/opt/claude",
    variables: ["AWS_PROFILE"],
    keys: ["MY_KEY"],
    rules: [],
  });
  const [file] = readProfiles(places);
  expect(file?.verdicts.map(({ field, verdict }) => `${field} ${verdict}`)).toEqual(
    ["agent", "program", "variables", "keys"].map((field) => `${field} honoured`),
  );
});

test("the folders of a profile are absolute paths, also where the file says ~", () => {
  write("home", "goose.yaml", "agent: goose\nfolders: {written: [~/.config/goose], read: [/opt/tools]}\n");
  write(
    "home",
    "mine.yaml",
    "custom: {command: [mine], protocol: acp, resumes: true, folders: {written: [~/.mine]}}\n",
  );
  const at = (path: string): string => join(base, "home", path);
  expect(findProfile("goose", places).folders).toEqual({
    written: [at(".config/goose")],
    read: ["/opt/tools"],
  });
  expect(findUsableProfile("mine", places).custom?.folders).toEqual({ written: [at(".mine")], read: [] });
  write("home", "bad.yaml", "folders: {written: [relative]}\n");
  expect(() => findProfile("bad", places)).toThrow(
    expect.objectContaining({ got: expect.stringContaining("expected an absolute path") }),
  );
});

test("a profile of a project counts once the user trusts the project, and restricts", () => {
  write("project", "slow.yaml", "agent: codex\nmodel: m\npermissionMode: plan\n");
  expect(() => findProfile("slow", places)).toThrow("a project that you do not trust");
  trustFolder(places.trustFile, places.project);
  expect(findProfile("slow", places)).toMatchObject({ agent: "codex", permissionMode: "plan", rules: [] });
});

test.each([
  ["permissionMode", "permissionMode: acceptEdits"],
  ["allowedTools", "allowedTools: [shell]"],
  ["settings", "settings: {permissions: {allow: [Bash]}}"],
  ["mcpServers", "mcpServers: {s: {command: sh}}"],
  ["program", "agent: codex\nprogram: /tmp/codex"],
  ["variables", "variables: [NODE_OPTIONS]"],
  ["keys", "keys: [AWS_SECRET_ACCESS_KEY]"],
  ["folders", "folders: {written: [/]}"],
  ["a2a", "a2a: {url: 'https://agent.example'}"],
  ["mcp", "mcp: {command: [sh], tool: t}"],
  ["custom", "custom: {command: [sh], protocol: lines, resumes: true}"],
])("a profile of a trusted project that permits something is refused: %s", (field, text) => {
  write("project", "p.yaml", `model: m\n${text}\n`);
  trustFolder(places.trustFile, places.project);
  expect(() => findProfile("p", places)).toThrow("cannot be used");
  const [file] = readProfiles(places);
  expect(file).toMatchObject({ status: "refused", profile: null });
  const refused = file?.verdicts.filter(({ verdict }) => verdict === "refused").map((one) => one.field);
  expect(refused).toContain(field);
});

test.each([
  [
    "custom.command",
    "custom: {command: sh, protocol: lines, resumes: true}",
    "expected tuple, received string",
  ],
  [
    "custom.protocol",
    "custom: {command: [sh], protocol: line, resumes: true}",
    'expected one of "acp"|"lines"',
  ],
  ["custom.resume", "custom: {command: [sh], protocol: acp, resumes: true, resume: true}", "not known"],
  ["mcp.reply.tool", "mcp: {command: [sh], tool: t, reply: {argument: a, field: f}}", "expected string"],
])("the error of a field inside of another one names it: %s", (field, text, problem) => {
  write("home", "p.yaml", `${text}\n`);
  const [file] = readProfiles(places);
  const refused = file?.verdicts.filter(({ verdict }) => verdict === "refused") ?? [];
  expect(refused.map((one) => `${one.field}: ${one.text}`)).toEqual([expect.stringContaining(`${field}: `)]);
  expect(refused[0]?.text).toContain(problem);
  expect(() => findUsableProfile("p", places)).toThrow(
    expect.objectContaining({ got: expect.stringContaining(field) }),
  );
});

test.each([
  ["an unknown field", "modle: sonnet"],
  ["a rule of another form", "allowedTools: ['shell(']"],
  ["a text for a list", "allowedTools: shell"],
  ["a program by a relative path", "agent: codex\nprogram: ./codex"],
  ["a program of no agent", "program: /opt/codex"],
  ["a variable with its value", "variables: [A=b]"],
  ["no YAML", "model: ["],
])("a file that is not as expected is refused as a whole: %s", (_, text) => {
  write("home", "p.yaml", text);
  expect(readProfiles(places)).toMatchObject([{ status: "refused", profile: null }]);
});

test("a profile that other users may write is refused, and one that is not there is named", () => {
  chmodSync(write("home", "p.yaml", "model: m\n"), 0o666);
  expect(readProfiles(places)).toMatchObject([{ status: "refused", problem: "other users may write it" }]);
  expect(() => findProfile("none", places)).toThrow('no profile "none"');
});
