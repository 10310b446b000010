// The time that a command takes to start is mostly the time to load modules, and the protocol of a fleet has 160 of them.

import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Project } from "../testing/holdfast-process.ts";

const AGENT = `import { defineAgent } from "holdfast";
export default defineAgent({ name: "wait", run: (ctx) => ctx.waitForSignal("go") });
`;
/** A process fails as soon as it loads a module of the protocol. */
const REFUSING = `import { registerHooks } from "node:module";
registerHooks({ resolve(name, context, next) {
  if (/^@(bufbuild|connectrpc)\\//.test(name)) throw new Error("loads " + name);
  return next(name, context);
} });
`;

const project = new Project();
beforeAll(() => {
  writeFileSync(project.path("wait.ts"), AGENT);
  writeFileSync(project.path("refusing.mjs"), REFUSING);
});
afterAll(() => project.dispose());

test("a command on a database of this machine loads no code of the protocol of a fleet", async () => {
  const env = { NODE_OPTIONS: `--import=${project.path("refusing.mjs")}` };
  const start = (line: string) => project.start(line.split(" "), { env, stdin: "" }).finished;
  for (const line of ["run wait.ts --session w --park", "show w", "pause w", "unpause w", "list", "logs w"])
    expect(await start(line)).toMatchObject({ code: 0 });
  const { code, stderr } = await start("runs --url http://127.0.0.1:1");
  expect(code).not.toBe(0);
  expect(stderr).toContain("loads @");
});
