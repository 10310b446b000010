// A file of another version is refused by its number, and stays as it is. It never counts as no file, and no
// field of it is blamed instead.

import { chmodSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Project } from "../testing/holdfast-process.ts";

const DATA = "data/holdfast";

let project: Project;
beforeEach(() => void (project = new Project()));
afterEach(() => project.dispose());

test.each([
  [`${DATA}/local/stack.json`, ["local", "status"]],
  [`${DATA}/trusted-folders.json`, ["agents", "list"]],
  [`${DATA}/secrets.json`, ["secret", "list"]],
  ["config/holdfast/config.json", ["list"]],
  ["work/.holdfast/config.json", ["list"]],
  ["work/coordinator.json", ["coordinator", "--config", "coordinator.json"]],
  ["config/holdfast/runner-policy.json", ["config", "export"]],
  ["work/moved.json", ["config", "import", "moved.json"]],
])("%s of version 2", async (name, args) => {
  const text = '{"format": "holdfast-config", "version": 2}\n';
  project.write("work/.holdfast/.gitignore", "*\n");
  project.write(name, text);
  chmodSync(project.path(name), 0o600);
  const env = { XDG_DATA_HOME: project.path("data"), XDG_CONFIG_HOME: project.path("config") };

  const { code, stdout, stderr } = await project.finish(args, { env, folder: "work" });

  expect(`${stdout}${stderr}`).toContain("has version 2");
  expect(stderr).toContain("expected: version 1");
  expect(code).toBe(11);
  expect(readFileSync(project.path(name), "utf8")).toBe(text);
});
