// The statements of a release about itself (`writeStatements`): the bill of its materials, and from which
// commit which Node built it.
//
// The statement of provenance is not signed. Where npm can sign one, `publishAll` lets it.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { MIB } from "@holdfast/core";
import type { Packed } from "./publish.ts";

/** @returns the files, relative to the checkout. */
export function writeStatements(
  root: string,
  packages: readonly Packed[],
  env: NodeJS.ProcessEnv,
): readonly string[] {
  const folder = join(root, "dist", "release");
  mkdirSync(folder, { recursive: true });
  const files = {
    "sbom.cdx.json": billOfMaterials(folder, packages, env),
    "provenance.intoto.json": provenance(root, packages),
  };
  return Object.entries(files).map(([name, content]) => {
    writeFileSync(join(folder, name), `${JSON.stringify(content, null, 2)}\n`);
    return relative(root, join(folder, name));
  });
}

/**
 * CycloneDX, of everything that an installation of the packages brings. npm makes the bill of a project that has
 * the packages and nothing else. For a workspace it leaves dependencies out that development has, too.
 */
function billOfMaterials(folder: string, packages: readonly Packed[], env: NodeJS.ProcessEnv): unknown {
  const project = join(folder, "installation");
  mkdirSync(project, { recursive: true });
  const dependencies = packages.map(({ file, manifest }) => [
    manifest.name,
    `file:${relative(project, file)}`,
  ]);
  const { version } = packages[0]!.manifest;
  const manifest = { name: "holdfast-installation", version, dependencies: Object.fromEntries(dependencies) };
  writeFileSync(join(project, "package.json"), JSON.stringify(manifest));
  rmSync(join(project, "package-lock.json"), { force: true });
  const npm = (...args: readonly string[]): string => {
    const all = [...args, "--package-lock-only", "--prefer-offline", "--no-audit", "--loglevel=error"];
    const options = { cwd: project, env, encoding: "utf8", maxBuffer: 64 * MIB } as const;
    const { status, stdout, stderr } = spawnSync("npm", all, options);
    if (status !== 0) throw new Error(`npm ${args[0]} ended with ${status}: ${stderr}`);
    return stdout;
  };
  npm("install", "--ignore-scripts", "--legacy-peer-deps");
  const bill = JSON.parse(npm("sbom", "--sbom-format", "cyclonedx", "--omit", "dev")) as {
    metadata: { component: { name: string } };
  };
  bill.metadata.component.name = "holdfast"; // npm writes the name of the folder.
  return bill;
}

/** An in-toto statement with a predicate of SLSA 1. */
function provenance(root: string, packages: readonly Packed[]): unknown {
  const git = (...args: readonly string[]): string =>
    spawnSync("git", args, { cwd: root, encoding: "utf8" }).stdout.trim();
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: packages.map(({ file }) => ({
      name: basename(file),
      digest: { sha512: createHash("sha512").update(readFileSync(file)).digest("hex") },
    })),
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "https://docs.npmjs.com/cli/commands/npm-pack",
        externalParameters: { command: "npm run release" },
        internalParameters: { isModified: git("status", "--porcelain") !== "" },
        resolvedDependencies: [
          { name: "source", digest: { gitCommit: git("rev-parse", "HEAD") } },
          {
            name: "package-lock.json",
            digest: {
              sha256: createHash("sha256")
                .update(readFileSync(join(root, "package-lock.json")))
                .digest("hex"),
            },
          },
        ],
      },
      runDetails: {
        builder: { id: `node ${process.versions.node} ${process.platform}-${process.arch}` },
        metadata: { finishedOn: new Date().toISOString() },
      },
    },
  };
}
