// The set-up of a checkout, over a small checkout whose packages are installed.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const KEY = "packages/coordinator/built-page/key";
/** Stands for the real one, which needs the packages of the page. */
const BUILDER = `
import { mkdirSync, writeFileSync } from "node:fs";
mkdirSync("packages/coordinator/built-page", { recursive: true });
writeFileSync("${KEY}", "made of these sources" as string);
`;

let checkout: string;
beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), "setup-"));
  for (const file of ["scripts/setup.mjs", "scripts/npm.mjs", "packages/holdfast/bin"])
    cpSync(join(root, file), join(checkout, file), { recursive: true });
  put("package.json", '{"type":"module","engines":{"node":">=18"}}');
  put("package-lock.json", "{}");
  put("node_modules/.holdfast-setup", createHash("sha256").update("{}").digest("hex"));
  put("packages/dashboard/src/main.tsx", "");
  put("packages/dashboard/node_modules/made", "");
  put("packages/proto/src/view/model.ts", "");
  put("scripts/build-page.ts", BUILDER);
});
afterEach(() => rmSync(checkout, { recursive: true }));

test("the set-up builds the page when it is missing or older than a source, and says so", () => {
  expect(setUp()).toEqual({
    status: 7,
    stdout: "ran\n",
    stderr: "setup: building the page for the browser\n",
  });
  expect(readFileSync(join(checkout, KEY), "utf8")).toBe("made of these sources");
  expect(setUp().stderr).toBe("");
  const later = new Date(Date.now() + 5_000);
  utimesSync(join(checkout, "packages/dashboard/node_modules/made"), later, later);
  expect(setUp().stderr).toBe("");
  for (const source of ["packages/dashboard/src/main.tsx", "packages/proto/src/view/model.ts"]) {
    const past = new Date(Date.now() - 60_000);
    utimesSync(join(checkout, KEY), past, past);
    expect(setUp().stderr, source).toContain("building the page");
  }
});

test("a page that cannot be built stops no command", () => {
  put("scripts/build-page.ts", "process.exit(3);");
  const { status, stderr } = setUp();
  expect(status).toBe(7);
  expect(stderr).toContain("the page was not built (exit 3); `npm run page` tries it again");
});

function setUp(): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const args = ["scripts/setup.mjs", "--", process.execPath, "-e", 'console.log("ran"); process.exit(7)'];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: checkout, encoding: "utf8" });
  return { status, stdout, stderr };
}

function put(file: string, text: string): void {
  const path = join(checkout, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
