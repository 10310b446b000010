// `unpackArchive`: the files of the archive of an agent. Pure.
//
//   - The archive was made by others. A path that leaves the folder, a link and a device are refused, and
//     size and number are limited. A number that is not octal is refused, because a negative size would lead
//     back to where the reading began.
//   - Supported are `.tar.gz`, `.tgz` and a program without an archive. Every other kind is refused by its
//     name.

import { gunzipSync } from "node:zlib";
import { HoldfastError, MIB } from "@holdfast/core";

export interface ArchivedFile {
  /** From the folder of the agent, with `/`. */
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly isExecutable: boolean;
}

const LIMITS = { entries: 20_000, bytes: 1024 * MIB, pathChars: 1_000 } as const;
const BLOCK = 512;
const OTHER_KINDS = /\.(zip|tar\.bz2|tbz2|tar\.xz|txz|7z|dmg|pkg|deb|rpm|msi|appimage)$/i;

/**
 * @param source the address of the archive, whose ending tells its kind
 * @param cmd the path of the program in it
 * @throws HoldfastError `agent_invalid`, `config_invalid`
 */
export function unpackArchive(source: string, bytes: Uint8Array, cmd: string): readonly ArchivedFile[] {
  const { pathname } = new URL(source);
  const program = cleanPath(cmd, source);
  const other = OTHER_KINDS.exec(pathname)?.[0];
  if (other !== undefined)
    throw new HoldfastError("agent_invalid", `archives of the kind ${other} are not supported`, {
      at: source,
      expected: ".tar.gz, .tgz, or a program without an archive",
      fix: "install the program yourself, and run it by `customAgent` (docs/external-agents.md)",
    });
  const files = /\.(tar\.gz|tgz)$/i.test(pathname)
    ? readTar(gunzip(bytes, source), source)
    : [{ path: program, bytes, isExecutable: true }];
  if (!files.some(({ path }) => path === program)) throw damaged(source, `it has no program "${program}"`);
  return files.map((file) => (file.path === program ? { ...file, isExecutable: true } : file));
}

function gunzip(bytes: Uint8Array, source: string): Uint8Array {
  try {
    return gunzipSync(bytes, { maxOutputLength: LIMITS.bytes });
  } catch (error) {
    throw damaged(source, `it cannot be unpacked (${(error as Error).message})`);
  }
}

function readTar(tar: Uint8Array, source: string): readonly ArchivedFile[] {
  const files: ArchivedFile[] = [];
  let longName: string | undefined;
  let entries = 0;
  for (let at = 0; at + BLOCK <= tar.length;) {
    const header = tar.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) break;
    if (++entries > LIMITS.entries)
      throw damaged(source, `it has more than ${LIMITS.entries} files, folders and headers`);
    const size = octal(header, 124, 12, source);
    const body = tar.subarray(at + BLOCK, at + BLOCK + size);
    if (body.length < size) throw damaged(source, "it ends in the middle of a file");
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    const type = String.fromCharCode(header[156] ?? 0);
    const prefix = text(header, 345, 155);
    const name = longName ?? [prefix, text(header, 0, 100)].filter((part) => part !== "").join("/");
    longName = undefined;
    if (type === "L") longName = text(body, 0, size);
    else if (type === "x") longName = paxPath(body);
    else if (type === "0" || type === "\0") {
      const isExecutable = (octal(header, 100, 8, source) & 0o111) !== 0;
      files.push({ path: cleanPath(name, source), bytes: body, isExecutable });
    } else if (type !== "5" && type !== "g")
      throw damaged(source, `"${name.slice(0, 200)}" is neither a file nor a folder`);
  }
  return files;
}

function cleanPath(path: string, source: string): string {
  const clean = path.replace(/^(\.\/)+/, "");
  const parts = clean.split("/");
  const leaves = parts.some((part) => part === "" || part === "." || part === "..");
  if (leaves || clean.length > LIMITS.pathChars || /[\0\\]/.test(clean))
    throw damaged(source, `the path "${path.slice(0, 200)}" is refused`);
  return clean;
}

function text(bytes: Uint8Array, from: number, length: number): string {
  const part = bytes.subarray(from, from + length);
  const end = part.indexOf(0);
  return new TextDecoder().decode(end < 0 ? part : part.subarray(0, end));
}

function octal(bytes: Uint8Array, from: number, length: number, source: string): number {
  const digits = text(bytes, from, length).trim();
  if (!/^[0-7]*$/.test(digits)) throw damaged(source, "a header of it has a number that is not octal");
  return Number.parseInt(digits || "0", 8);
}

/** The path in the fields of an extended header: `LENGTH path=VALUE`. */
function paxPath(body: Uint8Array): string | undefined {
  return /^\d+ path=(?<path>.*)$/m.exec(new TextDecoder().decode(body))?.groups?.["path"];
}

function damaged(source: string, why: string): HoldfastError {
  return new HoldfastError("config_invalid", `the archive cannot be used: ${why}`, {
    at: source,
    expected: "an archive of files and folders below one folder, with the program",
    fix: "name a registry with a right archive",
  });
}
