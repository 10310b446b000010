// `holdfast agents install` and `uninstall`: agents of a registry in the format of the ACP registry.
//
//   - Nothing is run before its content was shown with its hash, and was confirmed. Scripts of npm packages
//     are never run.
//   - An address without encryption is called on this machine alone. A file of this machine may be named by a
//     registry that is one, too.

import { createHash } from "node:crypto";
import { execFile } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import {
  chooseInstall,
  hashOfFolder,
  unpackArchive,
  type AgentInstall,
  type InstalledAgent,
} from "@holdfast/programs";
import { hasOwnAdapter } from "@holdfast/programs/included-programs";
import { HoldfastError, MIB, NotFoundError, UsageError } from "@holdfast/core";
import { createPrivate, makePrivateFolder } from "@holdfast/system";
import { isLoopback } from "@holdfast/storage/coordinator-url";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { plainLine, table } from "@holdfast/terminal/frame/plain-text";
import { installedAgents } from "@holdfast/machine/programs";

const LIMITS = {
  registryBytes: 16 * MIB,
  archiveBytes: 512 * MIB,
  downloadMs: 600_000,
} as const;

export async function installAgent(id: string, args: Arguments, io: Io): Promise<number> {
  const given = args.text("registry");
  if (given === undefined)
    throw new UsageError("no registry is named", {
      expected: "--registry FILE, or --registry URL",
      fix: "name a file in the format of the ACP registry, or its address",
    });
  if (hasOwnAdapter(id))
    throw new UsageError(`"${id}" is an agent that Holdfast knows itself`, {
      fix: `install its program as its author says, and call \`${io.call("doctor")}\``,
    });
  const url =
    URL.canParse(given) && /^(https?|file):/.test(given)
      ? new URL(given)
      : pathToFileURL(resolve(io.cwd, given));
  const text = Buffer.from(await bytesOf(url, url, LIMITS.registryBytes)).toString("utf8");
  const install = chooseInstall(text, id, platformName(), given);
  const store = installedAgents(io);
  const draft = store.draft();
  try {
    const program = await (install.kind === "binary"
      ? placeArchive(install, store.filesOf(draft), url)
      : placePackage(install, store.filesOf(draft), io));
    const record = recordOf(install, await hashOfFolder(store.filesOf(draft)), program, args.texts("key"));
    store.checkPin(record);
    const isSame = store.get(id)?.hash === record.hash;
    io.note(shown(install, record, isSame).join("\n"));
    if (!isSame && !args.has("yes")) await confirm(io, id);
    store.keep(draft, record);
    const { name, version, hash } = record;
    io.show(
      record,
      `${id} (${plainLine(name, 60)} ${version}) is installed and pinned: \`${io.call(`run ${id} "…"`)}\``,
    );
    io.note(`sha256:${hash}`);
    return 0;
  } finally {
    store.drop(draft);
  }
}

export function uninstallAgent(id: string, io: Io): number {
  if (!installedAgents(io).remove(id))
    throw new NotFoundError("agent_not_found", `the agent "${id}" is not installed`, {
      expected: installedAgents(io).names().join(", ") || "an agent that `holdfast agents install` installed",
      fix: "correct the name",
    });
  io.show({ id, installed: false }, `${id} is removed, and its pinned hash is forgotten`);
  return 0;
}

function recordOf(
  { id, name, version, kind, source, args, env }: AgentInstall,
  hash: string,
  program: string,
  keys: readonly string[],
): InstalledAgent {
  return {
    id,
    name,
    version,
    kind,
    source,
    hash,
    program,
    args: [...args],
    env: { ...env },
    keys: [...keys],
  };
}

function shown(
  install: AgentInstall,
  { hash, program, args, env, keys }: InstalledAgent,
  isSame: boolean,
): readonly string[] {
  const rows = [
    ["agent", `${plainLine(install.name, 60)} ${install.version} (${plainLine(install.license, 40)})`],
    ["about", plainLine(install.description, 100)],
    [install.kind === "binary" ? "archive" : "npm package", plainLine(install.source, 200)],
    ["starts", plainLine([program, ...args].join(" "), 200)],
    ["variables", [...Object.keys(env), ...keys].join(", ") || "none"],
    ["content", `sha256:${hash}${isSame ? " (as pinned)" : ""}`],
  ];
  return table(rows);
}

async function placeArchive(
  install: Extract<AgentInstall, { kind: "binary" }>,
  folder: string,
  registry: URL,
): Promise<string> {
  const { source, sha256, cmd } = install;
  const bytes = await bytesOf(new URL(source), registry, LIMITS.archiveBytes);
  const found = createHash("sha256").update(bytes).digest("hex");
  if (sha256 !== undefined && sha256.toLowerCase() !== found)
    throw new HoldfastError("config_invalid", "the archive is not the one of the registry", {
      at: source,
      got: `sha256:${found}`,
      expected: `sha256:${sha256.toLowerCase()}`,
      fix: "try again later, or ask the author of the registry",
    });
  for (const file of unpackArchive(source, bytes, cmd)) {
    const at = join(folder, file.path);
    makePrivateFolder(dirname(at));
    createPrivate(at, file.bytes);
    if (file.isExecutable) chmodSync(at, 0o700);
  }
  return cmd.replace(/^(\.\/)+/, "");
}

/** @returns the script of the package. */
async function placePackage(
  { source, packageName, cmd, id }: Extract<AgentInstall, { kind: "npx" }>,
  folder: string,
  { env }: Io,
): Promise<string> {
  const argv = ["install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save"];
  writeFileSync(join(folder, "package.json"), "{}\n");
  try {
    await promisify(execFile)("npm", [...argv, "--", source], {
      env: { ...env },
      timeout: LIMITS.downloadMs,
    });
  } catch (error) {
    const { stderr, message } = error as Error & { readonly stderr?: string };
    const said = stderr ?? message;
    throw new HoldfastError("unavailable", `npm could not install ${source}`, {
      got: said.trim().split("\n").slice(0, 3).join("; ").slice(0, 500),
      fix: "install npm, or correct its settings (`npm config list`)",
    });
  }
  const own = join("node_modules", packageName);
  const { bin } = JSON.parse(readFileSync(join(folder, own, "package.json"), "utf8")) as {
    readonly bin?: unknown;
  };
  const commands =
    typeof bin === "string"
      ? { [packageName.split("/").at(-1) ?? ""]: bin }
      : ((bin ?? {}) as Record<string, string>);
  const names = Object.keys(commands);
  const name = cmd ?? (names.length === 1 ? names[0] : packageName.split("/").at(-1));
  const script = commands[name ?? ""];
  if (script !== undefined && !script.split("/").includes("..")) return join(own, script);
  throw new HoldfastError("config_invalid", `the package ${source} has no command "${name}"`, {
    at: id,
    expected: names.join(", ") || "a package with a command",
    fix: "name a registry with a right entry",
  });
}

async function bytesOf(url: URL, registry: URL, bytesMax: number): Promise<Uint8Array> {
  if (url.protocol === "file:" && registry.protocol === "file:") {
    try {
      return readFileSync(fileURLToPath(url));
    } catch (cause) {
      throw new NotFoundError("file_not_found", "there is no such file", {
        at: fileURLToPath(url),
        fix: "correct the path",
        cause,
      });
    }
  }
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback(url.hostname)))
    throw new HoldfastError("policy_denied", "the address cannot be called", {
      at: url.href.slice(0, 300),
      expected: "https, or http to this machine",
      fix: "name a registry whose addresses are https",
    });
  const response = await fetch(url, { signal: AbortSignal.timeout(LIMITS.downloadMs) }).catch(
    (cause: unknown) => {
      throw unreachable(url, (cause as Error).message, cause);
    },
  );
  if (!response.ok || response.body === null) throw unreachable(url, `HTTP ${response.status}`);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.byteLength;
    if (size > bytesMax) throw unreachable(url, `more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function unreachable(url: URL, got: string, cause?: unknown): HoldfastError {
  return new HoldfastError("unavailable", "the address did not answer with a file", {
    at: url.href.slice(0, 300),
    got,
    fix: "check the address and the network",
    cause,
  });
}

/** The name of this machine in a registry. */
function platformName(): string {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const machine = process.arch === "arm64" ? "aarch64" : process.arch === "x64" ? "x86_64" : process.arch;
  return `${system}-${machine}`;
}

/** @throws UsageError when nobody can be asked or the answer is no. */
async function confirm(io: Io, id: string): Promise<void> {
  if (io.stdin.isTTY !== true)
    throw new UsageError(`"${id}" is not installed: nobody can be asked here`, {
      expected: "--yes, or a terminal to ask on",
      fix: "read what is shown, and repeat the command with --yes",
    });
  io.write("Install it and pin this content? [y/N] ");
  const asking = createInterface({ input: io.stdin, terminal: false });
  try {
    for await (const line of asking) {
      if (/^y(es)?$/i.test(line.trim())) return;
      break;
    }
  } finally {
    asking.close();
  }
  throw new UsageError(`"${id}" is not installed`, { fix: "repeat the command, and answer y" });
}
