// Projects and databases below the folder of a sandbox are guarded as the folder itself is.

import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createArguments } from "../container-commands.ts";
import { NO_MASK } from "./masked-places.ts";
import { mountsOf } from "./mount-list.ts";
import { findNested } from "./nested-places.ts";
import { bubblewrapSandbox } from "../bubblewrap-sandbox.ts";
import { guardPlaces, type GuardedPlaces } from "../../workspace/guarded-places.ts";

const hasBubblewrap = spawnSync("bwrap", ["--version"]).status === 0;

let root: string;
let server: Server | undefined;
beforeEach(() => void (root = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-nested-")))));
afterEach(() => {
  server?.close();
  rmSync(root, { recursive: true, force: true });
});

function write(path: string, text = "mine"): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}
const read = (path: string): string => readFileSync(join(root, path), "utf8");

function makeDatabase(path: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  const database = new DatabaseSync(join(root, path));
  database.exec(
    `PRAGMA application_id = 1215261796; CREATE TABLE t (secret); INSERT INTO t VALUES ('canary')`,
  );
  database.close();
}

async function run(command: string) {
  const workspace = await bubblewrapSandbox.open({ session: "s", root }, {});
  try {
    return await workspace.execute(command, { timeoutMs: 20_000 });
  } finally {
    await workspace.dispose();
  }
}

// skip: this machine has no bubblewrap
describe.skipIf(!hasBubblewrap)("bubblewrap", () => {
  test("a command changes no project below its folder", async () => {
    const places = ["sub/.git/config", "a/b/.claude/settings.json", "sub/.vscode/mcp.json", "sub/.mcp.json"];
    for (const path of places) write(path);
    write("sub/.holdfast/agents/a.md");
    write("sub/own.txt");
    const { stdout } = await run(
      `for f in ${places.join(" ")} sub/own.txt; do echo evil > $f; done; mkdir -p sub/.git/hooks && echo x > sub/.git/hooks/post-checkout; ls -A sub/.holdfast`,
    );
    expect(places.map(read)).toEqual(places.map(() => "mine"));
    expect([read("sub/own.txt"), existsSync(join(root, "sub/.git/hooks")), stdout]).toEqual([
      "evil\n",
      false,
      "",
    ]);
  });

  test("a project that a command makes below its folder is renamed, and the command's output says so", async () => {
    write("sub/.git/config");
    const { stderr } = await run(
      "mkdir -p new/.git/hooks new/.holdfast/agents .github/agents; echo '{}' > .mcp.json; echo '{}' > new/opencode.json; mv sub moved; mkdir -p sub/.git; echo evil > sub/.git/config",
    );
    for (const path of ["new/.git", "new/.holdfast", "new/opencode.json", ".mcp.json", "sub/.git"]) {
      expect(existsSync(join(root, path)), path).toBe(false);
      expect(existsSync(join(root, `${path}.made-in-a-sandbox`)), path).toBe(true);
      expect(stderr).toContain(`${path} was renamed to ${path}.made-in-a-sandbox`);
    }
    expect(read("moved/.git/config")).toBe("mine");
  });

  test("a database of Holdfast, its files and its socket are not there, wherever they lie", async () => {
    makeDatabase("data/hf.db");
    makeDatabase("data/other");
    for (const ending of ["-wal", "-lock", "-owner"]) write(`data/hf.db${ending}`, "canary");
    write("data/other-lock");
    server = createServer((socket) => socket.end("canary")).listen(join(root, "data/hf.db-socket"));
    write("data/app.db", "the user's own");
    const { stdout } = await run(
      "cat data/hf.db* data/other* 2>&1; echo x >> data/hf.db; rm -f data/hf.db; ls -l data/hf.db-socket; cat data/app.db",
    );
    expect(stdout).not.toContain("canary");
    expect(stdout).toContain("the user's own");
    expect(stdout).toMatch(/^c\S+ .*hf\.db-socket/m);
    const database = new DatabaseSync(join(root, "data/hf.db"));
    expect(database.prepare("SELECT secret FROM t").get()).toEqual({ secret: "canary" });
    database.close();
  });
});

test("a container gets the same guards", () => {
  write("sub/.git/config");
  write("sub/.holdfast/agents/a.md");
  makeDatabase("data/hf.db");
  const mounts = mountsOf(root, guardPlaces(root) as GuardedPlaces, findNested(root), NO_MASK);
  const args = createArguments("name", mounts, {
    engine: "docker",
    engineEnvironment: {},
    image: "image",
    place: { session: "s", root },
    root,
    fileBytes: 1,
  });
  expect(args).toEqual(
    expect.arrayContaining([
      `${root}/sub/.git:${root}/sub/.git:ro`,
      `${root}/sub/.holdfast:ro`,
      `/dev/null:${root}/data/hf.db:ro`,
    ]),
  );
});
