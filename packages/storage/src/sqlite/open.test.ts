// Files that are no database of ours, or that we may not open now. Each refusal names the file, the problem
// and a way out, and leaves the file as it was, to the byte (D2).

import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { exitCodeOf, HoldfastError, type CreateSession, type ErrorCode } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import { assertSqliteVersion } from "./file/driver.ts";
import { openSqliteReader, ownSqliteStorage } from "./index.ts";
import { APPLICATION_ID, SCHEMA_VERSION } from "./file/migrations.ts";
import { newFolder } from "./testing/folder.ts";

const SESSIONS = 40;
/** Offset of `user_version` in the header of a SQLite file. */
const USER_VERSION_AT = 60;

/** A sound database with a session in it, closed. */
async function newDatabase(folder = newFolder()): Promise<string> {
  const path = `${folder}/test.db`;
  const storage = await ownSqliteStorage({ path });
  await storage.commit(
    Array.from({ length: SESSIONS }, (_, i) => creating(`ses-${i}`)),
    1,
  );
  await storage.close();
  return path;
}

function creating(sessionId: string): CreateSession {
  const input = JSON.stringify(`${sessionId}:${"x".repeat(2_000)}`);
  return {
    type: "create_session",
    sessionId,
    agent: { name: "agent", version: "1" },
    input,
    seed: 1,
    flags: 0,
    format: 1,
  };
}

/** A sound database with one session, whose conversation is these texts, closed. */
async function newDatabaseWithEntries(texts: readonly string[]): Promise<string> {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  const entries = texts.map((text, i) => ({
    id: i,
    index: i,
    ...(i === 0 ? {} : { parent: i - 1 }),
    role: "user",
    turn: 0,
    content: JSON.stringify(text),
  }));
  const records = entries.map(({ id, role, content }) => ({
    type: "append_entry" as const,
    seq: id,
    id,
    hash: "",
    role,
    payload: content,
  }));
  const [created] = await storage.commit(
    [{ ...creating("ses-1"), claimFor: { owner: "me", leaseMs: Infinity }, first: { records, entries } }],
    1,
  );
  expect(created).toMatchObject({ status: "created" });
  await storage.close();
  return path;
}

/** The errors that opening a path throws, as its owner and as a reader. */
async function refusals(path: string): Promise<HoldfastError[]> {
  const asOwner: unknown = await ownSqliteStorage({ path }).catch((error: unknown) => error);
  const asReader: unknown = await (async () => openSqliteReader({ path }))().catch((error: unknown) => error);
  return [asOwner, asReader].map((error) => {
    expect(error).toSatisfy((thrown) => HoldfastError.is(thrown));
    return error as HoldfastError;
  });
}

async function expectRefused(path: string, code: ErrorCode, exitCode: number): Promise<void> {
  for (const error of await refusals(path)) {
    expect(error).toMatchObject({ code, fix: expect.any(String) });
    expect(error.message).toContain(path);
    expect(exitCodeOf(error)).toBe(exitCode);
  }
}

describe("files that are no database of ours", () => {
  const PAGE = 4_096;
  const damages: { readonly [what: string]: (bytes: Buffer) => Buffer } = {
    text: () => Buffer.from("this is a letter to my aunt\n".repeat(500)),
    "a database whose header is zeroed": (bytes) => bytes.fill(0, 0, 100),
    "a database whose first page is garbage": (bytes) => bytes.fill(0xa5, 0, PAGE),
    "a database that was cut in the middle of a page": (bytes) => bytes.subarray(0, PAGE * 2 + 100),
    "a database of which 50 bytes are left": (bytes) => bytes.subarray(0, 50),
  };
  for (const [what, damage] of Object.entries(damages)) {
    test(`D2: ${what} is refused and left as it was`, async () => {
      const path = await newDatabase();
      writeFileSync(path, damage(readFileSync(path)));
      const before = readFileSync(path);
      await expectRefused(path, "corrupt_record", 10);
      expect(readFileSync(path)).toEqual(before);
    });
  }

  test("D2: an empty file is refused: no database of ours was ever empty", async () => {
    const path = `${newFolder()}/test.db`;
    writeFileSync(path, "");
    await expectRefused(path, "corrupt_record", 10);
    expect(statSync(path).size).toBe(0);
    expect(readdirSync(dirname(path))).toEqual(["test.db"]);
  });

  test("a database of another program is refused and left as it was", async () => {
    const path = `${newFolder()}/test.db`;
    const other = new DatabaseSync(path);
    other.exec("CREATE TABLE letter (text TEXT)");
    other.close();
    const before = readFileSync(path);
    await expectRefused(path, "corrupt_record", 10);
    expect(readFileSync(path)).toEqual(before);
    expect(readdirSync(dirname(path))).toEqual(["test.db"]);
  });

  test("D2: a database of a newer version is refused, naming both versions, and left as it was", async () => {
    const path = await newDatabase();
    const newer = new DatabaseSync(path);
    newer.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
    newer.close();
    const before = readFileSync(path);
    for (const error of await refusals(path)) {
      expect(error.code).toBe("version_unsupported");
      expect(exitCodeOf(error)).toBe(11);
      expect(error.got).toContain(String(SCHEMA_VERSION + 1));
      expect(error.expected).toContain(String(SCHEMA_VERSION));
    }
    expect(readFileSync(path)).toEqual(before);
  });

  // As after a newer Holdfast migrated the file and was killed: the new version is in the log alone.
  test("D2: a database whose log alone is of a newer version is refused; neither of its files changes", async () => {
    const made = await newDatabase();
    const newer = new DatabaseSync(made);
    newer.exec(`PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
    const path = `${newFolder()}/test.db`;
    for (const suffix of ["", "-wal"]) copyFileSync(made + suffix, path + suffix);
    newer.close();
    const before = readFileSync(path);
    const log = readFileSync(`${path}-wal`);
    expect(before.readUInt32BE(USER_VERSION_AT)).toBe(SCHEMA_VERSION);
    for (const error of await refusals(path)) {
      expect(error).toMatchObject({
        code: "version_unsupported",
        at: path,
        got: `schema version ${SCHEMA_VERSION + 1}`,
        expected: `schema version ${SCHEMA_VERSION} or older`,
        fix: expect.stringContaining("newer Holdfast"),
      });
    }
    expect(readFileSync(path)).toEqual(before);
    expect(readFileSync(`${path}-wal`)).toEqual(log);
  });

  test("D2: whichever page is damaged, it is named at the start or found by the check", async () => {
    const path = await newDatabase();
    const sound = readFileSync(path);
    let atStart = 0;
    let atFirstTouch = 0;
    for (let page = 1; page * PAGE < sound.length; page++) {
      writeFileSync(path, Buffer.from(sound).fill(0xa5, page * PAGE, (page + 1) * PAGE));
      const storage = await ownSqliteStorage({ path }).catch((error: HoldfastError) => error);
      if (storage instanceof Error) {
        expect(storage).toMatchObject({ code: "corrupt_record", message: expect.stringContaining(path) });
        atStart++;
        continue;
      }
      expect((await storage.verify()).problemCount, `page ${page}`).toBeGreaterThan(0);
      for (let i = 0; i < SESSIONS; i++) {
        const read = await storage.load(`ses-${i}`).catch((error: HoldfastError) => error);
        if (!(read instanceof Error)) continue;
        expect(read).toMatchObject({ code: "corrupt_record", message: expect.stringContaining(path) });
        atFirstTouch++;
        break;
      }
      await storage.close();
    }
    expect(atStart).toBeGreaterThan(0);
    expect(atFirstTouch).toBeGreaterThan(0);
  });

  // SQLite checks its pages, not the bytes in them: `quick_check` passes this.
  test("D2: a single flipped bit of a payload is found, naming file, table and row", async () => {
    const path = await newDatabase();
    const bytes = readFileSync(path);
    // In every place: pages keep copies of rows that moved to other pages. The title begins as the input does.
    for (let at = bytes.indexOf('"ses-7:'); at !== -1; at = bytes.indexOf('"ses-7:', at + 1))
      if (bytes[at - 1] !== ":".charCodeAt(0)) bytes[at + 100]! ^= 1;
    writeFileSync(path, bytes);
    const storage = await ownSqliteStorage({ path });
    const { problems } = await storage.verify();
    expect(problems).toEqual([
      { table: "session", message: expect.stringContaining(`${path}, table session, row ses-7 (8)`) },
    ]);
    await expect(storage.load("ses-7")).rejects.toMatchObject({
      code: "corrupt_record",
      message: expect.stringContaining(path),
    });

    // In a group its neighbours are answered all the same.
    const [sent, created] = await storage.commit(
      [
        { type: "send_signal", sessionId: "ses-7", signalId: "sig-1", name: "go", payload: undefined },
        creating("ses-new"),
      ],
      2,
    );
    expect(sent).toEqual({ status: "invalid", reason: expect.stringContaining("table session") });
    expect(created).toEqual({ status: "created" });
    await storage.close();
  });
});

// The entry's row alone: the journal beside it and the session's row are sound.
describe("D2: an entry that is not what was written is named, and its neighbours are read", () => {
  const damages: { readonly [what: string]: (row: { content: string; checksum: number }) => void } = {
    "a flipped bit of its content": (row) => {
      row.content = row.content.replace("paid 1 euro", "paid 0 euro");
    },
    "a flipped bit of its checksum": (row) => {
      row.checksum += row.checksum % 2 === 0 ? 1 : -1;
    },
  };
  test.each(Object.entries(damages))("%s", async (_, damage) => {
    const path = await newDatabaseWithEntries(["first", "paid 1 euro", "last"]);
    const other = new DatabaseSync(path);
    const row = other.prepare("SELECT content, checksum FROM entry WHERE seq = 1").get() as {
      content: string;
      checksum: number;
    };
    const sound = { ...row };
    damage(row);
    expect(row).not.toEqual(sound);
    other.prepare("UPDATE entry SET content = ?, checksum = ? WHERE seq = 1").run(row.content, row.checksum);
    other.close();

    const storage = await ownSqliteStorage({ path });
    const named = `${path}, table entry, row 1/1`;
    const refused = { code: "corrupt_record", message: expect.stringContaining(named) };
    await expect(storage.reader.entries("ses-1", 0, 10)).rejects.toMatchObject(refused);
    await expect(storage.conversation("ses-1", 2)).rejects.toMatchObject(refused);
    expect((await storage.verify()).problems).toEqual([
      { table: "entry", message: expect.stringContaining(named) },
    ]);
    expect(await storage.reader.entries("ses-1", 0, 1)).toMatchObject([{ content: '"first"' }]);
    expect(await storage.reader.entries("ses-1", 2, 1)).toMatchObject([{ content: '"last"' }]);
    expect(await storage.load("ses-1")).toBeDefined();
    await storage.close();
  });
});

describe("paths", () => {
  test("a missing folder is made for this user only, and so is every file in it", async () => {
    const umask = process.umask(0);
    try {
      const folder = `${newFolder()}/a/b`;
      const storage = await ownSqliteStorage({ path: `${folder}/test.db` });
      expect(statSync(folder).mode & 0o777).toBe(0o700);
      expect(statSync(dirname(folder)).mode & 0o777).toBe(0o700);
      const modes = readdirSync(folder).map((name) => [
        name,
        (statSync(`${folder}/${name}`).mode & 0o777).toString(8),
      ]);
      expect(Object.fromEntries(modes)).toEqual({
        "test.db": "600",
        "test.db-lock": "600",
        "test.db-owner": "600",
        "test.db-shm": "600",
        "test.db-socket": "600",
        "test.db-wal": "600",
      });
      await storage.close();
      expect(readdirSync(folder)).toEqual(["test.db", "test.db-lock"]);
    } finally {
      process.umask(umask);
    }
  });

  test("a folder, and a path below a file, are refused", async () => {
    const folder = newFolder();
    mkdirSync(`${folder}/folder`);
    await expectRefused(`${folder}/folder`, "storage_unavailable", 10);
    writeFileSync(`${folder}/file`, "x");
    await expectRefused(`${folder}/file/test.db`, "storage_unavailable", 10);
    expect(readdirSync(folder).sort()).toEqual(["file", "folder"]);
  });

  test("something else in the socket's place is reported, and left alone", async () => {
    const path = await newDatabase();
    mkdirSync(`${path}-socket/sub`, { recursive: true });
    for (let i = 0; i < 2; i++) {
      await expect(ownSqliteStorage({ path })).rejects.toMatchObject({
        code: "storage_unavailable",
        at: `${path}-socket`,
      });
    }
    expect(readdirSync(`${path}-socket`)).toEqual(["sub"]);
    rmSync(`${path}-socket`, { recursive: true });
    await (await ownSqliteStorage({ path })).close();
  });

  test("a missing file is not made when it must exist", async () => {
    const path = `${newFolder()}/sub/test.db`;
    await expect(ownSqliteStorage({ path, create: false })).rejects.toMatchObject({
      code: "file_not_found",
      at: path,
    });
    expect(() => openSqliteReader({ path })).toThrow(expect.objectContaining({ code: "file_not_found" }));
    expect(readdirSync(dirname(dirname(path)))).toEqual([]);
  });

  // Two locks for one file would be two owners.
  test("O1: two names of one file meet at one lock", async () => {
    const path = await newDatabase();
    const other = `${newFolder()}/link.db`;
    symlinkSync(path, other);
    const storage = await ownSqliteStorage({ path: other });
    await expect(ownSqliteStorage({ path })).rejects.toMatchObject({
      code: "locked",
      message: expect.stringContaining(String(process.pid)),
    });
    await storage.close();
  });

  test("a damaged lock is named, with what to do about it", async () => {
    const path = await newDatabase();
    writeFileSync(`${path}-lock`, "x".repeat(5_000));
    await expect(ownSqliteStorage({ path })).rejects.toMatchObject({
      code: "corrupt_record",
      at: `${path}-lock`,
    });
  });

  test("a file that was refused is usable again once it is repaired", async () => {
    const path = await newDatabase();
    const bytes = readFileSync(path);
    truncateSync(path, 10_000);
    await expectRefused(path, "corrupt_record", 10);
    writeFileSync(path, bytes);
    const storage = await ownSqliteStorage({ path });
    expect(await storage.reader.session("ses-7")).toBeDefined();
    await storage.close();
  });
});

test("a SQLite that can corrupt databases is refused, with what to use instead", () => {
  expect(() => assertSqliteVersion("3.51.2")).toThrow(
    expect.objectContaining({ code: "version_unsupported", got: expect.stringContaining("3.51.2") }),
  );
  expect(() => assertSqliteVersion("3.51.3")).not.toThrow();
  expect(() => assertSqliteVersion("3.60.0")).not.toThrow();
  expect(() => assertSqliteVersion("4.0.0")).not.toThrow();
});

test("the file records its application and its version", async () => {
  const database = new DatabaseSync(await newDatabase());
  expect(database.prepare("PRAGMA application_id").get()).toEqual({ application_id: APPLICATION_ID });
  expect(database.prepare("PRAGMA user_version").get()).toEqual({ user_version: SCHEMA_VERSION });
  database.close();
});
