// `nextVersion`: the sources of this checkout as a later version would have them. There is no later version yet,
// so it is planted.
//
//   - Tables of both databases have another column, and the kernel has another behaviour.
//   - Coordinators and runners send each other a field that today's do not know.
//   - It runs from a folder of its own, outside of `node_modules`, since Node strips no types there.

import { spawnSync } from "node:child_process";
import { cpSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const NEXT_NUMBER = "0.2.0";

/** The text that is looked for is there once, and what takes its place. */
type Edit = readonly [file: string, was: string, becomes: string];

const EDITS: readonly Edit[] = [
  [
    "storage/src/sqlite/file/migrations.ts",
    "\n];\n",
    "\n  `ALTER TABLE session ADD COLUMN planted TEXT NOT NULL DEFAULT 'yes'`,\n];\n",
  ],
  [
    "storage/src/postgres/tables/schema.ts",
    "\n];\n",
    "\n  `ALTER TABLE session ADD COLUMN planted text NOT NULL DEFAULT 'yes'; ALTER TABLE state ADD COLUMN planted text NOT NULL DEFAULT 'yes'`,\n];\n",
  ],
  [
    "core/src/session/session.ts",
    "BEHAVIOUR: Readonly<Record<string, number>> = {}",
    "BEHAVIOUR: Readonly<Record<string, number>> = { planted: 1 }",
  ],
  [
    "proto/proto/holdfast/v1/runner_service.proto",
    "  bool for_trials = 13;\n",
    "  bool for_trials = 13;\n  string planted = 99;\n",
  ],
  [
    "proto/proto/holdfast/v1/runner_service.proto",
    "  optional int64 before = 7;\n",
    "  optional int64 before = 7;\n  string planted = 99;\n",
  ],
  [
    "runner/src/registration.ts",
    "    forTrials: offers.forTrials === true,",
    '    forTrials: offers.forTrials === true, planted: "yes",',
  ],
  [
    "coordinator/src/services/runners/poll-messages.ts",
    "    mayReturn,\n",
    '    mayReturn, planted: "yes",\n',
  ],
  ["core/src/version.ts", 'VERSION = "0.1.0"', `VERSION = "${NEXT_NUMBER}"`],
];

/** Makes it in an empty folder. @returns the path of its command. @throws Error for a text that is not there once. */
export function nextVersion(folder: string): string {
  const command = presentVersion(folder);
  becomeNext(folder);
  return command;
}

/** This checkout's version in an empty folder. @returns the path of its command. */
export function presentVersion(folder: string): string {
  cpSync(join(root, "packages"), join(folder, "packages"), { recursive: true, filter: isSource });
  linkPackages(folder);
  return join(folder, "packages/holdfast/bin/holdfast.mjs");
}

/** Puts the next version in the place of the present one, as an installation does. @throws Error */
export function becomeNext(folder: string): void {
  for (const [file, was, becomes] of EDITS) {
    const path = join(folder, "packages", file);
    const parts = readFileSync(path, "utf8").split(was);
    if (parts.length !== 2) throw new Error(`${file} has ${JSON.stringify(was)} ${parts.length - 1} times`);
    writeFileSync(path, parts.join(becomes));
  }
  generateContract(join(folder, "packages/proto"));
}

function isSource(path: string): boolean {
  const parts = relative(root, path).split(sep);
  return !parts.includes("node_modules") && parts[2] !== "dist" && !path.endsWith(".test.ts");
}

function generateContract(proto: string): void {
  const PATH = `${join(root, "node_modules/.bin")}${delimiter}${process.env["PATH"] ?? ""}`;
  const env = { ...process.env, PATH };
  const { status, error, stderr } = spawnSync("buf", ["generate"], { cwd: proto, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`buf made no contract of ${proto}: ${error?.message ?? stderr}`);
}

/** Packages of others are those of this checkout. */
function linkPackages(folder: string): void {
  const modules = join(root, "node_modules");
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith("@") ? readdirSync(join(modules, name)).map((own) => join(name, own)) : name,
  );
  for (const name of names) {
    if (name.startsWith(".") || lstatSync(join(modules, name)).isSymbolicLink()) continue;
    link(join(folder, "node_modules", name), join(modules, name));
  }
  for (const each of readdirSync(join(folder, "packages"))) {
    const text = readFileSync(join(folder, "packages", each, "package.json"), "utf8");
    const { name } = JSON.parse(text) as { readonly name: string };
    link(join(folder, "node_modules", name), join(folder, "packages", each));
  }
}

function link(path: string, to: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(to, path);
}
