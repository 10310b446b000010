// Agents written as TypeScript projects are written: by the conventions of compilers and editors, and not
// only as Node strips types.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
beforeEach(() => {
  project = new Project();
});
afterEach(() => project.dispose());

function write(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(project.path(name)), { recursive: true });
    writeFileSync(project.path(name), text);
  }
}

/** An agent that returns the value of an expression. */
const agentOf = (imports: string, expression: string): string =>
  `import { defineAgent } from "holdfast";\n${imports}\n` +
  `export default defineAgent({ name: "a", run: (ctx) => ctx.run("step", () => ${expression}) });\n`;

/** A process of its own: the loader of a process keeps what it has loaded. */
const run = (file: string) => project.start(["run", file], { stdin: "" }).finished;

describe("an agent's file may have", () => {
  test.each([
    [
      "a task that blocks a thread",
      {
        "agent.ts": `import { execSync } from "node:child_process";
import { isMainThread } from "node:worker_threads";
import { defineAgent, defineTask } from "holdfast";
import { Part } from "./part.js";
export const task = defineTask({
  name: "task",
  inThread: import.meta.url,
  run: (n: number) => (isMainThread ? "not in a thread" : n + Number(execSync("echo 3")) + Part.Four),
});
export default defineAgent({ name: "a", tasks: [task], run: (ctx) => ctx.scheduleTask(task, 0) });
`,
        "part.ts": "export enum Part { Four = 4 }\n",
      },
    ],
    [
      "imports with the extension of the compiled file",
      {
        "agent.ts": agentOf('import { h } from "./lib/h.js";', "h()"),
        "lib/h.ts": "export const h = () => 7;\n",
      },
    ],
    [
      "imports without an extension, and of a folder",
      {
        "agent.ts": agentOf('import { h } from "./h"; import { i } from "./lib";', "h() + i"),
        "h.ts": "export const h = (): number => 3;\n",
        "lib/index.ts": "export const i = 4;\n",
      },
    ],
    [
      "enums, namespaces and parameter properties",
      {
        "agent.ts": agentOf(
          `enum Size { Small = 3, Large }
namespace Names { export const one = 1; }
class Box { constructor(private readonly size: number) {} get inner(): number { return this.size; } }`,
          "new Box(Size.Small).inner + Size.Large - Names.one + 1",
        ),
      },
    ],
    [
      "an import of a type without the word type",
      {
        "agent.ts": agentOf('import { Shape, area } from "./shapes.js";', "area({ side: 7 } as Shape)"),
        "shapes.ts":
          'import { Side } from "./side"; export interface Shape { side: Side } export const area = (s: Shape) => s.side;\n',
        "side.ts": "export type Side = number;\n",
      },
    ],
    [
      "paths of tsconfig.json",
      {
        "tsconfig.json": '{ "compilerOptions": { "paths": { "@lib/*": ["./src/lib/*"] } } } // a comment',
        "src/agent.ts": agentOf('import { h } from "@lib/h";', "h"),
        "src/lib/h.ts": "export const h = 7;\n",
      },
    ],
    [
      "JSX",
      {
        "agent.tsx": `/** @jsxRuntime classic */\n/** @jsx h */\n${agentOf(
          "const h = (tag: string, props: { n: number }) => ({ tag, ...props });",
          "(<b n={7} /> as unknown as { n: number }).n",
        )}`,
      },
    ],
    [
      "the syntax of ES modules in a package of CommonJS",
      {
        "package.json": '{ "type": "commonjs" }',
        "agent.ts": agentOf('import { h } from "./h";', "h"),
        "h.ts": "export const h: number = 7;\n",
      },
    ],
    [
      "a file of CommonJS that requires TypeScript",
      {
        "package.json": '{ "type": "commonjs" }',
        "agent.cts":
          'const { defineAgent } = require("holdfast");\nconst { h } = require("./h");\nmodule.exports = defineAgent({ name: "a", run: async () => h });\n',
        "h.cts": "enum E { A = 7 }\nmodule.exports.h = E.A;\n",
      },
    ],
  ])("%s", ofCampaign, async (_what, files) => {
    write(files);
    const file = Object.keys(files).find((name) => /agent\.c?tsx?$/.test(name))!;
    expect(await run(file)).toMatchObject({ code: 0, stdout: "7\n" });
  });
});

test("a project of a compiler runs, and its own instance of Holdfast is the command's", async () => {
  write({
    "agent.ts": `import { AgentContext, defineAgent, HoldfastError } from "holdfast";
import { Kind, fail } from "./lib/kinds.js";
class Step { constructor(readonly kind: Kind) {} }
export default defineAgent({
  name: "a",
  run: async (ctx: AgentContext<unknown>) => {
    try { await ctx.run("step", () => fail(new Step(Kind.Slow).kind), { retry: { maxAttempts: 1 } }); }
    catch (error) { return [HoldfastError.is(error), (error as Error).message]; }
  },
});
`,
    "lib/kinds.ts":
      'export enum Kind { Slow = "slow" }\nexport function fail(kind: Kind): never { throw new Error(kind); }\n',
  });
  const { code, stdout } = await run("agent.ts");
  expect({ code, output: JSON.parse(stdout) as unknown }).toEqual({
    code: 0,
    output: [true, expect.stringContaining("slow")],
  });
});

describe("errors name lines of the source", () => {
  test("an error that a compiled file throws while it is loaded names its line", ofCampaign, async () => {
    write({ "agent.ts": "enum A { B }\n\n\nthrow new Error(`never ${A.B}`);\n" });
    const { code, stderr } = await run("agent.ts");
    expect([code, stderr]).toEqual([3, expect.stringContaining(`${project.path("agent.ts")}:4:`)]);
  });

  test("a syntax error in a compiled file names its line", ofCampaign, async () => {
    write({ "agent.ts": "enum A { B }\n\nconst x = = 1;\n" });
    const { code, stderr } = await run("agent.ts");
    expect([code, stderr]).toEqual([3, expect.stringContaining(`${project.path("agent.ts")}:3`)]);
  });

  test(
    "an import that leads nowhere is told, and so is a name that is not exported",
    ofCampaign,
    async () => {
      write({ "agent.ts": 'import { h } from "./nowhere.js";\nexport default async () => h;\n' });
      expect((await run("agent.ts")).stderr).toContain("imports something that does not exist");
      write({
        "other.ts": 'import { h } from "./h.js";\nexport default async () => h;\n',
        "h.ts": "export const i = 1;\n",
      });
      const { code, stderr } = await run("other.ts");
      expect([code, stderr]).toEqual([3, expect.stringContaining("does not provide an export named 'h'")]);
    },
  );
});
