// Publishes packed packages to a registry (`publishAll`), by npm's own commands. npm's settings then say which
// certificate, proxy and account count.
//
//   - A package is published after the packages that it needs. A user who installs in the middle of a release
//     gets whole versions only.
//   - Every package is compared before the first one is published. A version with other content cannot be
//     replaced, and half of a release would be worse than none.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

export interface PublishedManifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly private?: boolean;
  readonly engines?: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, unknown>>;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** A package as it will be published. */
export interface Packed {
  /** The folder that was packed. */
  readonly folder: string;
  readonly manifest: PublishedManifest;
  /** The tarball. */
  readonly file: string;
}

interface Publishing {
  readonly env: NodeJS.ProcessEnv;
  say(text: string): void;
}

/**
 * @param staging has a folder for each package.
 * @param target has their tarballs.
 * @returns the packages, each after those that it needs.
 */
export function packedIn(staging: string, target: string): readonly Packed[] {
  const packages = readdirSync(staging).map((name) => {
    const folder = join(staging, name);
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as PublishedManifest;
    const tarball = `${manifest.name.replace("@", "").replace("/", "-")}-${manifest.version}.tgz`;
    const file = join(target, tarball);
    if (!existsSync(file)) throw new Error(`${manifest.name} is not packed: there is no ${file}`);
    return { folder, manifest, file };
  });
  return inOrder(packages);
}

function inOrder(packages: readonly Packed[]): readonly Packed[] {
  const ordered: Packed[] = [];
  const visit = (one: Packed, above: readonly string[]): void => {
    const { name, dependencies = {} } = one.manifest;
    if (above.includes(name)) throw new Error(`packages need each other: ${[...above, name].join(" → ")}`);
    if (ordered.includes(one)) return;
    for (const other of packages) if (other.manifest.name in dependencies) visit(other, [...above, name]);
    ordered.push(one);
  };
  for (const one of packages) visit(one, []);
  return ordered;
}

/** @throws Error that names the package, and says what to do. */
export function publishAll(packages: readonly Packed[], registry: string, publishing: Publishing): void {
  const { env, say } = publishing;
  const missing = packages.filter((one) => {
    const isThere = isPublished(one, registry, env);
    if (isThere) say(`skipped: ${idOf(one)} is there with the same content`);
    return !isThere;
  });
  // Only there can npm sign the statement that this build made the packages.
  const provenance = env["ACTIONS_ID_TOKEN_REQUEST_URL"] === undefined ? [] : ["--provenance"];
  for (const one of missing) {
    const args = ["publish", one.file, "--access", "public", ...provenance, ...at(registry)];
    const { status, stderr } = npm(args, env);
    // Its answer may have been lost after the registry had taken the package.
    if (status !== 0 && !isPublished(one, registry, env))
      throw new Error(
        `${idOf(one)} was not published: ${stderr.trim()}\n  fix: run the same again; packages that are there are skipped`,
      );
    say(`published: ${idOf(one)}`);
  }
}

/** @throws Error when the registry has other content under this version, or does not answer. */
function isPublished(one: Packed, registry: string, env: NodeJS.ProcessEnv): boolean {
  const id = idOf(one);
  const { status, stdout, stderr } = npm(
    ["view", id, "dist", "--json", "--prefer-online", ...at(registry)],
    env,
  );
  if (status !== 0 && !/\bE404\b/.test(stdout + stderr))
    throw new Error(
      `${registry} does not say whether it has ${id}: ${stderr.trim()}\n  fix: run the same again`,
    );
  if (status !== 0 || stdout.trim() === "") return false;
  const { integrity } = JSON.parse(stdout) as { readonly integrity?: string };
  const own = readFileSync(one.file);
  if (integrity === `sha512-${createHash("sha512").update(own).digest("base64")}`) return true;
  // Another version of Node compresses the same files to other bytes.
  if (gunzipSync(own).equals(gunzipSync(fetched(id, registry, env)))) return true;
  throw new Error(
    `${registry} has ${id} with other content, and a version cannot be replaced\n  fix: give all packages another version`,
  );
}

function fetched(id: string, registry: string, env: NodeJS.ProcessEnv): Buffer {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-published-"));
  try {
    const { status, stderr } = npm(["pack", id, "--pack-destination", folder, ...at(registry)], env);
    const [name] = readdirSync(folder);
    if (status !== 0 || name === undefined) throw new Error(`${id} cannot be fetched: ${stderr.trim()}`);
    return readFileSync(join(folder, name));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function npm(args: readonly string[], env: NodeJS.ProcessEnv) {
  const { status, stdout, stderr, error } = spawnSync("npm", [...args, "--loglevel=error"], {
    encoding: "utf8",
    env,
    cwd: tmpdir(), // Not in a workspace, which npm would take the names from.
  });
  return { status, stdout, stderr: error?.message ?? stderr };
}

function at(registry: string): readonly string[] {
  return ["--registry", registry];
}

function idOf({ manifest }: Packed): string {
  return `${manifest.name}@${manifest.version}`;
}
