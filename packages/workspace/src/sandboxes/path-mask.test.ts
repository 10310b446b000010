// Commands in a sandbox do not reach the paths that a rule of the agent denies.

import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { guardPlaces, type GuardedPlaces } from "../workspace/guarded-places.ts";
import type { PathMask } from "../workspace/paths/path-mask.ts";
import { tryEach } from "./canaries/attempts.ts";
import { createArguments } from "./container-commands.ts";
import { findMasked, type MaskedPlaces } from "./mounts/masked-places.ts";
import { mountsOf } from "./mounts/mount-list.ts";
import { findNested } from "./mounts/nested-places.ts";
import type { SandboxBackend } from "./sandbox-backend.ts";
import { ownSandboxes } from "./sandboxes.ts";

let root: string;
beforeEach(() => void (root = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-mask-")))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text = "canary\n"): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const reading = (...unreadable: string[]): PathMask => ({ unreadable, unwritable: [] });
const writing = (...unwritable: string[]): PathMask => ({ unreadable: [], unwritable });

/** Their mounts are compared as arguments, at the end, because few machines have an engine of containers. */
const BY_ARGUMENTS = ["docker"];
const MASKING = ownSandboxes({ keys: async () => undefined }).filter(
  ({ name, masksPaths }) => masksPaths === true && !BY_ARGUMENTS.includes(name),
);
const SANDBOXES = await Promise.all(
  MASKING.map(async (sandbox) => ({ sandbox, check: await sandbox.check() })),
);

test("the sandboxes that say that they mask paths are tested here", () => {
  expect(MASKING.map(({ name }) => name)).toEqual(expect.arrayContaining(["virtual", "bubblewrap"]));
});

for (const { sandbox, check } of SANDBOXES) {
  const isReady = check.status === "ready";
  // The name says why the machine cannot run the sandbox.
  describe.skipIf(!isReady)(`${sandbox.name}${isReady ? "" : ` (skipped: ${check.reason})`}`, () =>
    testMasks(sandbox),
  );
}

function testMasks(sandbox: SandboxBackend): void {
  /** @param commands each with attempts that have `; ` between them. Each attempt is made. */
  async function run(mask: PathMask, ...commands: readonly string[]): Promise<string> {
    const workspace = await sandbox.open({ session: "s", root }, {});
    const execute = (line: string) => workspace.execute(line, { timeoutMs: 30_000, mask });
    try {
      const texts: string[] = [];
      for (const command of commands) {
        const { stdout, stderr } = await tryEach(execute, command.split("; "));
        texts.push(stdout, stderr);
      }
      return texts.join("");
    } finally {
      await workspace.dispose();
    }
  }

  test("a command reads no file that is denied, by any path, and also not after it has moved folders", async () => {
    for (const path of [".env", "a/b/.env", "secrets/deep/key", "keys/x.pem"]) write(path);
    write("plain", "plain\n");
    symlinkSync("keys/x.pem", join(root, "innocent.txt"));
    symlinkSync("secrets", join(root, "way"));
    const mask = reading("**/.env", "secrets/**", "**/*.pem");
    const said = await run(
      mask,
      `cat .env ./.env ${root}/.env a/../.env a/b/.env; cat secrets/deep/key keys/x.pem innocent.txt way/deep/key`,
      "cp .env copy; cat copy; cp -r secrets moved; cat moved/deep/key; ls secrets keys; grep -r canary .",
      "mv .env other; mv secrets other2; mv a other3; mv keys other4; ln .env hard",
      "cat other other2/deep/key other3/b/.env other4/x.pem hard; cat plain",
    );
    expect(said).not.toContain("canary");
    expect(said).toContain("plain");
    for (const path of [".env", "a/b/.env", "secrets/deep/key", "keys/x.pem"])
      expect(read(path)).toBe("canary\n");
  });

  test("a command sees no file that was denied and came later", async () => {
    const workspace = await sandbox.open({ session: "s", root }, {});
    const look = () =>
      workspace.execute("cat late.pem; true", { timeoutMs: 30_000, mask: reading("**/*.pem") });
    await look();
    write("late.pem");
    expect((await look()).stdout).not.toContain("canary");
    await workspace.dispose();
  });

  test("a command finds no denied file in what git has committed", async () => {
    write(".git/objects/aa/object");
    write("sub/.git/objects/aa/object");
    const said = await run(reading(".env"), "cat .git/objects/aa/object sub/.git/objects/aa/object; true");
    expect(said).not.toContain("canary");
  });

  test("a command changes and makes no file that is denied, and others as before", async () => {
    write("infra/main.tf");
    write("package-lock.json");
    write("src/gen/a.ts");
    symlinkSync("../infra", join(root, "src/way"));
    await run(
      writing("infra", "infra/**", "package-lock.json", "src/gen/*.ts", "absent/**", "new.lock"),
      // Sandboxes of mounts rename what a command has made, when it has ended.
      ...(
        "echo evil > infra/main.tf;echo evil > infra/new.tf;echo evil > src/way/other.tf;rm -f package-lock.json;mv infra infra2;" +
        "echo evil >> package-lock.json;echo evil > src/gen/a.ts;echo evil > src/gen/b.ts;mv src src2;rm -rf src infra;" +
        "mkdir absent;echo evil > absent/x;echo evil > new.lock;echo good > src/good.ts;cat infra/main.tf > seen"
      ).split(";"),
    );
    expect(["infra/main.tf", "package-lock.json", "src/gen/a.ts"].map(read)).toEqual(
      Array(3).fill("canary\n"),
    );
    for (const path of ["infra/new.tf", "infra/other.tf", "src/gen/b.ts", "absent", "new.lock"])
      expect(existsSync(join(root, path)), path).toBe(false);
    expect([read("src/good.ts"), read("seen")]).toEqual(["good\n", "canary\n"]);
  });

  test("a rule for files in any folder lets a command make none of them", async () => {
    write("a/b/c", "mine\n");
    await run(
      writing("**/*.lock"),
      "echo evil > a/x.lock; mkdir -p n/m; echo evil > n/m/y.lock; echo evil > z.lock",
    );
    for (const path of ["a/x.lock", "n/m/y.lock", "z.lock"])
      expect(existsSync(join(root, path)), path).toBe(false);
  });

  test("a file under two names is not written by the other one in the folder that is denied", async () => {
    write("infra/main.tf");
    const said = await run(
      writing("infra", "infra/**"),
      "ln infra/main.tf hard && echo evil > hard; echo done",
    );
    expect([read("infra/main.tf"), said]).toEqual(["canary\n", expect.stringContaining("done")]);
  });
}

test("a container gets a mount for each denied path, in an order in which none covers another", () => {
  for (const path of [".env", "secrets/key", "infra/deep/a.tf", "infra/deep/b/.env"]) write(path);
  write(".git/config");
  linkSync(join(root, ".env"), join(root, "other"));
  const options = {
    engine: "docker",
    engineEnvironment: {},
    image: "i",
    place: { session: "s", root },
    root,
    fileBytes: 1,
  };
  const argumentsWith = (mask: PathMask) => {
    const masked = findMasked(root, mask) as MaskedPlaces;
    const mounts = mountsOf(root, guardPlaces(root) as GuardedPlaces, findNested(root), masked);
    return createArguments("name", mounts, options);
  };
  const args = argumentsWith({ unreadable: ["**/.env", "secrets/**"], unwritable: ["infra/deep/**"] });
  expect(args).toEqual(
    expect.arrayContaining([
      `/dev/null:${root}/.env:ro`,
      `${root}/secrets:ro`,
      `${root}/.git:ro`,
      `${root}/infra:${root}/infra`,
      `${root}/infra/deep:${root}/infra/deep:ro`,
      `${root}/infra/deep/b:${root}/infra/deep/b:ro`,
      `/dev/null:${root}/infra/deep/b/.env:ro`,
    ]),
  );
  const at = (text: string): number => args.findIndex((one) => one.includes(text));
  expect(at("/infra:")).toBeLessThan(at("/infra/deep:"));
  expect(at("/infra/deep:")).toBeLessThan(at("/infra/deep/b/.env"));
  const readOnly = argumentsWith({ unreadable: [], unwritable: ["**/*.lock"] });
  expect(readOnly.filter((one) => one.startsWith(`${root}:`))).toEqual([`${root}:${root}:ro`]);
});

test("a command is refused where more files are denied than can be hidden", async () => {
  for (let n = 0; n < 2_002; n++) writeFileSync(join(root, `${n}.pem`), "");
  expect(findMasked(root, reading("*.pem"))).toContain("more than 2000 files that a rule denies");
});
