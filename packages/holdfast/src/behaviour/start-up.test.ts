// The packages that the start of a command loads. Each of them costs time in every run, so a new one is
// either listed here on purpose or loaded later.

import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ModelProject } from "../testing/model-project.ts";

/** Appends the name of each package of which a module is loaded to a file. */
const RECORDER = `
import { appendFileSync } from "node:fs";
import { registerHooks } from "node:module";
registerHooks({
  load(url, context, next) {
    const name = /.*node_modules\\/((?:@[^/]+\\/)?[^/]+)\\//.exec(url)?.[1];
    if (name !== undefined) appendFileSync(process.env.LOADED_PACKAGES, name + "\\n");
    return next(url, context);
  },
});
`;

let project: ModelProject;

beforeEach(async () => {
  project = await ModelProject.open();
  writeFileSync(project.path("recorder.mjs"), RECORDER);
});

afterEach(() => project.dispose());

/** The packages of others that a command loads. */
async function loadedBy(...args: string[]): Promise<readonly string[]> {
  const file = project.path("loaded");
  writeFileSync(file, "");
  const env = { NODE_OPTIONS: `--import=${project.path("recorder.mjs")}`, LOADED_PACKAGES: file };
  const { code, stderr } = await project.start(args, { stdin: "", env }).finished;
  expect(code, stderr).toBe(0);
  const names = new Set(readFileSync(file, "utf8").trim().split("\n"));
  return [...names].filter((name) => !/^(@holdfast\/|holdfast$)/.test(name)).toSorted();
}

test("an agent file that uses no server loads neither the SDKs of servers nor a validator of schemas", async () => {
  writeFileSync(project.path("helper.md"), "---\nname: helper\ndescription: Helps.\n---\nYou help.\n");
  project.script = () => ({ text: "Done." });
  // The bundle of @holdfast/agents contains zod, yaml and the provider.
  expect(await loadedBy("run", "helper.md", "Help me.")).toEqual(["croner", "picocolors"]);
});

test("an agent in JavaScript loads no package of the model loop", ofCampaign, async () => {
  writeFileSync(project.path("greet.mjs"), "export default async function greet() { return 'hi'; }\n");
  expect(await loadedBy("run", "greet.mjs")).toEqual(["croner", "picocolors"]);
});
