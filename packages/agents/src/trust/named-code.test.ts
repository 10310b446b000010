import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { hashOfCode } from "./named-code.ts";

const FILES = 2_100;

test("a change in the last of thousands of imported files is a change of the code", () => {
  const project = mkdtempSync(join(tmpdir(), "named-code-"));
  onTestFinished(() => rmSync(project, { recursive: true, force: true }));
  const names = Array.from({ length: FILES }, (_, n) => `part-${n}.ts`);
  writeFileSync(join(project, "all.ts"), names.map((name) => `import "./${name}";\n`).join(""));
  for (const name of names) writeFileSync(join(project, name), "export {};\n");
  const before = hashOfCode(project, ["all.ts"]);
  for (const name of [names[0]!, names.at(-1)!]) {
    writeFileSync(join(project, name), "steal();\n");
    expect(hashOfCode(project, ["all.ts"]), name).not.toBe(before);
    writeFileSync(join(project, name), "export {};\n");
  }
  expect(hashOfCode(project, ["all.ts"])).toBe(before);
});
