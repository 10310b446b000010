// Checks of this machine: the installed versions, settings, folders, disks and what can isolate processes.

import { existsSync, mkdtempSync, rmdirSync } from "node:fs";
import { stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ERROR_TABLE, MIB, VERSION } from "@holdfast/core";
import { dataFolder, nodeWarning } from "@holdfast/system";
import { findNamespaceSupport, tryProgram, type ProgramEnd } from "@holdfast/system/processes";
import { assertSqliteVersion } from "@holdfast/storage/sqlite";
import { ownSandboxes, type SandboxProgram } from "@holdfast/workspace";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { requireSandbox } from "../agents/sandbox-settings.ts";
import { findMode } from "@holdfast/place/mode";
import { configFiles, findProject } from "@holdfast/place/project";
import { readConfig } from "@holdfast/place/settings/config";
import { readRunnerPolicy, policyPath } from "@holdfast/place/settings/runner-policy-file";
import type { Finding } from "./check.ts";

const PROGRAM_MS = 3_000;
const FREE_WARNING = 1024 * MIB;
const FREE_PROBLEM = 64 * MIB;

/** @throws HoldfastError `version_unsupported`. The launcher has checked the version of Node. */
export function checkVersions(versions: NodeJS.ProcessVersions = process.versions): Finding {
  assertSqliteVersion();
  const { node, sqlite } = versions;
  const found = `${VERSION}, on Node ${node} with SQLite ${sqlite}`;
  const fix = nodeWarning(node);
  return fix === undefined ? { status: "ok", found } : { status: "warning", found, fix };
}

/** @throws HoldfastError `config_invalid` for the first file that is wrong; UsageError for a variable that is. */
export function checkSettings(args: Arguments, io: Io): Finding {
  const project = findProject(io);
  const files = configFiles(project, io).map(([, file]) => file);
  for (const file of files) readConfig(file);
  const mode = findMode(args, io, true);
  requireSandbox(io);
  readRunnerPolicy(args, io, project);
  const found = [...files, policyPath(args, io)].filter((file) => file !== undefined && existsSync(file));
  const given = found.length === 0 ? "no file, so defaults" : found.join(", ");
  return { status: "ok", found: `${given}; mode ${mode.value}` };
}

/** Where the stack, coordinators and secrets are kept. */
export function checkDataFolder(io: Io): Finding {
  const folder = dataFolder(io);
  const there = nearestThere(folder);
  try {
    // A folder may allow to write and still take no folder, as /proc does.
    rmdirSync(mkdtempSync(join(there, ".holdfast-doctor-")));
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    return {
      status: "warning",
      found: `${folder} cannot be written: ${code} at ${there}`,
      fix: "the local stack, coordinators and the encrypted secrets need it; name another folder in XDG_DATA_HOME",
    };
  }
  return { status: "ok", found: there === folder ? folder : `${folder}, made when it is needed` };
}

/** @param database the path of the project's database, if it is known. */
export async function checkDisk(database: string | undefined, io: Io): Promise<Finding> {
  const disks = new Map<number, { readonly free: number; readonly folders: string[] }>();
  const folders = [...(database === undefined ? [] : [dirname(database)]), dataFolder(io)];
  for (const folder of folders.map(nearestThere)) {
    const { dev } = await stat(folder);
    const { bavail, blocks, bsize } = await statfs(folder);
    if (blocks === 0) continue; // No disk, such as /proc.
    const disk = disks.get(dev) ?? { free: bavail * bsize, folders: [] };
    if (!disk.folders.includes(folder)) disk.folders.push(folder);
    disks.set(dev, disk);
  }
  const free = Math.min(...[...disks.values()].map((disk) => disk.free));
  const found = [...disks.values()].map((disk) => `${size(disk.free)} free in ${disk.folders.join(" and ")}`);
  if (free >= FREE_WARNING) return { status: "ok", found: found.join(", ") };
  const full = { found: found.join(", "), fix: "free space, or move the data to another disk" };
  if (free >= FREE_PROBLEM) return { status: "warning", ...full };
  return { status: "problem", ...full, exitCode: ERROR_TABLE.storage_full.exit };
}

function size(bytes: number): string {
  return bytes >= 1024 * MIB ? `${(bytes / 1024 / MIB).toFixed(1)} GiB` : `${(bytes / MIB).toFixed(0)} MiB`;
}

function nearestThere(path: string): string {
  for (let at = path; ; at = dirname(at)) if (existsSync(at) || at === dirname(at)) return at;
}

/** Holdfast itself uses only namespaces, for process trees. The programs are for people who isolate a runner. */
export async function checkSandbox(): Promise<Finding> {
  const [namespaces, ...programs] = await Promise.all([findNamespaceSupport(), ...SANDBOXES.map(trySandbox)]);
  const found = programs.filter(({ works }) => works).map(({ text }) => text);
  const missing = programs.filter(({ works }) => !works).map(({ text }) => text);
  const others = [
    ...(found.length > 0 ? [`there is ${found.join(", ")}`] : []),
    ...(missing.length > 0 ? [`without ${missing.join(", ")}`] : []),
  ].join("; ");
  if ("unshare" in namespaces) return { status: "ok", found: `PID namespaces hold process trees; ${others}` };
  const text = `process trees are found by group and marker: ${namespaces.unavailable}; ${others}`;
  if (process.platform !== "linux") return { status: "ok", found: text };
  return {
    status: "warning",
    found: text,
    fix: "install util-linux, and allow user namespaces (sysctl kernel.unprivileged_userns_clone, or AppArmor's restriction)",
  };
}

const SANDBOXES: readonly SandboxProgram[] = ownSandboxes()
  .flatMap(({ programs = [] }) => programs)
  .filter(({ only }) => only === undefined || (only === "macos") === (process.platform === "darwin"));

/** Clients of engines that do not run answer with a paragraph. */
const REASON_CHARS = 60;

/** A program that is there may still not work: it is run once. */
async function trySandbox({ name, program, args, version }: SandboxProgram) {
  const end: ProgramEnd = await tryProgram(program, args, { ms: PROGRAM_MS, env: process.env });
  if (end.status === "missing") return { works: false, text: name };
  if (end.status === "failed")
    return { works: false, text: `${name} (installed, but: ${plainLine(end.reason, REASON_CHARS)})` };
  const [found = ""] = version.exec(end.output) ?? [];
  return { works: true, text: `${name} ${found}`.trim() };
}
