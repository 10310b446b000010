// The arguments that make containers and run commands in them. The suite of all sandboxes runs them by a real
// engine.

import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createArguments, executeArguments, placeHash } from "./container-commands.ts";
import { guardPlaces, type GuardedPlaces } from "../workspace/guarded-places.ts";
import { NO_MASK } from "./mounts/masked-places.ts";
import { mountsOf } from "./mounts/mount-list.ts";
import { findNested } from "./mounts/nested-places.ts";

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-container-")));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const engineEnvironment = { PATH: "/usr/bin", HOME: "/home/me" };

test("values of variables are in no argument, apart from those of variables that the engine itself reads", () => {
  const env = { API_KEY: "s3cret", HOME: "/inside", PATH: "/bin" };
  const { args, env: given } = executeArguments(
    "c1",
    { argv: ["printenv", "API_KEY"], cwd: "/work", env },
    { engineEnvironment, fileBytes: 1_024 },
  );
  expect(args.join(" ")).not.toContain("s3cret");
  expect(args).toEqual(expect.arrayContaining(["API_KEY", "HOME=/inside", "PATH=/bin"]));
  expect(given).toMatchObject({ API_KEY: "s3cret", ...engineEnvironment });
});

test("a container has no network, no capability and limits, and its .git is read-only", () => {
  const place = { session: "ses_1", root };
  const options = { engine: "docker", engineEnvironment, image: "i", place, root, fileBytes: 1 };
  const places = guardPlaces(root) as GuardedPlaces;
  const mounts = mountsOf(root, places, findNested(root), NO_MASK);
  const before = createArguments("c1", mounts, options).join(" ");
  expect(before).toContain("--network none --cap-drop ALL --security-opt no-new-privileges");
  expect(before).toContain("--pull never");
  expect(before).toMatch(/--memory \d+m --pids-limit \d+ --read-only/);
  expect(before).toContain(`--tmpfs ${root}/.holdfast:ro`);
  expect(before).toContain(`${root}/.git:${root}/.git:ro`);
});

test("the name of a place is the same in every process, and another one for another session or folder", () => {
  const names = [
    { session: "ses_1", root: "/a" },
    { session: "ses_2", root: "/a" },
    { session: "ses_1", root: "/b" },
    { session: "ses_1", root: "/a" },
  ].map(placeHash);
  expect(new Set(names).size).toBe(3);
  expect(names[0]).toBe(names[3]);
});
