import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { trustContent } from "@holdfast/agents";
import { parseArguments } from "@holdfast/terminal/frame/arguments";
import { MODE_OPTION } from "@holdfast/terminal/frame/command";
import { findMode, findStage, unusedMode } from "./mode.ts";

let cwd: string;
beforeEach(() => {
  cwd = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-mode-")));
  mkdirSync(join(cwd, ".holdfast"));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const find = (words: string[], env: Record<string, string> = {}, isOfFleet = true) =>
  findMode(
    parseArguments(words, { name: "runner", options: { mode: MODE_OPTION } }),
    { cwd, env: { XDG_DATA_HOME: join(cwd, "data"), ...env } },
    isOfFleet,
  );
/** A configuration that the user has trusted. */
const configure = (mode: string): string => {
  const file = join(cwd, ".holdfast/config.json");
  writeFileSync(file, JSON.stringify({ mode }));
  trustContent(join(cwd, "data/holdfast/trusted-folders.json"), cwd, ".holdfast/config.json");
  return file;
};

test("the mode comes from the flag, HOLDFAST_MODE, MODE, the file or the default, in this order", () => {
  expect(find([])).toEqual({ value: "local", origin: "default" });
  const from = configure("cloud");
  expect(find([])).toEqual({ value: "cloud", origin: "project_file", from });
  expect(find([], { MODE: "local" })).toEqual({ value: "local", origin: "environment", from: "MODE" });
  const both = { MODE: "local", HOLDFAST_MODE: "cloud" };
  expect(find([], both)).toEqual({ value: "cloud", origin: "environment", from: "HOLDFAST_MODE" });
  expect(find(["--mode", "local"], both)).toEqual({ value: "local", origin: "flag", from: "--mode" });
});

test("ENV=local says the mode of a fleet's command while nothing else does", () => {
  expect(find([], { ENV: "local" })).toEqual({ value: "local", origin: "environment", from: "ENV" });
  expect(find([], { ENV: "local" }, false)).toEqual({ value: "local", origin: "default" });
  expect(find([], { ENV: "cloud" })).toEqual({ value: "local", origin: "default" });
  expect(find([], { ENV: "local", MODE: "cloud" })).toMatchObject({ value: "cloud", from: "MODE" });
  configure("cloud");
  expect(find([], { ENV: "local" })).toMatchObject({ value: "cloud", origin: "project_file" });
});

test("a bare MODE of local or cloud counts for every command", () => {
  for (const isOfFleet of [true, false])
    expect(find([], { MODE: "cloud" }, isOfFleet)).toEqual({
      value: "cloud",
      origin: "environment",
      from: "MODE",
    });
});

test("another MODE of a build machine is an error that helps for a fleet, and a note for other commands", () => {
  expect(find([], { MODE: "production" }, false)).toMatchObject({ value: "local" });
  expect(unusedMode({ env: { MODE: "production" } })).toContain("HOLDFAST_MODE");
  expect([unusedMode({ env: { MODE: "cloud" } }), unusedMode({ env: {} })]).toEqual([undefined, undefined]);
  expect(() => find([], { MODE: "production" })).toThrow(
    expect.objectContaining({ code: "usage", at: "MODE", fix: expect.stringContaining("HOLDFAST_MODE") }),
  );
});

test.each([
  [["--mode", "lokal"], {}, "usage", "--mode"],
  [[], { HOLDFAST_MODE: "Local" }, "usage", "HOLDFAST_MODE"],
])("a mode that is neither local nor cloud is refused with its place", (words, env, code, at) => {
  expect(() => find(words, env as Record<string, string>)).toThrow(expect.objectContaining({ code, at }));
});

test("a mode of a file that is unknown is refused with the file and the pointer", () => {
  const file = configure("remote");
  expect(() => find([])).toThrow(expect.objectContaining({ code: "config_invalid", at: `${file}#/mode` }));
});

test("a stage is the text of ENV, unless it is the file that a shell reads", () => {
  expect(findStage({ env: { ENV: "production" } })).toBe("production");
  expect(findStage({ env: { ENV: "/etc/shrc" } })).toBeUndefined();
  expect(findStage({ env: { ENV: "a", HOLDFAST_ENV: "b" } })).toBe("b");
});
