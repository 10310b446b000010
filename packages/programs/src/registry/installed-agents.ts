// `InstalledAgents`: agents that the user installed from a registry. Their programs lie in the user's data
// folder.
//
//   - The first installation pins the content by its hash. The same version with another content is refused
//     later.
//   - The content is hashed before every turn of a session. A changed one is not started.
//   - An installation is written beside its place and renamed, so that it is there as a whole or not at all.

import { createHash, randomBytes } from "node:crypto";
import {
  createReadStream,
  existsSync,
  lstatSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { HoldfastError } from "@holdfast/core";
import { createPrivate, makePrivateFolder, readUserFile } from "@holdfast/system";
import { z } from "zod";

import { ACP_AGENTS, ACP_VARIABLES, type AcpAgentFacts } from "../adapters/acp/acp-quirks.ts";

const FILES = "files";
const RECORD = "install.json";

const recordSchema = z.object({
  id: z.string(),
  name: z.string(),
  version: z.string(),
  kind: z.enum(["binary", "npx"]),
  source: z.string(),
  /** SHA-256 of all files. */
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  /** The program, or the script that Node runs, below the folder of the files. */
  program: z.string(),
  args: z.array(z.string()),
  env: z.record(z.string(), z.string()),
  /** Names of variables that the program gets of the user's environment, and whose values are keys. */
  keys: z.array(z.string()),
});

export type InstalledAgent = z.output<typeof recordSchema>;

export class InstalledAgents {
  readonly #folder: string;

  /** @param folder need not exist. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  names(): readonly string[] {
    if (!existsSync(this.#folder)) return [];
    return readdirSync(this.#folder)
      .filter((name) => !name.startsWith(".") && existsSync(join(this.#folder, name, RECORD)))
      .toSorted();
  }

  /** @throws HoldfastError `config_invalid` for a damaged record. */
  get(id: string): InstalledAgent | undefined {
    if (!/^[a-z][a-z0-9-]*$/.test(id)) return undefined;
    return readUserFile(join(this.#folder, id, RECORD), {
      what: `the installed agent "${id}"`,
      expected: "the record that `holdfast agents install` wrote",
      fix: reinstallFix(id),
      schema: recordSchema,
    });
  }

  /** A folder for the files of an installation to come; `keep` or `drop` takes it. */
  draft(): string {
    const draft = join(this.#folder, `.new-${randomBytes(8).toString("hex")}`);
    makePrivateFolder(join(draft, FILES));
    return draft;
  }

  filesOf(draft: string): string {
    return join(draft, FILES);
  }

  drop(draft: string): void {
    rmSync(draft, { recursive: true, force: true });
  }

  /** @throws HoldfastError `conflict` */
  keep(draft: string, record: InstalledAgent): void {
    this.checkPin(record);
    createPrivate(join(draft, RECORD), `${JSON.stringify(record, undefined, 2)}\n`);
    this.remove(record.id);
    renameSync(draft, join(this.#folder, record.id));
  }

  /** @throws HoldfastError `conflict` */
  checkPin({ id, version, hash, source }: InstalledAgent): void {
    const pinned = this.get(id);
    if (pinned === undefined || pinned.version !== version || pinned.hash === hash) return;
    throw new HoldfastError(
      "conflict",
      `the agent "${id}" ${version} has another content than the one that was pinned`,
      {
        at: source,
        got: `sha256:${hash}`,
        expected: `sha256:${pinned.hash}`,
        fix: `ask the author of the agent why; \`holdfast agents uninstall ${id}\` forgets the pinned hash`,
      },
    );
  }

  /** @returns whether it was there. */
  remove(id: string): boolean {
    if (!this.names().includes(id)) return false;
    rmSync(join(this.#folder, id), { recursive: true, force: true });
    return true;
  }

  /** The facts for the adapter. */
  facts({ id, name, version, kind, hash, program, args, env, keys }: InstalledAgent): AcpAgentFacts {
    const files = join(this.#folder, id, FILES);
    const known = ACP_AGENTS.find((one) => one.name === id);
    const path = join(files, program);
    return {
      ...known,
      name: id,
      program: {
        name: kind === "npx" ? process.execPath : path,
        title: name,
        version,
        install: `holdfast agents install ${id}`,
        check: () => checkContent(id, files, hash),
      },
      args: kind === "npx" ? [path, ...args] : args,
      variables: [...new Set([...(known?.variables ?? ACP_VARIABLES), ...keys])],
      keys: [...new Set([...(known?.keys ?? []), ...keys])],
      settings: { ...known?.settings, ...env },
      resumes: known?.resumes ?? true,
      reportsUsage: known?.reportsUsage ?? false,
      reads: [files],
      profileFields: known?.profileFields ?? ["folders"],
    };
  }
}

/** @throws HoldfastError `policy_denied` */
async function checkContent(id: string, files: string, pinned: string): Promise<void> {
  const hash = await hashOfFolder(files).catch((error: unknown) => `unreadable: ${(error as Error).message}`);
  if (hash === pinned) return;
  throw new HoldfastError(
    "policy_denied",
    `the program of the agent "${id}" was changed after it was installed`,
    {
      at: files,
      got: `sha256:${hash}`,
      expected: `sha256:${pinned}`,
      fix: reinstallFix(id),
    },
  );
}

function reinstallFix(id: string): string {
  return `install it again: \`holdfast agents uninstall ${id}\`, then \`holdfast agents install ${id} --registry FILE|URL\``;
}

/** SHA-256 over the paths, bytes, executable bits and links of all files below a folder. */
export async function hashOfFolder(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for (const path of pathsIn(folder, "")) {
    const at = join(folder, path);
    const stats = lstatSync(at);
    const own = createHash("sha256");
    if (stats.isSymbolicLink()) own.update(readlinkSync(at));
    else await pipeline(createReadStream(at), own, { end: false });
    const mode = stats.isSymbolicLink() ? "link" : (stats.mode & 0o100) === 0 ? "file" : "program";
    hash.update(JSON.stringify([path, mode, own.digest("hex")]));
  }
  return hash.digest("hex");
}

function pathsIn(folder: string, below: string): readonly string[] {
  return readdirSync(join(folder, below), { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((one) => {
      const path = below === "" ? one.name : `${below}/${one.name}`;
      return one.isDirectory() ? pathsIn(folder, path) : [path];
    });
}
