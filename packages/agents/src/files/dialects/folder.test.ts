// The folder form of an agent whose session is one call of a script.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";

import { loadAgentFile } from "../load-agent-file.ts";

const base = mkdtempSync(join(tmpdir(), "holdfast-folders-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

test("a folder of the type procedural is an agent of its script, and fields for a model are refused", () => {
  const load = (fields: object) => {
    const path = mkdtempSync(join(base, "procedural-"));
    writeFileSync(
      join(path, "agent.json"),
      JSON.stringify({ name: "words", description: "Counts.", type: "procedural", ...fields }),
    );
    return loadAgentFile({ path, dialect: "folder", scope: "path", within: null });
  };
  const { record, verdicts } = load({ script: "count", output_schema: { type: "object" } });
  expect(record).toMatchObject({ script: "count", scripts: ["count"], outputSchema: { type: "object" } });
  expect(verdicts.filter(({ verdict }) => verdict === "mapped").map(({ field }) => field)).toEqual([
    "type",
    "output_schema",
    "script",
  ]);
  expect(load({}).problem?.message).toBe("agent.json has the type procedural and no script");
  for (const [field, value] of Object.entries({
    skills: ["charts"],
    hooks: {},
    capabilities: [],
    parameters_schema: { type: "object" },
  })) {
    const refusals = load({ script: "count", [field]: value }).verdicts.filter(
      ({ verdict }) => verdict === "refused",
    );
    expect(refusals.map((one) => one.field)).toEqual([field]);
  }
  expect(load({ type: "autonomous", script: "count" }).record).toBeNull(); // It lacks a prompt.
});
