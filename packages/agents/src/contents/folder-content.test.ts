// Folders of skills and scripts: their files, their hash, and every shape that is refused.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { readFolderContent, CONTENT_LIMITS } from "./folder-content.ts";
import { ContentStore } from "./content-store.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-skill-"));
  write("SKILL.md", "Text.\n");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, bytes: string | Buffer): void {
  const at = join(root, "pdf", path);
  mkdirSync(dirname(at), { recursive: true });
  writeFileSync(at, bytes);
}
const read = () => readFolderContent(join(root, "pdf"));

test("the hash covers paths, bytes and the executable bit, and nothing else", () => {
  const first = read().hash;
  write(".DS_Store", "left by a tool");
  write("node_modules/x/index.js", "");
  expect(read().hash).toBe(first);
  write("scripts/run.sh", "echo\n");
  const second = read().hash;
  chmodSync(join(root, "pdf/scripts/run.sh"), 0o755);
  const third = read().hash;
  write("SKILL.md", "Text!\n");
  expect(new Set([first, second, third, read().hash]).size).toBe(4);
  expect(read().files.map(({ path }) => path)).toEqual(["SKILL.md", "scripts/run.sh"]);
});

describe("a folder is refused", () => {
  const link = (target: string, path: string): void => {
    mkdirSync(dirname(join(root, "pdf", path)), { recursive: true });
    symlinkSync(target, join(root, "pdf", path));
  };
  test.each<readonly [string, () => void, RegExp]>([
    ["with a link to a file outside", () => link("/etc/passwd", "references/users.md"), /is a link/],
    ["with a link to a folder outside", () => link("/etc", "assets"), /is a link/],
    ["with a link to a file of its own", () => link("SKILL.md", "README.md"), /is a link/],
    ["with a link to nothing", () => link("nowhere", "x"), /is a link/],
    ["with a backslash in a name", () => write("..\\up.md", "x"), /not every system can write/],
    ["with a line break in a name", () => write("a\nb.md", "x"), /not every system can write/],
    ["with a colon in a name", () => write("C:x", "x"), /not every system can write/],
    [
      "with a name that Windows reserves",
      () => write("references/aux.md", "x"),
      /not every system can write/,
    ],
    ["with a dot at the end of a name", () => write("notes.", "x"), /not every system can write/],
    [
      "with a folder that Holdfast keeps for itself",
      () => write(".holdfast/x", "x"),
      /not every system can write/,
    ],
    [
      "with a folder of git under another spelling",
      () => write(".GIT/hooks/x", "x"),
      /not every system can write/,
    ],
    [
      "with two names that differ in case alone",
      () => (write("A.md", "x"), write("a.md", "x")),
      /are one file/,
    ],
    [
      "with a file above the limit",
      () => write("big", Buffer.alloc(CONTENT_LIMITS.fileBytes + 1)),
      /is the limit of a file/,
    ],
    ["with too many files", () => many(CONTENT_LIMITS.files), /more than 1000 files/],
    ["with too many bytes", () => large(), /more than 20971520 bytes/],
    [
      "with folders that are too deep",
      () => write(`${"d/".repeat(CONTENT_LIMITS.depth)}x`, "x"),
      /folders deep/,
    ],
  ])("%s", (_name, make, message) => {
    make();
    expect(read).toThrow(message);
  });

  function many(count: number): void {
    for (let at = 0; at < count; at++) write(`f${at}`, "");
  }
  function large(): void {
    for (let at = 0; at <= 4; at++) write(`f${at}`, Buffer.alloc(CONTENT_LIMITS.fileBytes));
  }
});

test("X6: a kept content is there as a whole, and a damaged one counts as missing", () => {
  write("references/a.md", "a");
  const content = read();
  const store = new ContentStore(join(root, "kept/skills"));
  store.keep(content);
  store.keep(content);
  expect(store.read(content.hash)).toEqual(content);
  writeFileSync(join(root, "kept/skills", content.hash, "SKILL.md"), "Another text.\n");
  expect(store.read(content.hash)).toBeUndefined();
  store.keep(content);
  expect(store.read(content.hash)?.hash).toBe(content.hash);
});

// A runner is killed while it fetches a script. The part of the content that it has written must not run.
test(
  "X6: a process that is killed while it keeps contents leaves each of them whole or absent",
  ofCampaign,
  async () => {
    const kept = join(root, "kept");
    for (let at = 0; at < 20; at++) write(`f${at}`, "x".repeat(1_000));
    const keep = `
    import { writeFileSync } from "node:fs";
    import { ContentStore } from ${JSON.stringify(new URL("content-store.ts", import.meta.url).href)};
    import { readFolderContent } from ${JSON.stringify(new URL("folder-content.ts", import.meta.url).href)};
    const store = new ContentStore(${JSON.stringify(kept)});
    for (let at = 0; ; at++) {
      writeFileSync(${JSON.stringify(join(root, "pdf/SKILL.md"))}, "Text " + process.pid + " " + at);
      store.keep(readFolderContent(${JSON.stringify(join(root, "pdf"))}));
      if (at === 0) console.log("begun");
    }`;
    let seen = 0;
    for (let round = 0; round < (isCampaign ? 30 : 3); round++) {
      const child = spawn(process.execPath, ["--input-type=module", "-e", keep], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      await once(child.stdout, "data");
      await new Promise((resolve) => setTimeout(resolve, (round * 7) % 40));
      child.kill("SIGKILL");
      await once(child, "close");
      const store = new ContentStore(kept);
      const hashes = readdirSync(kept).filter((name) => !name.startsWith("."));
      for (const hash of hashes) expect(store.read(hash)?.files).toHaveLength(21);
      seen += hashes.length;
    }
    expect(seen).toBeGreaterThan(1);
  },
);
