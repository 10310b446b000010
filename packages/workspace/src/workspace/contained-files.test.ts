import { execFileSync } from "node:child_process";
import {
  mkdtemp,
  mkdir,
  open,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  unlink,
  writeFile,
  chmod,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";

import { containedRoot, locate, type ContainedRoot } from "./contained-directory.ts";
import { listContained, readContained, writeContained } from "./contained-files.ts";

const LIMIT = 1024;
const OPTIONS = { bytesMax: LIMIT, protectedPlaces: [".git"] };

let base: string;
let inside: string;
let outside: string;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "contained-"));
  inside = join(base, "ws");
  outside = join(base, "ws2"); // Begins like the root: a comparison of prefixes would let it pass.
  await mkdir(join(inside, "src"), { recursive: true });
  await mkdir(outside);
  await writeFile(join(inside, "src", "a.txt"), "inside");
  await writeFile(join(outside, "a.txt"), "outside");
});

afterEach(() => rm(base, { recursive: true, force: true }));

const strategies = process.platform === "linux" ? (["descriptors", "paths"] as const) : (["paths"] as const);

describe.each(strategies)("contained files by %s", (strategy) => {
  let root: ContainedRoot;
  beforeEach(async () => void (root = await containedRoot(inside, strategy)));

  const read = async (path: string): Promise<string> => (await readContained(root, path, LIMIT)).text;

  test("relative paths and absolute paths inside the root are read", async () => {
    expect(await read("src/a.txt")).toBe("inside");
    expect(await read("./src//a.txt")).toBe("inside");
    expect(await read("src/../src/a.txt")).toBe("inside");
    expect(await read(join(inside, "src/a.txt"))).toBe("inside");
  });

  test.each([
    ["a parent", "../ws2/a.txt"],
    ["a parent further on", "src/../../ws2/a.txt"],
    ["an absolute path elsewhere", "/etc/hostname"],
    ["a sibling that begins like the root", "ABSOLUTE_SIBLING"],
    ["an absolute path that climbs out again", "ABSOLUTE_CLIMB"],
    ["a NUL character", "src/a.txt\0.png"],
    ["an empty path", ""],
    ["a path without end", "a/".repeat(3_000)],
  ])("%s is refused for reading and for writing", async (_what, given) => {
    const path = given
      .replace("ABSOLUTE_SIBLING", join(outside, "a.txt"))
      .replace("ABSOLUTE_CLIMB", `${inside}/../ws2/a.txt`);
    await expect(read(path)).rejects.toMatchObject({ code: "policy_denied" });
    await expect(writeContained(root, path, "x", OPTIONS)).rejects.toMatchObject({ code: "policy_denied" });
    expect(await readFile(join(outside, "a.txt"), "utf8")).toBe("outside");
  });

  // Opening and closing a database that this process owns drops its locks: another owner could come, and its
  // log be deleted.
  test.each([
    [".holdfast", ".holdfast/holdfast.db"],
    [".holdfast", ".Holdfast/holdfast.db-lock"],
    [".holdfast", "src/../.holdfast/new/file"],
    [".holdfast", "link/holdfast.db"],
    [".", "holdfast.db"],
    [".", "holdfast.db-lock"],
    [".", "src/../holdfast.db-wal"],
  ])("contained-directory-4: the database in %s is out of reach as %s", async (folder, path) => {
    await mkdir(join(inside, folder), { recursive: true });
    for (const suffix of ["", "-lock", "-owner", "-wal"]) {
      await writeFile(join(inside, folder, `holdfast.db${suffix}`), "theirs");
    }
    await symlink(".holdfast", join(inside, "link"));
    await expect(read(path)).rejects.toMatchObject({ code: "policy_denied" });
    await expect(writeContained(root, path, "x", OPTIONS)).rejects.toMatchObject({ code: "policy_denied" });
    if (folder === ".holdfast") {
      await expect(listContained(root, dirname(path))).rejects.toMatchObject({ code: "policy_denied" });
    }
    expect(await readFile(join(inside, folder, "holdfast.db"), "utf8")).toBe("theirs");
  });

  test("contained-directory-4: a file that only looks like a lock is a file like any other", async () => {
    await writeFile(join(inside, "yarn-lock"), "text");
    expect(await read("yarn-lock")).toBe("text");
    await writeContained(root, "yarn", "new", OPTIONS);
    expect(await read("yarn")).toBe("new");
  });

  test.each([
    ["a protected name", "new/deep/.git/config", "policy_denied"],
    ["Holdfast's folder", "new/deep/.holdfast/file", "policy_denied"],
    ["a name that is too long", `new/deep/${"x".repeat(300)}`, "policy_denied"],
    ["a step back out of what is not there", "new/deep/../../../ws2/a.txt", "file_not_found"],
  ])("a refused write leaves no directories behind: %s", async (_what, path, code) => {
    await expect(writeContained(root, path, "x", OPTIONS)).rejects.toMatchObject({ code });
    expect(await readdir(inside)).toEqual(["src"]);
  });

  test("a link out of the root is refused, as a file, as a directory and through another link", async () => {
    await symlink(join(outside, "a.txt"), join(inside, "file-link"));
    await symlink("../ws2", join(inside, "directory-link"));
    await symlink("directory-link", join(inside, "link-to-link"));
    for (const path of [
      "file-link",
      "directory-link/a.txt",
      "link-to-link/a.txt",
      "src/../directory-link/a.txt",
    ]) {
      await expect(read(path)).rejects.toMatchObject({ code: "policy_denied" });
      await expect(writeContained(root, path, "x", OPTIONS)).rejects.toMatchObject({ code: "policy_denied" });
    }
    await expect(listContained(root, "directory-link")).rejects.toMatchObject({ code: "policy_denied" });
    expect(await readFile(join(outside, "a.txt"), "utf8")).toBe("outside");
  });

  test("X5: a link that dangles outside cannot be written through", async () => {
    await symlink(join(outside, "new.txt"), join(inside, "dangling"));
    await expect(writeContained(root, "dangling", "x", OPTIONS)).rejects.toMatchObject({
      code: "policy_denied",
    });
    expect(await readdir(outside)).toEqual(["a.txt"]);
  });

  test("links that stay inside work, also absolute ones, and writing keeps them", async () => {
    await symlink("a.txt", join(inside, "src", "relative"));
    await symlink(join(inside, "src"), join(inside, "absolute"));
    await symlink("../absolute", join(inside, "src", "around"));
    expect(await read("src/relative")).toBe("inside");
    expect(await read("absolute/a.txt")).toBe("inside");
    expect(await read("src/around/relative")).toBe("inside");
    const written = await writeContained(root, "absolute/relative", "changed", OPTIONS);
    expect(written).toEqual({ path: "src/a.txt", bytes: 7, isNew: false });
    expect(await readFile(join(inside, "src", "a.txt"), "utf8")).toBe("changed");
    expect((await stat(join(inside, "absolute"))).isDirectory()).toBe(true);
  });

  test("a circle of links is refused", async () => {
    await symlink("two", join(inside, "one"));
    await symlink("one", join(inside, "two"));
    await expect(read("one")).rejects.toMatchObject({ code: "policy_denied" });
  });

  // The place was right when it was looked at; what counts is where the file is opened.
  test("a directory swapped for a link after it was walked leads nowhere else", async () => {
    const location = await locate(root, "src/a.txt");
    try {
      await rename(join(inside, "src"), join(inside, "src-before"));
      await symlink(outside, join(inside, "src"));
      if (strategy === "paths") {
        await expect(location.directory.verify()).rejects.toMatchObject({ code: "policy_denied" });
      } else {
        expect(await readFile(join(location.directory.path, "a.txt"), "utf8")).toBe("inside");
      }
    } finally {
      await location.close();
    }
    await expect(read("src/a.txt")).rejects.toMatchObject({ code: "policy_denied" });
  });

  test("a directory swapped for a link while a file in it was opened, and back again, leads nowhere else", async () => {
    const location = await locate(root, "src/a.txt");
    await rename(join(inside, "src"), join(inside, "src-before"));
    await symlink(outside, join(inside, "src"));
    const handle = await open(join(location.directory.path, "a.txt"));
    try {
      await unlink(join(inside, "src"));
      await rename(join(inside, "src-before"), join(inside, "src"));
      const verifying = location.directory.verify({ name: "a.txt", handle });
      if (strategy === "paths") await expect(verifying).rejects.toMatchObject({ code: "policy_denied" });
      else expect(await verifying.then(() => handle.readFile("utf8"))).toBe("inside");
    } finally {
      await handle.close();
      await location.close();
    }
  });

  test.each(
    sampled([
      ["the directory", "src", "."],
      ["the file", "src/a.txt", "a.txt"],
    ]),
  )("reading while somebody swaps %s for a link never shows what is outside", async (_what, path, target) => {
    await whileSwapping(join(inside, path), join(outside, target), async () => {
      for (let i = 0; i < 400; i++)
        expect(await read("src/a.txt").catch(() => "refused")).not.toBe("outside");
    });
  });

  test("a pipe, a directory and a missing file are errors that say so, and do not block", async () => {
    execFileSync("mkfifo", [join(inside, "pipe")]);
    await expect(read("pipe")).rejects.toThrow("not a regular file");
    await expect(read("src")).rejects.toThrow('"src" is a directory');
    await expect(read(".")).rejects.toThrow("is a directory");
    await expect(read("src/none.txt")).rejects.toMatchObject({ code: "file_not_found" });
    await expect(read("src/a.txt/b")).rejects.toMatchObject({ code: "file_not_found" });
    await expect(writeContained(root, "pipe", "x", OPTIONS)).rejects.toThrow("not a regular file");
  });

  test("no error shows how the file was reached", async () => {
    const error: Error = await read("src/none.txt").then(
      () => new Error("read"),
      (thrown: Error) => thrown,
    );
    expect(error.message).not.toContain("/proc/");
  });

  test("a file over the limit is neither read nor written", async () => {
    await writeFile(join(inside, "large"), "x".repeat(LIMIT + 1));
    await expect(read("large")).rejects.toMatchObject({ code: "limit_exceeded" });
    await expect(writeContained(root, "b", "x".repeat(LIMIT + 1), OPTIONS)).rejects.toMatchObject({
      code: "limit_exceeded",
    });
    expect(await readdir(inside)).not.toContain("b");
  });

  test("binary files are known as such, and text with a byte order mark comes back as it was", async () => {
    await writeFile(join(inside, "nul"), Buffer.from([65, 0, 66]));
    await writeFile(join(inside, "latin1"), Buffer.from([0xe4, 0x20]));
    await writeFile(join(inside, "marked"), "\uFEFFtext");
    expect(await readContained(root, "nul", LIMIT)).toMatchObject({ isBinary: true, text: "" });
    expect(await readContained(root, "latin1", LIMIT)).toMatchObject({ isBinary: true });
    expect(await read("marked")).toBe("\uFEFFtext");
  });

  test("writing makes directories, keeps the mode and leaves nothing else behind", async () => {
    expect(await writeContained(root, "deep/er/new.sh", "one", OPTIONS)).toEqual({
      path: "deep/er/new.sh",
      bytes: 3,
      isNew: true,
    });
    await chmod(join(inside, "deep/er/new.sh"), 0o755);
    await writeContained(root, "deep/er/new.sh", "two", OPTIONS);
    expect((await stat(join(inside, "deep/er/new.sh"))).mode & 0o777).toBe(0o755);
    expect(await readdir(join(inside, "deep/er"))).toEqual(["new.sh"]);
  });

  test("the next attempt removes leftovers of an earlier one, and no listing shows them", async () => {
    await writeFile(join(inside, "src", ".holdfast-a.txt-0123.tmp"), "half");
    await writeFile(join(inside, "src", ".holdfast-other-0123.tmp"), "somebody else's");
    expect((await listContained(root, "src")).map((entry) => entry.path)).toEqual(["src/a.txt"]);
    await writeContained(root, "src/a.txt", "whole", { ...OPTIONS, removeLeftovers: true });
    expect((await readdir(join(inside, "src"))).toSorted()).toEqual([".holdfast-other-0123.tmp", "a.txt"]);
  });

  test("protected names are not written to, however they are spelled or linked to", async () => {
    await mkdir(join(inside, ".git"));
    await symlink(".git", join(inside, "git-link"));
    for (const path of [".git/config", ".GIT/config", "vendor/.git/hooks/pre-commit", "git-link/config"]) {
      await expect(writeContained(root, path, "x", OPTIONS)).rejects.toMatchObject({ code: "policy_denied" });
    }
    expect(await readdir(join(inside, ".git"))).toEqual([]);
  });
});

// Elsewhere there is no openat(2) to be had, and the header of contained-directory.ts admits the gap.
test.runIf(process.platform === "linux")(
  "X5: writing while somebody swaps the directory for a link changes nothing outside",
  ofCampaign,
  async () => {
    const root = await containedRoot(inside, "descriptors");
    await whileSwapping(join(inside, "src"), outside, async () => {
      for (let i = 0; i < 200; i++)
        await writeContained(root, "src/a.txt", "inside again", OPTIONS).catch(() => {});
    });
    expect(await readdir(outside)).toEqual(["a.txt"]);
    expect(await readFile(join(outside, "a.txt"), "utf8")).toBe("outside");
  },
);

test("a file is read whole whatever its size: none, one of many pieces, and one that the file system does not know", async () => {
  const large = "0123456789abcdef".repeat(200_000);
  await writeFile(join(inside, "large.txt"), large);
  await writeFile(join(inside, "empty.txt"), "");
  const root = await containedRoot(inside);
  const bytesMax = large.length;
  expect((await readContained(root, "large.txt", bytesMax)).text === large).toBe(true);
  expect((await readContained(root, "empty.txt", bytesMax)).text).toBe("");
  if (process.platform !== "linux") return;
  expect((await stat("/proc/self/status")).size).toBe(0);
  const { text } = await readContained(await containedRoot("/proc/self"), "status", bytesMax);
  expect(text).toContain("nonvoluntary_ctxt_switches:");
});

test("a root that is no directory is an error", async () => {
  await expect(containedRoot(join(base, "none"))).rejects.toMatchObject({ code: "file_not_found" });
  await expect(containedRoot(join(inside, "src", "a.txt"))).rejects.toMatchObject({ code: "file_not_found" });
});

test("a root given through a link accepts absolute paths of both spellings", async () => {
  await symlink(inside, join(base, "alias"));
  const root = await containedRoot(join(base, "alias"));
  expect((await readContained(root, join(base, "alias/src/a.txt"), LIMIT)).text).toBe("inside");
  expect((await readContained(root, join(inside, "src/a.txt"), LIMIT)).text).toBe("inside");
});

/** A thread that swaps a directory for a link to another one and back, as fast as it can, while `work` goes on. */
async function whileSwapping(directory: string, target: string, work: () => Promise<void>): Promise<void> {
  const stop = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(
    `const { workerData: { directory, target, stop } } = require("node:worker_threads");
     const { renameSync, rmSync, symlinkSync, unlinkSync } = require("node:fs");
     const place = (put) => { // Until it is there: a writer may just have made the directory that was missing.
       for (;;) {
         try {
           return put();
         } catch {
           try { rmSync(directory, { recursive: true, force: true }); } catch {}
         }
       }
     };
     while (Atomics.load(stop, 0) === 0) {
       renameSync(directory, directory + ".real");
       place(() => symlinkSync(target, directory));
       unlinkSync(directory);
       place(() => renameSync(directory + ".real", directory));
       Atomics.add(stop, 1, 1);
       Atomics.notify(stop, 1);
     }`,
    { eval: true, workerData: { directory, target, stop } },
  );
  const ended = new Promise((resolve) => worker.once("exit", resolve));
  await Atomics.waitAsync(stop, 1, 0).value;
  try {
    await work();
  } finally {
    Atomics.store(stop, 0, 1);
    await ended;
  }
  expect(Atomics.load(stop, 1)).toBeGreaterThan(10);
}
