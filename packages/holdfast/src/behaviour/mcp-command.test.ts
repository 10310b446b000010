// `holdfast mcp` through the real command: servers of a project and of the user, and what is refused.

import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const PROGRAM = fileURLToPath(new URL("../../../mcp/src/testing/mcp-server-program.mjs", import.meta.url));
let project: Project;
let home: string;

beforeEach(() => {
  project = new Project();
  home = mkdtempSync(join(tmpdir(), "holdfast-home-"));
});

afterEach(async () => {
  await project.dispose();
  rmSync(home, { recursive: true, force: true });
});

const mcp = (...args: readonly string[]) =>
  project.finish(["mcp", ...args], { stdin: "", env: { HOME: home, XDG_DATA_HOME: undefined } });
const projectFile = (): string => project.path(".mcp.json");

test(
  "a server of the project is added, checked once the project is trusted, and removed",
  ofCampaign,
  async () => {
    writeFileSync(projectFile(), JSON.stringify({ inputs: [1], mcpServers: { old: { command: "true" } } }));
    const added = await mcp("add", "test", "--env", "TEST_TOKEN=${HOME}", "--", process.execPath, PROGRAM);
    expect(added.stdout).toContain("test is in .mcp.json");
    expect(added.stderr).toContain("agents trust");
    expect(JSON.parse(readFileSync(projectFile(), "utf8"))).toEqual({
      inputs: [1],
      mcpServers: {
        old: { command: "true" },
        test: { command: process.execPath, args: [PROGRAM], env: { TEST_TOKEN: "${HOME}" } },
      },
    });
    expect((await mcp("list", "--check")).stdout).toMatch(/untrusted .*agents trust/);
    await project.start(["agents", "trust"], { env: { HOME: home, XDG_DATA_HOME: undefined } }).finished;
    const listed = await mcp("list", "--check");
    expect(listed.code).toBe(1);
    expect(listed.stdout).toMatch(/old +failed .*its process ended/);
    expect(listed.stdout).toMatch(/test +reached .*MCP 2025-11-25, 14 tools/);
    const shown = await mcp("show", "test", "--check");
    expect(shown.stdout).toContain("TEST_TOKEN: ${HOME}");
    expect(shown.stdout).toMatch(/greet \(read\)/);
    expect(shown.stdout).toMatch(/count \(once\)/);
    expect((await mcp("remove", "test")).code).toBe(0);
    expect((await mcp("show", "test")).stderr).toContain("there is no MCP server test");
  },
);

test("a server of the user is private, and no project needs trust for it", async () => {
  const url = "http://10.1.2.3/mcp";
  const header = "Authorization=Bearer ${TICKETS_TOKEN}";
  expect((await mcp("add", "tickets", "--user", "--url", url, "--header", header)).code).toBe(0);
  expect(existsSync(projectFile())).toBe(false);
  const [listed] = JSON.parse((await mcp("list", "--json")).stdout) as [Record<string, string>];
  expect(listed).toMatchObject({ name: "tickets", status: "usable", scope: "user", type: "http" });
  expect(statSync(listed["path"] ?? "").mode & 0o777).toBe(0o600);
});

test.each<readonly [what: string, args: readonly string[], message: RegExp]>([
  ["neither a program nor an address", ["add", "x"], /a program or an address/],
  ["both", ["add", "x", "--url", "https://a.example", "--", "true"], /a program or an address/],
  ["a header for a program", ["add", "x", "--header", "A=b", "--", "true"], /--header is for addresses/],
  ["another scheme", ["add", "x", "--url", "file:///etc/passwd"], /--url needs an address/],
  ["an option of another action", ["remove", "x", "--url", "https://a.example"], /has no option --url/],
  [
    "a header without a value",
    ["add", "x", "--url", "https://a.example", "--header", "Secret"],
    /needs NAME=VALUE/,
  ],
])("%s is refused, and nothing is written", async (_what, args, message) => {
  const { code, stderr } = await mcp(...args);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
  expect(existsSync(projectFile())).toBe(false);
});
