// Small agent files that take time out of proportion to their size. Every list of agents reads the files of
// projects that nobody trusts.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { filledIn } from "../commands/fill-arguments.ts";
import { jsoncObject } from "../format/front-matter.ts";
import { loadAgentFile, type AgentFile } from "./load-agent-file.ts";

const folder = mkdtempSync(join(tmpdir(), "holdfast-hostile-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function load(field: string): AgentFile {
  const path = join(folder, "one.md");
  writeFileSync(path, `---\nname: one\ndescription: d\n${field}\n---\nDo it.\n`);
  return loadAgentFile({ path, dialect: "holdfast", scope: "path", within: null });
}

test("many commas, and tools that wait for each other in many ways, are read at once", () => {
  // The ways double with each row.
  const rows = Array.from({ length: 40 }, (_, n) => {
    const [next, other] = [`{ after: task__a${n + 1} }`, `{ after: [task__b${n}, task__c${n}] }`];
    return `    task__a${n}: ${other}\n    task__b${n}: ${next}\n    task__c${n}: ${next}\n`;
  });
  const when = (more: string) => `holdfast:\n  when:\n${rows.join("")}${more}`;
  expect(Object.keys(load(when("")).record?.when ?? {})).toHaveLength(120);
  const circle = load(when("    task__a40: { after: task__b39 }"));
  expect(circle.verdicts).toContainEqual(
    expect.objectContaining({ field: "holdfast.when", text: "task__b39 would wait for itself" }),
  );
  expect(load(`tools: "Read${",".repeat(60_000)}"`).record?.tools).toEqual(["read_file"]);
});

test("a restriction that YAML cannot read, and that is read as a text, permits nothing", () => {
  for (const field of ["disallowedTools: [Bash] [Read]", "hooks: {} {}", "permissionMode: [plan] x"])
    expect(load(field).record, field).toBeNull();
});

// A step for each pair of these beginnings would be 10^11 steps: such a test does not end.
test("a text of many beginnings without an end is read once", () => {
  const many = (beginning: string): string => beginning.repeat(500_000);
  expect(() => jsoncObject(`"${many('\\"')}`, "x.json")).toThrow("x.json is not JSON");
  expect(() => jsoncObject(many("/*"), "x.json")).toThrow("x.json is not JSON");
  expect(filledIn(many("${input:a:"), "copilot", "")).toHaveLength(5_000_000);
  expect(filledIn("$1", "claude", many("'it\""))).not.toBe("$1");
});
