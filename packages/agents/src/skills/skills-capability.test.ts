// Skills in sessions: the list in the prompt, the text on demand, and the files in the workspace. A session
// keeps the content of its start.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import type { AgentPlaces } from "../places/agent-places.ts";
import type { AgentRecord } from "../record/agent-record.ts";
import { findSkills } from "./find-skills.ts";
import { ModelLoop } from "../model-loop/model-loop.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel, type Play } from "../testing/fake-model.ts";
import { skillsCapability, skillsLeftOut, skillsOf } from "./skills-capability.ts";

let folder: string;
let places: AgentPlaces;
let runtime: Runtime | undefined;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-skills-")));
  mkdirSync(join(folder, "home"));
  mkdirSync(join(folder, "work"));
  places = {
    project: join(folder, "work"),
    home: join(folder, "home"),
    env: {},
    trustFile: join(folder, "data/trusted-folders.json"),
  };
  write(
    "home/.agents/skills/pdf/SKILL.md",
    "---\nname: pdf\ndescription: Fills in\n  forms.\n---\nUse scripts/fill.sh.\n",
  );
  write("home/.agents/skills/pdf/scripts/fill.sh", "echo filled\n");
});

afterEach(async () => {
  await runtime?.close();
  runtime = undefined;
  rmSync(folder, { recursive: true, force: true });
});

function write(path: string, text: string | Buffer): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

const ALL: AgentRecord = { ...RECORD, skills: null };

async function run(play: Play, record: AgentRecord = ALL) {
  const model = fakeModel(play);
  const workspace = workspacesByRoot();
  const capabilities = [skillsCapability({ places, workspace })];
  const loop = new ModelLoop({ model, workspace, root: places.project, capabilities });
  runtime = createRuntime({ storage: new MemoryStorage() });
  const handle = await runtime.start(loop.agent(record), "hi");
  await handle.result();
  return model;
}

/** Calls `read_skill` once with each input, and returns the results. */
async function read(inputs: readonly object[], record = ALL): Promise<readonly string[]> {
  const { requests } = await run(
    (_request, number) =>
      number === 0 ? { calls: inputs.map((input) => ["read_skill", input] as const) } : { text: "Done." },
    record,
  );
  return (requests[1]?.messages ?? []).flatMap(({ role, content }) =>
    role === "tool" ? [(content as { text: string }).text] : [],
  );
}

const skillFolder = (): string => {
  const [found] = findSkills(places);
  return `.agent-orchestrator/skills/pdf-${found?.hash?.slice(0, 12)}`;
};

test("the prompt has name, description and path, and no text of the skill", async () => {
  const { requests } = await run(() => ({ text: "Done." }));
  expect(requests[0]?.system).toContain(`- pdf: Fills in forms. (${skillFolder()}/SKILL.md)`);
  expect(requests[0]?.system).not.toContain("Use scripts/fill.sh");
  expect(readdirSync(places.project)).toEqual([]);
});

test("read_skill gives the text and writes the files below a folder that git ignores", async () => {
  const [text] = await read([{ name: "pdf" }]);
  expect(text).toBe(`Use scripts/fill.sh.\n\nFiles of the skill, in ${skillFolder()}:\n- scripts/fill.sh`);
  expect(readFileSync(join(places.project, skillFolder(), "scripts/fill.sh"), "utf8")).toBe("echo filled\n");
  expect(readFileSync(join(places.project, ".agent-orchestrator/skills/.gitignore"), "utf8")).toBe("*\n");
  expect(existsSync(join(places.project, "skills"))).toBe(false);
});

test("X6: a skill is read into a folder with exactly its files, each with its content", async () => {
  write(`work/${skillFolder()}/scripts/fill.sh`, "echo changed\n");
  write(`work/${skillFolder()}/scripts/json.py`, "evil");
  write(`work/${skillFolder()}/node_modules/a/index.js`, "evil");
  await read([{ name: "pdf" }]);
  const found = readdirSync(join(places.project, skillFolder()), { recursive: true, encoding: "utf8" });
  expect(found.toSorted()).toEqual(["SKILL.md", "scripts", "scripts/fill.sh"]);
  expect(readFileSync(join(places.project, skillFolder(), "scripts/fill.sh"), "utf8")).toBe("echo filled\n");
});

test("a session reads the content of its start after the skill was changed and removed", async () => {
  const before = skillFolder();
  const model = await run((_request, number) => {
    if (number === 0) rmSync(join(folder, "home/.agents"), { recursive: true });
    return number === 0 ? { calls: [["read_skill", { name: "pdf" }]] } : { text: "Done." };
  });
  expect(model.requests[1]?.messages.at(-1)).toMatchObject({
    content: { text: expect.stringContaining("Use scripts/fill.sh.") },
  });
  expect(existsSync(join(places.project, before, "SKILL.md"))).toBe(true);
});

test("the optional folders of the specification are listed, read and written as any other", async () => {
  write("home/.agents/skills/pdf/references/FORMS.md", "All forms.");
  write("home/.agents/skills/pdf/assets/form.json", "{}");
  const files = ["references/FORMS.md", "assets/form.json"];
  const [text, ...contents] = await read([{ name: "pdf" }, ...files.map((file) => ({ name: "pdf", file }))]);
  expect(text).toMatch(/:\n- assets\/form.json\n- references\/FORMS.md\n- scripts\/fill.sh$/);
  expect(contents).toEqual(["All forms.", "{}"]);
  const written = readFileSync(join(places.project, skillFolder(), "references/FORMS.md"), "utf8");
  expect(written).toBe("All forms.");
});

test("a file of a skill is read by its path, and nothing else is", async () => {
  write("home/.agents/skills/pdf/logo.png", Buffer.from([0, 1, 2]));
  write("home/secret.txt", "canary-7731");
  const inputs = [
    { name: "pdf", file: "scripts/fill.sh" },
    { name: "pdf", file: "./scripts/fill.sh" },
    { name: "pdf", file: "logo.png" },
    { name: "pdf", file: "../../../secret.txt" },
    { name: "pdf", file: join(folder, "home/secret.txt") },
    { name: "pdf", file: "scripts/fil.sh" },
    { name: "../pdf" },
    { name: "pfd" },
  ];
  const said = await read(inputs);
  expect(said.slice(0, 3)).toEqual(["echo filled\n", "echo filled\n", "logo.png is no text; it has 3 bytes"]);
  expect(said[3]).toContain('the skill pdf has no file "../../../secret.txt"');
  expect(said[4]).toContain("the skill pdf has no file");
  expect(said[5]).toContain("did you mean scripts/fill.sh");
  expect(said[6]).toContain('There is no skill "../pdf"');
  expect(said[7]).toContain("The skills are: pdf.");
  expect(said.join("\n")).not.toContain("canary-7731");
});

test("a link in the place of the folder leads no file out of the workspace", async () => {
  mkdirSync(join(folder, "outside"));
  symlinkSync(join(folder, "outside"), join(places.project, ".agent-orchestrator"));
  const [text] = await read([{ name: "pdf" }]);
  expect(text).toMatch(/leads out of the workspace|leaves the workspace|outside/);
  expect(readdirSync(join(folder, "outside"))).toEqual([]);
});

test("a workspace that is the session's own also has skills/NAME.md", async () => {
  await run(() => ({ text: "Done." }), { ...ALL, workspace: "empty" });
  expect(readFileSync(join(places.project, "skills/pdf.md"), "utf8")).toContain("Use scripts/fill.sh.");
});

test("the folder of SANDBOX_ROOT_DIR also has skills/NAME.md, and a file of its user stays", async () => {
  places = { ...places, env: { SANDBOX_ROOT_DIR: places.project } };
  const file = join(places.project, "skills/pdf.md");
  await run(() => ({ text: "Done." }), ALL);
  expect(readFileSync(file, "utf8")).toContain("Use scripts/fill.sh.");
  writeFileSync(file, "Mine.");
  await runtime?.close();
  await run(() => ({ text: "Done." }), ALL);
  expect(readFileSync(file, "utf8")).toBe("Mine.");
});

test("an agent without skills has neither the list nor the tool", async () => {
  for (const record of [RECORD, { ...ALL, tools: ["read_file"] }, { ...ALL, deniedTools: ["read_skill"] }]) {
    const { requests } = await run(() => ({ text: "Done." }), record);
    expect(requests[0]?.system).not.toContain("Skills are");
    expect(requests[0]?.tools?.map(({ name }) => name)).not.toContain("read_skill");
    await runtime?.close();
  }
});

test.each<readonly [string, Partial<AgentRecord>, RegExp]>([
  [
    "that is not there",
    { skills: ["pfd"] },
    /asks for the skill "pfd", which is not there; did you mean pdf/,
  ],
  ["that is refused", { skills: ["pdf", "broken"] }, /asks for the skill "broken", which is refused/],
  [
    "while it denies the tool that reads it",
    { skills: ["pdf"], deniedTools: ["read_skill"] },
    /denies the tool that reads them/,
  ],
])("an agent that names a skill %s is refused", (_name, change, message) => {
  write("home/.agents/skills/broken/SKILL.md", "---\nname: broken\n---\n");
  expect(() => skillsOf({ ...RECORD, ...change }, findSkills(places), places)).toThrow(message);
});

test("an agent that names no skills gets the first hundred, and a text names the rest and says how to choose", () => {
  for (let at = 10; at <= 112; at++)
    write(`home/.agents/skills/s${at}/SKILL.md`, `---\nname: s${at}\ndescription: d\n---\n`);
  const found = findSkills(places);
  expect(skillsOf(ALL, found, places)).toEqual(found.slice(0, 100));
  const left = found.slice(100).map(({ name }) => name);
  expect(left).toHaveLength(4);
  expect(skillsLeftOut(found)).toEqual([
    expect.stringContaining(`is not offered ${left.join(", ")}; name those that it needs under \`skills\``),
  ]);
  expect(skillsLeftOut(found, 1)).toEqual([expect.stringContaining(`${left[0]} and 3 more`)]);
  expect(skillsLeftOut(found.slice(0, 100))).toEqual([]);
  const chosen = { ...ALL, skills: left };
  expect(skillsOf(chosen, found, places).map(({ name }) => name)).toEqual(left);
});

test("an agent that names more skills than the limit is refused", ofCampaign, () => {
  for (let at = 0; at <= 100; at++)
    write(`home/.agents/skills/s${at}/SKILL.md`, `---\nname: s${at}\ndescription: d\n---\n`);
  const found = findSkills(places);
  const all = { ...ALL, skills: found.map(({ name }) => name) };
  expect(() => skillsOf(all, found, places)).toThrow(/has 102 skills, and 100 is the limit/);
});

test("a skill that only a person may use is offered to no agent, and refuses one that names it", () => {
  write(
    "home/.agents/skills/deploy/SKILL.md",
    "---\nname: deploy\ndescription: d\ndisable-model-invocation: true\n---\nText.\n",
  );
  const found = findSkills(places);
  expect(found.map(({ name, status }) => `${name} ${status}`)).toEqual(["deploy loaded", "pdf loaded"]);
  expect(skillsOf(ALL, found, places).map(({ name }) => name)).toEqual(["pdf"]);
  expect(() => skillsOf({ ...ALL, skills: ["deploy"] }, found, places)).toThrow(/only a person may use/);
});
