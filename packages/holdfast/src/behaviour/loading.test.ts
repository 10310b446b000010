// The time that a command takes to start is mostly the time to load modules, and the protocol of a fleet has
// 160 of them.

import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
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

test(
  "a command on a database of this machine loads no code of the protocol of a fleet",
  ofCampaign,
  async () => {
    const env = { NODE_OPTIONS: `--import=${project.path("refusing.mjs")}` };
    const start = (line: string) => project.start(line.split(" "), { env, stdin: "" }).finished;
    for (const line of ["run wait.ts --session w --park", "show w", "pause w", "unpause w", "list", "logs w"])
      expect(await start(line)).toMatchObject({ code: 0 });
    const { code, stderr } = await start("runs --url http://127.0.0.1:1");
    expect(code).not.toBe(0);
    expect(stderr).toContain("loads @");
  },
);

describe("compiled code is kept for the next start", () => {
  const start = async (cache: string) => {
    const temporary = project.path(`${cache}-temporary`);
    mkdirSync(temporary, { recursive: true });
    const env = { XDG_CACHE_HOME: project.path(cache), TMPDIR: temporary, NODE_COMPILE_CACHE: undefined };
    expect(await project.start(["--version"], { env, stdin: "" }).finished).toMatchObject({ code: 0 });
    expect(readdirSync(temporary)).toEqual([]);
    return project.path(`${cache}/holdfast/compiled`);
  };

  test("in a folder of the user, which no other user may read or write", async () => {
    const folder = await start("cache");
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(readdirSync(folder)).not.toEqual([]);
  });

  test("but not in a folder that others may write", async () => {
    const folder = project.path("open/holdfast/compiled");
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o777);
    expect(readdirSync(await start("open"))).toEqual([]);
  });
});
