// Publishing over a real registry, with small packages in the place of ours. The campaign `release` publishes
// ours, and installs them as a stranger.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkPackage } from "./check-package.ts";
import { packedIn, publishAll, type Packed } from "./publish.ts";
import { startRegistry, type Registry } from "./verdaccio.ts";

let registry: Registry;
let folder: string;
beforeAll(async () => {
  registry = await startRegistry();
  folder = mkdtempSync(join(tmpdir(), "holdfast-publish-"));
});
afterAll(async () => {
  await registry.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("packages are published after those that they need, and a repeated release goes on where it failed", async () => {
  const packages = pack({ "sample-a": ["sample-b"], "sample-b": [] });
  expect(packages.map(({ manifest }) => manifest.name)).toEqual(["sample-b", "sample-a"]);
  // The release fails in the middle: npm cannot read the second tarball.
  writeFileSync(join(folder, "none.tgz"), "no package");
  const broken = packages.map((one, i) => (i === 1 ? { ...one, file: join(folder, "none.tgz") } : one));
  expect(() => publish(broken)).toThrow(
    /^sample-a@1\.0\.0 was not published: [^]*\n {2}fix: run the same again/,
  );
  expect(publish(packages)).toEqual([
    "skipped: sample-b@1.0.0 is there with the same content",
    "published: sample-a@1.0.0",
  ]);

  // A stranger gets them.
  const user = join(folder, "user");
  mkdirSync(user);
  const run = spawnSync("npx", ["--yes", "sample-a"], { cwd: user, env: registry.env, encoding: "utf8" });
  expect(run).toMatchObject({ status: 0, stdout: "sample-a runs\n" });

  const other = pack({ "sample-b": [], "sample-c": ["sample-b"] }, "other");
  expect(() => publish(other)).toThrow(
    /has sample-b@1\.0\.0 with other content, and a version cannot be replaced\n {2}fix: give all packages another version/,
  );
  expect((await fetch(`${registry.url}sample-c`)).status).toBe(404);
});

test("a registry that does not answer is named, and nothing is taken for published", () => {
  const env = { ...registry.env, NPM_CONFIG_FETCH_RETRIES: "0" };
  expect(() => publishAll(pack({ "sample-f": [] }), "http://127.0.0.1:9/", { env, say: () => {} })).toThrow(
    /^http:\/\/127\.0\.0\.1:9\/ does not say whether it has sample-f@1\.0\.0: /,
  );
});

test("a check finds each file and each path in a package that is not for users", () => {
  const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
  const at = join(folder, "sample-g");
  const manifest = { name: "sample-g", version: "1.0.0" };
  const files = {
    "run.js": "",
    "src/index.ts": "",
    "dist/a.js": `import { test } from "vitest";\n//# sourceMappingURL=a.js.map`,
    "dist/a.js.map": "{}",
    "dist/b.test.js": `const at = "${root}/packages";`,
    "docs/guide.md": "[A guide](../README.md), [one](../examples/01-a) and [a file](guide.md)",
    "examples/01-a/.holdfast/agents/a.ts": "",
    "examples/01-a/.git/config": "",
    "dist/third-party-licenses.txt": "left-pad 1.0.0 (WTFPL)\n\nDo it.\n",
  };
  for (const [path, text] of Object.entries(files)) write(join(at, path), text);
  expect(checkPackage({ folder: at, manifest, file: "" }, root)).toEqual([
    "sample-g: its version is not 0.1.0",
    "sample-g: its license is not Apache-2.0",
    expect.stringMatching(/engines\.node is not >=22.*: npm would choose this version under an old Node$/),
    ...[
      "dist/a.js names a source map",
      "dist/a.js imports a library for tests",
      "dist/a.js.map is not for users",
      "dist/b.test.js is a test",
      `dist/b.test.js has ${root}, a path of the machine that built it`,
      "examples/01-a/.git/config is not for users",
      "run.js is no part of a published package",
      "src/index.ts is no part of a published package",
      "src/index.ts is a source",
      "README.md: is missing",
      "LICENSE: is missing",
      "dist/third-party-licenses.txt: left-pad has the license WTFPL, which nobody has looked at",
      "docs/guide.md links to ../README.md, which is no file of the package",
    ].map((problem) => `sample-g: ${problem}`),
  ]);
});

function publish(packages: readonly Packed[]): readonly string[] {
  const said: string[] = [];
  publishAll(packages, registry.url, { env: registry.env, say: (text) => said.push(text) });
  return said;
}

/** Packs packages that need each other as given. */
function pack(packages: Readonly<Record<string, readonly string[]>>, text = "runs"): readonly Packed[] {
  const [staging, target] = ["staging", "packed"].map((name) => join(folder, name));
  for (const one of [staging!, target!]) {
    rmSync(one, { recursive: true, force: true });
    mkdirSync(one);
  }
  for (const [name, needs] of Object.entries(packages)) {
    const dependencies = Object.fromEntries(needs.map((other) => [other, "1.0.0"]));
    const manifest = { name, version: "1.0.0", bin: { [name]: "run.js" }, dependencies };
    write(join(staging!, name, "package.json"), JSON.stringify(manifest));
    write(join(staging!, name, "run.js"), `#!/usr/bin/env node\nconsole.log("${name} ${text}");\n`);
  }
  const folders = Object.keys(packages).map((name) => join(staging!, name));
  const args = ["pack", "--silent", "--pack-destination", target!, ...folders];
  spawnSync("npm", args, { cwd: folder, env: registry.env });
  return packedIn(staging!, target!);
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
