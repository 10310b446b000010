// The input of an agent is checked before anything starts: the error has places, messages and the schema, and
// no session is left.

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { expectError } from "../testing/expect-error.ts";
import { Project } from "../testing/holdfast-process.ts";

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

const run = (...args: string[]) =>
  project.finish(args, { stdin: "", env: { HOME: home, XDG_DATA_HOME: undefined } });

const SCHEMA = `{ type: object, properties: { topic: { type: string }, level: { enum: [low, high] } }, required: [topic], additionalProperties: false }`;

test(
  "a wrong input of an agent file names each place and the schema, and leaves no session",
  ofCampaign,
  async () => {
    mkdirSync(project.path(".holdfast/agents"), { recursive: true });
    writeFileSync(
      project.path(".holdfast/agents/a.md"),
      `---\nname: a\ndescription: d\nholdfast:\n  input: ${SCHEMA}\n---\np\n`,
    );
    await run("agents", "trust");
    const schema = 'expected: a value of {"type":"object","properties":{"topic":';
    const cases: readonly (readonly [readonly string[], readonly string[]])[] = [
      [
        ["--input", '{"level": "mid"}'],
        ["required property 'topic'", '/level: must be one of "low", "high"', schema],
      ],
      [
        ["--input", '{"topic": "x", "tpoic": 1}'],
        ['must NOT have additional properties: "tpoic"', schema],
      ],
      [["a text"], ["the value: must be object", schema]],
    ];
    for (const [input, says] of cases)
      expectError(await run("run", "a", ...input), 2, "E_INVALID_INPUT", says);
    const { stderr } = await run("run", "a", "--input", "[]", "--json");
    expect(JSON.parse(stderr)).toMatchObject({
      code: "E_INVALID_INPUT",
      expected: expect.stringContaining("topic"),
    });
    expect(existsSync(project.path(".holdfast/holdfast.db"))).toBe(false);
  },
);

test("a wrong input of an agent of code has the schema of its library", async () => {
  writeFileSync(
    project.path("greet.ts"),
    `import { defineAgent } from "holdfast";
const validate = (value: unknown) =>
  typeof value === "string" ? { value } : { issues: [{ message: "not a text", path: ["name"] }] };
const jsonSchema = { input: () => ({ type: "string" }) };
const input = { "~standard": { version: 1 as const, vendor: "mine", validate, jsonSchema } };
export default defineAgent({ name: "greet", input, run: async (_ctx, name) => name });
`,
  );
  const says = ["/name: not a text", 'expected: a value of {"type":"string"}'];
  expectError(await run("run", "greet.ts", "--input", "7"), 2, "E_INVALID_INPUT", says);
  expect(existsSync(project.path(".holdfast/holdfast.db"))).toBe(false);
});
