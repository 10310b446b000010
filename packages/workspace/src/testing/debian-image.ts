// `debianImage`: the image of the tests of containers, built from a package of Debian. It needs no registry.
//
// The root file system is BusyBox alone, linked statically, under the names of its programs. An engine
// imports it as one layer.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PACKAGE = "busybox-static";
const IMAGE = "holdfast-test:debian";
const ENGINES = ["docker", "podman"];
const ENGINE_MS = 10_000;

/**
 * Builds the root file system in a folder. @returns its path. @throws Error where Debian's packages cannot be
 * downloaded.
 */
export function debianRoot(folder: string): string {
  const root = join(folder, "root");
  execFileSync("apt-get", ["download", PACKAGE], { cwd: folder, stdio: "pipe" });
  const [archive] = readdirSync(folder).filter((name) => name.endsWith(".deb"));
  if (archive === undefined) throw new Error(`apt-get has downloaded no package ${PACKAGE}`);
  execFileSync("dpkg-deb", ["-x", join(folder, archive), root]);
  const busybox = join(root, "bin", "busybox");
  const programs = execFileSync(busybox, ["--list"], { encoding: "utf8" }).trim().split("\n");
  for (const name of programs) if (name !== "busybox") symlinkSync("busybox", join(root, "bin", name));
  for (const name of ["dev", "etc", "proc", "sys", "tmp"]) mkdirSync(join(root, name), { recursive: true });
  return root;
}

/**
 * Imports the image into the engine that answers.
 *
 * @returns its name; `undefined` where no engine runs. @throws Error as `debianRoot` does.
 */
export function debianImage(): string | undefined {
  const isRunning = (engine: string): boolean =>
    spawnSync(engine, ["version", "--format", "{{.Server.Version}}"], { timeout: ENGINE_MS }).status === 0;
  const engine = ENGINES.find(isRunning);
  if (engine === undefined) return undefined;
  if (spawnSync(engine, ["image", "inspect", IMAGE]).status === 0) return IMAGE;
  const folder = mkdtempSync(join(tmpdir(), "holdfast-image-"));
  try {
    const input = execFileSync("tar", ["-C", debianRoot(folder), "-c", "."], { maxBuffer: 64 * 1024 ** 2 });
    execFileSync(engine, ["import", "-", IMAGE], { input, stdio: "pipe" });
    return IMAGE;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
