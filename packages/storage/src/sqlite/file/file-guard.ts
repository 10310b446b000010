// FileGuard: notices that an open database is not what its path leads to any more.
//
// A file that was removed, renamed or replaced can still be written to through an open descriptor. Those
// writes are lost when the process ends. The write-ahead log is such a file as well. A folder that was
// renamed and a disk that was unmounted count as removals: nobody would find the database again.
//
//   - `checkCommit` runs between the commit of a transaction and its answer, and looks at the files at most
//     once in 10 ms. The copy that is saved at a loss has all commits in between. A look at every
//     commit took a fifth of the CPU time of one that is not synced. The index of the log is checked by a
//     timer alone, as losing it loses no data.
//   - No commit calls `stat` on the log where that can be avoided. A kernel with multigrain timestamps (Linux
//     6.13) stamps the next write to a file after a `stat` with a new time. The sync of that write then has
//     to store the time: 100 microseconds a commit, measured on ext4. The name of an open descriptor in
//     `/proc` answers the same question in 3 microseconds.
//   - A loss is final: the storage refuses every write until it is closed. Reads still work, so that sessions
//     can be saved.
//   - At a loss the log is written into the database. A database that is lost itself is copied as well,
//     because this process may be about to end and has its only copy. A log that stays beside the lost
//     database is removed, as SQLite would apply it to whatever is put there next.

import { lstatSync, mkdtempSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { clearInterval, setInterval } from "node:timers";
import { HoldfastError, toError } from "@holdfast/core";
import type { SqlDriver } from "./driver.ts";
import { pathError } from "./paths.ts";
import { closeLog, makeEmptyFile, openLog, syncPath } from "./plain-files.ts";

/** How often the guard checks a database that nobody writes to. */
const LOOK_MS = 1_000;
/** How long a look serves the commits that follow it. */
const LOOK_SERVES_MS = 10;
/** Bound at the load, so that clocks which a program's tests set later do not stop the looks. */
const monotonicNow = performance.now.bind(performance);

interface Kept {
  readonly path: string;
  /** Device and inode. */
  readonly identity: string;
  /** Set where the kernel names the open file at any time. */
  readonly named?: Named | undefined;
}

/**
 * An open descriptor of a file, and the name that the kernel had for it at first. A file that is removed or
 * moved gets another.
 */
interface Named {
  readonly descriptor: number;
  readonly link: string;
  readonly name: string;
}

export class FileGuard {
  /** Resolves with the reason when nothing can be stored here any more; never rejects. */
  readonly lost: Promise<HoldfastError>;
  readonly #driver: SqlDriver;
  readonly #file: string;
  /** The database, then its log. */
  readonly #kept: readonly Kept[];
  readonly #index: Kept | undefined;
  readonly #looking: NodeJS.Timeout;
  #servesUntil = 0;
  #error: HoldfastError | undefined;
  #report!: (error: HoldfastError) => void;

  /** @param driver has opened `file` for writing. */
  constructor(driver: SqlDriver, file: string) {
    this.#driver = driver;
    this.#file = file;
    const [log] = keep(`${file}-wal`);
    this.#kept = [...keep(file), ...(log === undefined ? [] : [{ ...log, named: nameOf(log) }])];
    [this.#index] = keep(`${file}-shm`);
    this.lost = new Promise((resolve) => (this.#report = resolve));
    this.#looking = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** @throws HoldfastError `storage_lost`; what the file system says when it cannot be asked. */
  checkCommit(): void {
    this.refuseIfLost();
    const now = monotonicNow();
    if (now < this.#servesUntil) return;
    for (const kept of this.#kept) this.#compare(kept);
    this.#servesUntil = now + LOOK_SERVES_MS;
  }

  /** @throws HoldfastError `storage_lost` when an earlier check found a loss. */
  refuseIfLost(): void {
    if (this.#error !== undefined) throw this.#error;
  }

  close(): void {
    this.#endLooks();
    for (const { named } of this.#kept) if (named !== undefined) closeLog(named.descriptor);
  }

  #endLooks(): void {
    clearInterval(this.#looking);
  }

  #look(): void {
    try {
      this.checkCommit();
      if (this.#index !== undefined) this.#compare(this.#index);
    } catch {
      // A loss ends the checks; any other error is checked again.
      if (this.#error !== undefined) this.#endLooks();
    }
  }

  #compare({ path, identity, named }: Kept): void {
    if (named !== undefined && readlinkSync(named.link) === named.name) return;
    const found = identityOf(path);
    if (found === identity) return;
    this.#error = path === this.#file ? this.#databaseLost(found) : this.#logLost(path, found);
    this.#report(this.#error);
    throw this.#error;
  }

  #databaseLost(found: string | undefined): HoldfastError {
    this.#foldLog();
    const copy = this.#save();
    const fix =
      copy === undefined
        ? "save every session with `holdfast export ID` while this process runs, then end it"
        : `end this process; all that was stored is in ${copy}, which can be moved to the database's path`;
    return lostError(this.#file, "the database", found, fix);
  }

  #logLost(path: string, found: string | undefined): HoldfastError {
    const fix = this.#foldLog()
      ? "end this process and start it again; all that was stored is in the database"
      : "end this process with SIGTERM or Ctrl-C, not by force: only then it writes what was stored into the database";
    return lostError(path, "a part of the database", found, fix);
  }

  /** Whether all of the log is in the database now, wherever that is. A reader may keep it from that. */
  #foldLog(): boolean {
    try {
      return this.#driver.value("PRAGMA wal_checkpoint(TRUNCATE)") === 0;
    } catch {
      return false;
    }
  }

  /** Beside the database, or where that folder is gone in the temporary one. `undefined`: in neither. */
  #save(): string | undefined {
    const name = `${basename(this.#file)}-saved-${new Date().toISOString().replaceAll(/[:.]/g, "")}`;
    const folders = [() => dirname(this.#file), () => mkdtempSync(join(tmpdir(), "holdfast-saved-"))];
    for (const folder of folders) {
      try {
        const copy = join(folder(), name);
        makeEmptyFile(copy);
        this.#driver.prepare("VACUUM INTO ?").run(copy);
        syncPath(copy);
        const beside = [...this.#kept.slice(1), ...(this.#index === undefined ? [] : [this.#index])];
        for (const { path, identity } of beside) if (identityOf(path) === identity) rmSync(path);
        return copy;
      } catch {
        // No room or no folder; the next one may do.
      }
    }
    return undefined;
  }
}

function keep(path: string): Kept[] {
  const identity = identityOf(path);
  return identity === undefined ? [] : [{ path, identity }];
}

/**
 * The open log's name in `/proc`; `undefined` where the kernel does not tell it, and `stat` has to be called.
 */
function nameOf({ path, identity }: Kept): Named | undefined {
  if (process.platform !== "linux") return undefined;
  let descriptor: number | undefined;
  try {
    descriptor = openLog(path);
    const link = `/proc/self/fd/${descriptor}`;
    const name = readlinkSync(link);
    if (identityOf(name) === identity) return { descriptor, link, name };
  } catch {
    // Without /proc.
  }
  if (descriptor !== undefined) closeLog(descriptor);
  return undefined;
}

/**
 * Device and inode of the file at this path; `undefined` when there is none. A link to the database counts as
 * another file. A process that opens the link keeps another log, beside the file that the link leads to.
 */
function identityOf(path: string): string | undefined {
  try {
    const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return found && `${found.dev}:${found.ino}`;
  } catch (error) {
    throw pathError(toError(error), path);
  }
}

function lostError(path: string, what: string, found: string | undefined, fix: string): HoldfastError {
  const happened = found === undefined ? "was removed" : "was replaced";
  return new HoldfastError("storage_lost", `${what} ${happened} while it was in use: ${path}`, {
    at: path,
    got: found === undefined ? "no file" : "another file",
    expected: "the file that this process opened",
    fix,
  });
}
