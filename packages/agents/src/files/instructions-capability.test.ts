// The instructions of a project reach the model when the user trusts the project, and stay those of the
// session's start.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";

import type { AgentPlaces } from "../places/agent-places.ts";
import { ModelLoop } from "../model-loop/model-loop.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel } from "../testing/fake-model.ts";
import { instructionsCapability, readProjectInstructions } from "./instructions-capability.ts";

let folder: string;
let places: AgentPlaces;
let runtime: Runtime | undefined;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "instructions-")));
  places = {
    project: join(folder, "project"),
    home: undefined,
    env: {},
    trustFile: join(folder, "data/trusted-folders.json"),
    trustsProject: true,
  };
  mkdirSync(places.project);
});
afterEach(async () => {
  await runtime?.close();
  rmSync(folder, { recursive: true, force: true });
});

function write(path: string, text = "use tabs"): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

async function run(work = places.project) {
  const model = fakeModel((_request, number) => {
    write("project/AGENTS.md", `changed ${number}`);
    return number === 0 ? { calls: [["list_files", {}]] } : { text: "Done." };
  });
  const capabilities = [instructionsCapability(places)];
  const loop = new ModelLoop({ model, workspace: workspacesByRoot(), root: work, capabilities });
  runtime = createRuntime({ storage: new MemoryStorage() });
  const handle = await runtime.start(loop.agent(RECORD), "hi");
  expect(await handle.result()).toBe("Done.");
  return model.requests.map(({ system }) => system);
}

test("a session of a trusted project has the instructions of its start in every request, the nearest last", async () => {
  write("project/AGENTS.md");
  write("project/web/AGENTS.md", "use spaces");
  write("project/web/src/deep/AGENTS.md", "use nothing");
  const [first = "", second] = await run(join(places.project, "web"));
  expect(first).toMatch(
    /Instructions of AGENTS.md:\n\nuse tabs\n\nInstructions of web\/AGENTS.md:\n\nuse spaces\n/,
  );
  expect(first).toContain("- src/deep/AGENTS.md");
  expect(first).not.toContain("use nothing");
  expect(second).toBe(first);
});

test("a session of a project that is not trusted has none, and each file is reported", async () => {
  write("project/AGENTS.md");
  places = { ...places, trustsProject: false };
  expect((await run())[0]).not.toContain("use tabs");
  expect(readProjectInstructions(places, places.project)).toMatchObject({
    text: "",
    nested: [],
    leftOut: [{ path: join(places.project, "AGENTS.md"), reason: expect.stringContaining("agents trust") }],
  });
});

test.each([
  ["a workspace outside of the project", "other", "other/AGENTS.md", []],
  ["a hidden folder", "project", "project/.cache/AGENTS.md", []],
  ["a folder of other people's code", "project", "project/node_modules/x/AGENTS.md", []],
  ["a folder that is too deep", "project", "project/1/2/3/4/5/6/7/AGENTS.md", []],
  ["a folder below", "project", "project/1/2/3/4/5/6/AGENTS.md", ["1/2/3/4/5/6/AGENTS.md"]],
])("instructions of %s are read only if they hold", (_what, work, path, nested) => {
  mkdirSync(join(folder, work), { recursive: true });
  write(path);
  expect(readProjectInstructions(places, join(folder, work))).toEqual({
    text: "",
    files: [],
    leftOut: [],
    nested,
  });
});

test("a link to a folder is not followed, and a file that cannot be read is reported", () => {
  mkdirSync(join(folder, "elsewhere"));
  write("elsewhere/AGENTS.md");
  symlinkSync(join(folder, "elsewhere"), join(places.project, "linked"));
  mkdirSync(join(places.project, "web/AGENTS.md"), { recursive: true });
  writeFileSync(join(places.project, "AGENTS.md"), Buffer.from([0xff, 0xfe, 0x00]));
  const read = readProjectInstructions(places, join(places.project, "web"));
  expect(read).toMatchObject({ text: "", files: [], nested: [] });
  expect(read.leftOut.map(({ reason }) => reason)).toEqual(["it is a folder", "the file is not UTF-8"]);
});
