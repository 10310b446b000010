// Each way to ask for help is tried with a few commands, and with all of them in the command-lines campaign
// (`HOLDFAST_CAMPAIGN`).

import { readdirSync, readFileSync } from "node:fs";
import { VERSION } from "@holdfast/core";
import { afterAll, expect, test } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";
import { COMMANDS } from "../commands/index.ts";
import { COMMON_OPTIONS } from "@holdfast/terminal/frame/command";
import { Project } from "../testing/holdfast-process.ts";

const IN_EVERY_WAY = new Set(["run", "list", "coordinator"]);

const project = new Project();
afterAll(() => project.dispose());

test.each(Object.keys(COMMANDS))("%s has help with an example, on standard output", async (name) => {
  const others = [
    ["help", name],
    [name, "--nonsense", "-h"],
  ];
  for (const args of [[name, "--help"], ...(isCampaign || IN_EVERY_WAY.has(name) ? others : [])]) {
    const { code, stdout, stderr } = await project.run(...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(`usage: holdfast ${name}`);
    expect(stdout).toMatch(new RegExp(`Examples\\n  holdfast ${name}`));
  }
});

test.each(Object.entries(COMMANDS))("the tables of %s fit each other", async (name, { load }) => {
  const { name: own, actions, options, defaultAction, lacks = {} } = await load();
  expect(own).toBe(name);
  const names = Object.keys(options);
  for (const { excludes = [] } of Object.values(options))
    for (const other of excludes) expect([...names, ...Object.keys(COMMON_OPTIONS)]).toContain(other);
  for (const common of Object.keys(lacks)) expect(Object.keys(COMMON_OPTIONS)).toContain(common);
  if (actions === undefined) return;
  expect([undefined, ...Object.keys(actions)]).toContain(defaultAction);
  const ofDefault = actions[defaultAction ?? ""]?.takes ?? [];
  expect(ofDefault, "a default action takes no arguments: its first word would be read as an action").toEqual(
    [],
  );
  const used = Object.values(actions).flatMap((action) => action.options ?? []);
  expect([...new Set(used)].toSorted()).toEqual(names.toSorted());
});

test("the overview names every command", async () => {
  const { code, stdout } = await project.run("--help");
  expect(code).toBe(0);
  for (const name of Object.keys(COMMANDS)) expect(stdout).toContain(`\n  ${name} `);
  expect(await project.run("--version")).toMatchObject({
    code: 0,
    stdout: `${VERSION}\n`,
  });
});

test("the manifest of every package has the version that the command shows", () => {
  const packages = new URL("../../../", import.meta.url);
  for (const name of readdirSync(packages)) {
    const manifest = JSON.parse(readFileSync(new URL(`${name}/package.json`, packages), "utf8"));
    expect([name, manifest.version]).toEqual([name, VERSION]);
  }
});

test("help of a command is shown wherever the word for help stands", async () => {
  const { stdout } = await project.run("merge", "--help");
  for (const word of ["--help", "-h", "help"]) expect((await project.run(word, "merge")).stdout).toBe(stdout);
  expect((await project.run("--help", "nosuch")).code).toBe(2);
});
