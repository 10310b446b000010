// Files that hold secrets are never written to a file or link that somebody else has put at their path
// (private-file-1).

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { beforeEach, afterEach, describe, expect, test } from "vitest";
import { createPrivate, isWritableByOthers, makePrivateFolder, replacePrivate } from "./private-file.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "holdfast-private-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;
const OTHER_ID = 12_345;

/** The existing files at the path, each beside a file `other` that must not be touched. */
const PLANTED: { readonly [what: string]: (path: string, other: string) => void } = {
  "a file": (path) => writeFileSync(path, "planted", { mode: 0o666 }),
  "a link to a file": (path, other) => symlinkSync(other, path),
  "a link to nothing": (path, other) => symlinkSync(`${other}-missing`, path),
  "a hard link": (path, other) => linkSync(other, path),
  "a pipe": (path) => void spawnSync("mkfifo", [path]),
  "a folder": (path) => mkdirSync(path),
};

function expectUntouched(other: string): void {
  expect(readFileSync(other, "utf8")).toBe("of somebody");
  expect(readdirSync(folder).filter((name) => name.includes("missing") || name.endsWith(".part"))).toEqual(
    [],
  );
}

describe("an existing path", () => {
  for (const [what, plant] of Object.entries(PLANTED)) {
    test(`${what} at the path of a new file is refused, and not written to`, () => {
      const [path, other] = [join(folder, "token"), join(folder, "other")];
      writeFileSync(other, "of somebody");
      plant(path, other);
      expect(() => createPrivate(path, "secret")).toThrow("EEXIST");
      expectUntouched(other);
    });

    test(`${what} at the path of a file that is replaced is not written to`, () => {
      const [path, other] = [join(folder, "token"), join(folder, "other")];
      writeFileSync(other, "of somebody");
      plant(path, other);
      if (what === "a folder") expect(() => replacePrivate(path, "secret")).toThrow();
      else {
        replacePrivate(path, "secret");
        const { mode, nlink } = lstatSync(path);
        expect([mode & 0o177777, nlink]).toEqual([0o100600, 1]);
        expect(readFileSync(path, "utf8")).toBe("secret");
      }
      expectUntouched(other);
    });
  }
});

test("a new file is for its user only, whatever the umask", () => {
  for (const umask of [0, 0o777]) {
    const before = process.umask(umask);
    try {
      createPrivate(join(folder, `token-${umask}`), "secret");
    } finally {
      process.umask(before);
    }
    expect(lstatSync(join(folder, `token-${umask}`)).mode & 0o777).toBe(0o600);
  }
});

test("a new file is never seen with a part of its content", async () => {
  const path = join(folder, "record");
  const source = new URL("./private-file.ts", import.meta.url).href;
  const program = `import { createPrivate } from ${JSON.stringify(source)};
createPrivate(${JSON.stringify(path)}, Buffer.alloc(64 * 1024 ** 2));`;
  const writer = spawn(process.execPath, ["--conditions=development", "--input-type=module", "-e", program]);
  const ended = once(writer, "exit");
  while (!existsSync(path) && writer.exitCode === null) await setImmediate();
  expect(lstatSync(path).size).toBe(64 * 1024 ** 2);
  expect(await ended).toEqual([0, null]);
});

describe("a folder", () => {
  const refused = { code: "config_invalid", at: expect.any(String), fix: expect.any(String) };

  test("a folder that everybody may write to is refused unless it is sticky", () => {
    chmodSync(folder, 0o777);
    expect(() => createPrivate(join(folder, "token"), "secret")).toThrow(expect.objectContaining(refused));
    expect(() => replacePrivate(join(folder, "token"), "secret")).toThrow(expect.objectContaining(refused));
    expect(readdirSync(folder)).toEqual([]);
    chmodSync(folder, 0o1777);
    createPrivate(join(folder, "token"), "secret");
  });

  test("a folder of another user is refused", (t) => {
    if (!isRoot) return t.skip("only root may give a folder away");
    chownSync(folder, OTHER_ID, OTHER_ID);
    expect(() => createPrivate(join(folder, "token"), "secret")).toThrow(expect.objectContaining(refused));
  });
});

test("a file may be written by others for its owner, its mode and a group that is not ours", () => {
  const [uid, gid] = [process.getuid!(), process.getgid!()];
  const judged = (...[owner, group, mode]: [number, number, number]) =>
    isWritableByOthers({ uid: owner, gid: group, mode });
  expect(judged(uid, gid, 0o600)).toBe(false);
  expect(judged(0, OTHER_ID, 0o644)).toBe(false);
  expect(judged(uid, gid, 0o660)).toBe(false);
  expect(judged(uid, OTHER_ID, 0o660)).toBe(true);
  expect(judged(uid, gid, 0o602)).toBe(true);
  expect(judged(OTHER_ID, gid, 0o400)).toBe(true);
});

describe("makePrivateFolder", () => {
  test("the folders that are missing are made for this user alone, and the others stay as they are", () => {
    const path = join(folder, "a", "b");
    makePrivateFolder(path);
    makePrivateFolder(path);
    expect(statSync(join(folder, "a")).mode & 0o777).toBe(0o700);
    expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  test("a place where nothing can be made is an error", () => {
    expect(() => makePrivateFolder("/proc/a/b")).toThrow(
      expect.objectContaining({ code: "storage_unavailable" }),
    );
  });
});
