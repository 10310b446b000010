// Agents in folders with capabilities and hooks: what is merged, and which conflicts refuse the agent.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { foundAt } from "../agent-places.ts";
import { loadAgentFile } from "../load-agent-file.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-folder-agents-"));
  write("agents/one/agent.system-prompt.md", "You help.\n");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, content: unknown): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), typeof content === "string" ? content : JSON.stringify(content));
}
function load(fields: object = {}) {
  write("agents/one/agent.json", { name: "one", description: "d", ...fields });
  return loadAgentFile(foundAt(join(folder, "agents/one")));
}
const server = (url: string) => ({ mcpServers: { docs: { type: "http", url } } });

test("capabilities of the types text, mcp and script are merged in their order", () => {
  write("capabilities/tone/capability.json", { name: "tone", type: "text" });
  write("capabilities/tone/capability.text.md", "Be brief.\n");
  write("capabilities/docs/capability.json", { name: "docs", description: "Docs" });
  write("capabilities/docs/capability.mcp.json", server("https://docs.example/mcp"));
  write("capabilities/count/capability.json", { name: "count", type: "script", script: "word-count" });
  write("capabilities/count/capability.text.md", "Count before you answer.");
  const { record, verdicts } = load({ capabilities: ["tone", "docs", "count"] });
  expect(record).toMatchObject({
    prompt: "You help.\n\n---\n\nBe brief.\n\n---\n\nCount before you answer.",
    mcpServers: { docs: { url: "https://docs.example/mcp" } },
    scripts: ["word-count"],
  });
  expect(verdicts).toContainEqual(
    expect.objectContaining({ field: "capabilities", text: "tone, docs, count; scripts: word-count" }),
  );
  write("capabilities/tone/capability.text.md", "Be very brief.\n");
  expect(load({ capabilities: ["tone", "docs", "count"] }).record?.source.hash).not.toBe(record?.source.hash);
});

test("an agent is a hook of a folder agent, and continues on an error by default", () => {
  const on_run_start = { type: "agent", agent_name: "judge", timeout_seconds: 5 };
  expect(load({ hooks: { on_run_start } }).record?.hooks).toEqual([
    {
      point: "on_run_start",
      tools: null,
      run: { type: "agent", name: "judge" },
      timeoutMs: 5_000,
      onError: "continue",
      claudeEvent: null,
    },
  ]);
});

describe("an agent is refused", () => {
  test.each<readonly [string, () => object, string]>([
    [
      "for a capability that is not there",
      () => ({ capabilities: ["none"] }),
      "the capability none is not there",
    ],
    ["for a path in the place of a name", () => ({ capabilities: ["../x"] }), "is no name of a capability"],
    ["for capabilities that are no list", () => ({ capabilities: { a: 1 } }), "capabilities"],
    [
      "for one MCP server in two capabilities",
      () => {
        for (const name of ["a", "b"]) {
          write(`capabilities/${name}/capability.json`, { name });
          write(`capabilities/${name}/capability.mcp.json`, server("https://x.example"));
        }
        return { capabilities: ["a", "b"] };
      },
      "the MCP server docs is in the capability a and in the capability b",
    ],
    [
      "for an MCP server of its own and of a capability",
      () => {
        write("agents/one/agent.mcp.json", server("https://x.example"));
        write("capabilities/a/capability.json", { name: "a" });
        write("capabilities/a/capability.mcp.json", server("https://x.example"));
        return { capabilities: ["a"] };
      },
      "the MCP server docs is in agent.mcp.json and in the capability a",
    ],
    [
      "for one script in two capabilities",
      () => {
        for (const name of ["a", "b"]) write(`capabilities/${name}/capability.json`, { name, script: "s" });
        return { capabilities: ["a", "b"] };
      },
      "the script s is in the capability a and in the capability b",
    ],
    [
      "for a text capability with a script",
      () => (
        write("capabilities/a/capability.json", { name: "a", type: "text", script: "s" }),
        { capabilities: ["a"] }
      ),
      "has the type text and a script",
    ],
    [
      "for a script capability without a script",
      () => (write("capabilities/a/capability.json", { name: "a", type: "script" }), { capabilities: ["a"] }),
      "the capability a names no script",
    ],
    [
      "for an unknown type",
      () => (write("capabilities/a/capability.json", { name: "a", type: "tool" }), { capabilities: ["a"] }),
      "the capability a is wrong",
    ],
    [
      "for a capability that is not JSON",
      () => (write("capabilities/a/capability.json", "{"), { capabilities: ["a"] }),
      "capability.json is not JSON",
    ],
    ["for a hook of another type", () => ({ hooks: { on_run_start: { type: "http" } } }), "hooks"],
  ])("%s", (_name, make, says) => {
    const { record, problem, verdicts } = load(make());
    expect(record).toBeNull();
    expect(
      JSON.stringify([problem?.message, verdicts.filter(({ verdict }) => verdict === "refused")]),
    ).toContain(says);
  });
});
