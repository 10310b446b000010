// `exportLines`, `SessionFile`: one session, or one with all sessions below it, as a file that
// `holdfast export` writes and `holdfast import` reads. docs/session-format.md describes the format.
//
//   - Writing one session holds one page at a time. The session may continue meanwhile: the file has its
//     state when its row was read. `session-tree.ts` reads a tree.
//   - Reading accepts nothing before the checksum of the last line is found to fit, and then everything. The
//     sessions of a file are stored by one change.
//   - Unread signals are part of the file, under their ids, and are stored in the transaction of their
//     session.
//   - Sessions that are not in the file are not relatives of an imported session (detachment-1). A copy of
//     one session under another id is a fork of it from position 0. Its entries therefore keep their old ids,
//     and the randomness and hashes that depend on the ids. Ids of children are made of their parent's id, so
//     a tree has no copy under another id.
//   - A copy is on no move, even if the session was. A session that was frozen for a destination that is gone
//     can thus continue under another id.
//   - A checksum that fits does not say which program wrote it. The file is checked to the last field, like a
//     value from a connection.
//   - A tree is stored by one change, which holds it in memory. A tree with more text than a batch may have
//     is therefore refused, at its export and at its import.
//
// This file opens no files: lines go out, and lines come in.

import { defined } from "../defined.ts";
import { CorruptRecordError, HoldfastError, NotFoundError, UsageError } from "../errors/errors.ts";
import { LIMITS } from "../limits.ts";
import { isSessionId } from "../ids.ts";
import { decodeLine, decodeRecords, encodeLine, type BlobSource } from "../journal/codec.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { StorageReader } from "../ports/storage.ts";
import type {
  Entry,
  ImportedSession,
  ImportedSignal,
  ImportSession,
  ImportTree,
} from "../session/changes.ts";
import { parseChange } from "../ports/storage-wire-check.ts";
import { NO_AMOUNT } from "../budget/budget.ts";
import { refuseNewerSession, type Session } from "../session/session.ts";
import { readTree, type ReadSession } from "./session-tree.ts";
import { entriesOf, recordsOf, withOwnBudget } from "./whole-session.ts";

/** SHA-256 over texts as UTF-8, one after the other, as `createHash("sha256")` of Node computes it. */
export interface RunningHash {
  update(text: string): unknown;
  digest(encoding: "hex"): string;
}

const FORMAT = 1;
const MARK = '{"holdfast":"session",';

interface Header {
  readonly holdfast: "session";
  readonly format: typeof FORMAT;
  /** The session is one of a tree. It stands at the head of all sessions of the file or of none. */
  readonly tree?: true;
  readonly session: Session;
}

/** The change that stores a file. */
export type FileImport = ImportSession | ImportTree;

/** The sessions of a file, each after its parent. */
export function importedBy(change: FileImport): readonly ImportedSession[] {
  return change.type === "import_tree" ? change.sessions : [change];
}

/** Whether a stored session is the session of a file, at whatever point it is. */
export function isSameSession(stored: Session, { session }: ImportedSession): boolean {
  return stored.seed === session.seed && stored.agent.name === session.agent.name;
}

export interface ExportOptions {
  /** Write all sessions below the session, too. */
  readonly tree?: boolean;
  /** The most text of a tree, in UTF-16 code units. */
  readonly treeChars?: number;
}

/**
 * The lines of the file of a session, or of a session with all sessions below it.
 *
 * @throws NotFoundError when there is no such session.
 * @throws HoldfastError `too_large` when the tree has more text than one import may have.
 * @throws ConflictError when the sessions of the tree change all the time.
 */
export async function* exportLines(
  reader: StorageReader,
  sessionId: string,
  hash: RunningHash,
  { tree = false, treeChars = LIMITS.batchChars }: ExportOptions = {},
): AsyncGenerator<string> {
  const lines = tree
    ? await linesOfTree(reader, await readTree(reader, sessionId), treeChars)
    : linesOf(reader, {}, await readSession(reader, sessionId));
  for await (const line of lines) {
    hash.update(`${line}\n`);
    yield `${line}\n`;
  }
  yield `${JSON.stringify({ sha256: hash.digest("hex") })}\n`;
}

async function readSession(reader: StorageReader, sessionId: string): Promise<ReadSession> {
  // Read before the row. Signals consumed in between are found in the journal, and signals that arrive in
  // between are not part of the file.
  const pending = await reader.pendingSignals(sessionId);
  const session = await reader.session(sessionId);
  if (session === undefined) throw new NotFoundError("session_not_found", `there is no session ${sessionId}`);
  return { session: await withOwnBudget(reader, session), pending };
}

/** All lines of a tree, which were counted before the first one is written. */
async function linesOfTree(
  reader: StorageReader,
  sessions: readonly ReadSession[],
  treeChars: number,
): Promise<readonly string[]> {
  const lines: string[] = [];
  let chars = 0;
  for (const read of sessions) {
    for await (const line of linesOf(reader, { tree: true }, read)) {
      chars += line.length + 1;
      if (chars <= treeChars) lines.push(line);
    }
  }
  if (chars > treeChars)
    throw treeTooLarge(sessions[0]!.session.sessionId, sessions.length, chars, treeChars);
  return lines;
}

async function* linesOf(
  reader: StorageReader,
  kind: Pick<Header, "tree">,
  { session, pending }: ReadSession,
): AsyncGenerator<string> {
  const header: Header = { holdfast: "session", format: FORMAT, ...kind, session };
  yield JSON.stringify(header);
  const consumed = new Set<string>();
  for await (const record of recordsOf(reader, session)) {
    for (const signalId of consumedBy(record)) consumed.add(signalId);
    const { payload, ...rest } = record;
    yield encodeLine(rest, payload);
  }
  for await (const { content, ...entry } of entriesOf(reader, session))
    yield encodeLine({ type: "entry", ...entry }, content);
  for (const { signalId, name, payload } of pending)
    if (!consumed.has(signalId)) yield encodeLine({ type: "signal", signalId, name }, payload);
}

function consumedBy(record: JournalRecord): readonly string[] {
  if (record.type === "take_signals") return record.signalIds;
  return record.type === "signal_received" || record.type === "request_received" ? [record.signalId] : [];
}

/** The lines of one session in a file. */
interface Part {
  readonly session: Session;
  readonly records: JournalRecord[];
  readonly entries: Entry[];
  readonly signals: ImportedSignal[];
}

/**
 * The sessions of a file, as they are to be stored, from its lines without their ends. The last line is held
 * back, because its checksum does not cover itself.
 */
export class SessionFile {
  readonly #where: string;
  readonly #hash: RunningHash;
  readonly #treeChars: number;
  /** Each session after its parent. */
  readonly #parts: Part[] = [];
  #isTree = false;
  #held: string | undefined;
  #number = 0;
  #chars = 0;

  /**
   * @param where names the file in errors.
   * @param treeChars the most text of a tree, in UTF-16 code units.
   */
  constructor(where: string, hash: RunningHash, treeChars: number = LIMITS.batchChars) {
    this.#where = where;
    this.#hash = hash;
    this.#treeChars = treeChars;
  }

  /**
   * @throws CorruptRecordError when the file is damaged, HoldfastError `version_unsupported` when it is of
   * another version.
   */
  take(line: string): void {
    const last = this.#held;
    this.#held = line;
    if (last !== undefined) this.#accept(last);
  }

  get #isTooLarge(): boolean {
    return this.#isTree && this.#chars > this.#treeChars;
  }

  #accept(line: string): void {
    this.#hash.update(`${line}\n`);
    this.#chars += line.length + 1;
    const at = `${this.#where}, line ${++this.#number}`;
    const part = this.#parts.at(-1);
    if (part === undefined || (this.#isTree && line.startsWith(MARK))) {
      const { tree = false, session } = readHeader(line, at);
      if (part !== undefined && !tree) throw notASession(at);
      this.#isTree = tree;
      this.#parts.push({ session, records: [], entries: [], signals: [] });
    } else if (!this.#isTooLarge) {
      acceptContent(line, at, part);
    }
  }

  /**
   * @param wanted an id to store the session under, instead of its own.
   * @throws CorruptRecordError when the file is damaged, UsageError when the session cannot have that id.
   * @throws HoldfastError `too_large` when the file has a tree with more text than one change may hold.
   */
  end(wanted: string | undefined): FileImport {
    const sum = `{"sha256":"${this.#hash.digest("hex")}"}`;
    const last = this.#held ?? "";
    const [first] = this.#parts;
    if (first === undefined && !last.startsWith(MARK)) throw notOurs(this.#where, last);
    if (first === undefined || last !== sum) {
      throw new CorruptRecordError(
        this.#where,
        "the file is not as it was written: it is cut off or damaged",
        {
          got: last.slice(0, 80),
          expected: `${sum} as the last line`,
          fix: "export the session again",
        },
      );
    }
    const { sessionId } = first.session;
    if (this.#isTooLarge)
      throw treeTooLarge(sessionId, this.#parts.length, this.#chars, this.#treeChars, this.#where);
    const sessions = this.#parts.map(importedFrom);
    const change: FileImport = this.#isTree
      ? { type: "import_tree", sessionId, sessions }
      : { type: "import_session", ...sessions[0]! };
    if (parseChange(change) === undefined) throw notASession(this.#where);
    if (wanted === undefined || wanted === sessionId) return change;
    if (change.type === "import_session") return renamed(change, wanted);
    throw new UsageError(`the tree of session ${sessionId} cannot be stored under another id`, {
      at: this.#where,
      got: wanted,
      expected: `no other id, because the ids of its sessions are made of ${sessionId}`,
      fix: "import it without an id, or export its sessions without --tree and import each of them",
    });
  }
}

function acceptContent(line: string, at: string, { records, entries, signals }: Part): void {
  if (line.startsWith('{"type":"entry",')) {
    const { header, payload = "null" } = decodeLine(line, at);
    const { type: _type, ...entry } = header;
    entries.push({ ...entry, content: payload } as unknown as Entry);
  } else if (line.startsWith('{"type":"signal",')) {
    const { header, payload } = decodeLine(line, at);
    const { signalId, name } = header as unknown as ImportedSignal;
    signals.push({ signalId, name, payload });
  } else {
    records.push(...decodeRecords(line, NO_BLOBS, at));
  }
}

function importedFrom({ session: written, ...content }: Part): ImportedSession {
  const { move: _move, ...session } = written; // A copy is on no move, so it can continue under another id.
  const { sessionId, account } = session;
  return {
    sessionId,
    session: {
      ...session,
      inbox: 0,
      // Running tasks reserve their amounts again when they start again.
      ...(account === undefined ? {} : { account: { ...account, reserved: NO_AMOUNT } }),
    },
    ...content,
  };
}

function treeTooLarge(
  sessionId: string,
  sessions: number,
  chars: number,
  most: number,
  at?: string,
): HoldfastError {
  return new HoldfastError("too_large", `the tree of session ${sessionId} is too large for one import`, {
    ...defined({ at }),
    got: `${sessions} sessions with ${chars} characters`,
    expected: `at most the limit "batchChars" (${most})`,
    fix: "export its sessions one by one, without --tree",
  });
}

function renamed(change: ImportSession, sessionId: string): ImportSession {
  const { session } = change;
  if (!isSessionId(sessionId))
    throw new UsageError(`"${sessionId}" cannot be a session id`, {
      expected: "1 to 100 letters, digits, dots, dashes and underscores, starting with a letter or digit",
    });
  const { origins, ...fork } = session.fork ?? { origins: [], at: 0, seed: session.seed, tasks: "rerun" };
  return {
    ...change,
    sessionId,
    session: {
      ...session,
      sessionId,
      payers: session.account === undefined ? [] : [sessionId],
      fork: { ...fork, origins: [session.sessionId, ...origins] },
    },
  };
}

function readHeader(line: string, at: string): Header {
  if (!line.startsWith(MARK)) throw notOurs(at, line);
  const { header } = decodeLine(line, at) as unknown as { header: Partial<Header> };
  const { format, tree } = header;
  if (format !== FORMAT) {
    throw new HoldfastError("version_unsupported", `the file is of format ${String(format)}`, {
      at,
      expected: `format ${FORMAT}`,
      fix: "use the version of Holdfast that wrote it, or a newer one",
    });
  }
  if (![undefined, true].includes(tree)) throw notASession(at);
  if (typeof header.session !== "object" || header.session === null) throw notASession(at);
  refuseNewerSession(header.session, at); // Before its records are decoded, because types of a newer format are unknown here.
  return header as Header;
}

function notASession(at: string): CorruptRecordError {
  return new CorruptRecordError(at, "what the file says is not a session", {
    expected: "what `holdfast export` wrote, and nobody has changed since",
    fix: "export the session again",
  });
}

export function notOurs(at: string, line: string): CorruptRecordError {
  return new CorruptRecordError(at, "this is not a file of a session", {
    got: line.slice(0, 80) || "nothing",
    expected: "what `holdfast export` wrote",
  });
}

const NO_BLOBS: BlobSource = {
  get: (address) => {
    throw new CorruptRecordError("the file", `payload ${address} is not in it`);
  },
};
