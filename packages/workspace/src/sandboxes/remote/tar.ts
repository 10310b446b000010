// Tar archives of small sets of files: `packTar` and `unpackTar`. A remote sandbox gets and returns files in
// this form.
//
//   - Only regular files are packed and unpacked. Links, devices and folders of an archive are left out.
//   - An archive comes from a sandbox that may be hostile: sizes are checked against its length, and nothing
//     is written here.

export interface TarFile {
  /** With `/`, as the archive names it. */
  readonly path: string;
  readonly bytes: Buffer;
  /** Permission bits. */
  readonly mode: number;
}

const BLOCK = 512;
const NAME_BYTES = 100;

export function packTar(files: readonly TarFile[]): Buffer {
  const parts: Buffer[] = [];
  const add = (path: string, type: string, bytes: Buffer, mode: number): void => {
    parts.push(header(path, type, bytes.length, mode), bytes, Buffer.alloc(padding(bytes.length)));
  };
  for (const { path, bytes, mode } of files) {
    // The next entry has the name that this one holds.
    if (Buffer.byteLength(path) > NAME_BYTES) add("././@LongLink", "L", Buffer.from(`${path}\0`), 0o644);
    add(path, "0", bytes, mode);
  }
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

function header(path: string, type: string, size: number, mode: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  Buffer.from(path).copy(block, 0, 0, NAME_BYTES);
  block.write(
    `${octal(mode, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0${octal(size, 11)}\0${octal(0, 11)}\0`,
    100,
  );
  block.write("        ", 148); // The checksum counts itself as spaces.
  block.write(type, 156);
  block.write("ustar  \0", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)}\0 `, 148);
  return block;
}

function octal(value: number, width: number): string {
  return value.toString(8).padStart(width, "0");
}

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

/** @throws Error for an archive that is damaged. */
export function unpackTar(archive: Buffer): readonly TarFile[] {
  const files: TarFile[] = [];
  let longName: string | undefined;
  for (let at = 0; at + BLOCK <= archive.length;) {
    const block = archive.subarray(at, at + BLOCK);
    if (block.every((byte) => byte === 0)) break;
    const size = sizeOf(block);
    const end = at + BLOCK + size;
    // The archive comes from a sandbox that may be hostile.
    if (end > archive.length) throw new Error("the archive of the sandbox is cut off");
    const bytes = archive.subarray(at + BLOCK, end);
    const type = String.fromCharCode(block[156] ?? 0);
    if (type === "L") longName = textOf(bytes);
    else if (type === "x") longName = paxPath(bytes) ?? longName;
    else {
      // Links, devices and folders of an archive are left out.
      if (type === "0" || type === "\0")
        files.push({ path: longName ?? nameOf(block), bytes, mode: modeOf(block) });
      longName = undefined;
    }
    at = end + padding(size);
  }
  return files;
}

function sizeOf(block: Buffer): number {
  const size = Number.parseInt(textOf(block.subarray(124, 136)), 8);
  if (Number.isSafeInteger(size) && size >= 0) return size;
  throw new Error("the archive of the sandbox is damaged");
}

function modeOf(block: Buffer): number {
  return Number.parseInt(textOf(block.subarray(100, 108)), 8) & 0o777;
}

function nameOf(block: Buffer): string {
  const prefix = textOf(block.subarray(345, 500));
  const isPosix = block.subarray(257, 263).toString("latin1") === "ustar\0";
  const name = textOf(block.subarray(0, NAME_BYTES));
  return isPosix && prefix !== "" ? `${prefix}/${name}` : name;
}

function paxPath(bytes: Buffer): string | undefined {
  return /(?:^|\n)\d+ path=([^\n]*)\n/.exec(bytes.toString("utf8"))?.[1];
}

function textOf(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.subarray(0, end === -1 ? bytes.length : end).toString("utf8");
}
