// The documents of an installation, as `holdfast docs` shows them.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectError } from "../testing/expect-error.ts";
import { PACKAGES, Project } from "../testing/holdfast-process.ts";

const DOCS = fileURLToPath(new URL("../../../../docs", import.meta.url));

let project: Project;
beforeAll(() => void (project = new Project()));
afterAll(() => project.dispose());

test("each document of the repository is a topic with a sentence, and is shown as it is", async () => {
  const topics = await project.json<{ topic: string; title: string; about: string }[]>("docs");
  const names = readdirSync(DOCS).filter((name) => name.endsWith(".md"));
  expect(topics.map(({ topic }) => `${topic}.md`).toSorted()).toEqual([...names, "skill.md"].toSorted());
  for (const { topic, title, about } of topics)
    expect([topic, title !== topic, about.length > 10]).toEqual([topic, true, true]);
  const shown = await project.run("docs", "guide");
  expect(shown).toMatchObject({ code: 0, stdout: readFileSync(join(DOCS, "guide.md"), "utf8") });
  expect((await project.run("docs", "docs/guide.md")).stdout).toBe(shown.stdout);
  expect((await project.run("docs")).stdout).toMatch(/^skill +Holdfast runs agents that survive/m);
});

test("an unknown topic is refused by the nearest one", async () => {
  expectError(await project.run("docs", "guid"), 4, "E_NOT_FOUND", [
    "there is no topic guid; did you mean guide?",
  ]);
});

test("each topic that the skill names is there, and so is each file of llms.txt", async () => {
  const { stdout } = await project.run("docs", "skill");
  const topics = [...stdout.matchAll(/holdfast docs ([a-z-]+)`/g)].map(([, topic = ""]) => topic);
  expect(topics.length).toBeGreaterThan(4);
  for (const topic of topics) expect((await project.run("docs", topic)).code).toBe(0);
  const installed = join(PACKAGES, "holdfast");
  if (!existsSync(join(installed, "llms.txt"))) return; // The command runs from its sources.
  const files = [...readFileSync(join(installed, "llms.txt"), "utf8").matchAll(/\]\((.+)\)/g)];
  expect(files.length).toBeGreaterThan(30);
  for (const [, file = ""] of files) expect(existsSync(join(installed, file))).toBe(true);
});
