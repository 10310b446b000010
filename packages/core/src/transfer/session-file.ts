// `exportLines`, `SessionFile`: one session as a file, which `holdfast export` writes and `holdfast import`
// reads. docs/session-format.md describes the format.
//
//   session-file-1. Writing holds one page at a time. The session may continue meanwhile: the file has its
//       state when its row was read.
//   session-file-2. Reading accepts nothing before the checksum of the last line is found to fit, and then
//       everything. The session is stored by one change.
//   session-file-3. Unread signals are part of the file, under their ids, and are stored in the session's
//       transaction.
//   session-file-4. Children and parents are not part of the file, so the imported session is detached from
//       them (detachment-1). A copy under another id is a fork of the old session from position 0. Its entries
//       therefore keep their old ids, and the randomness and hashes that depend on the ids.
//   session-file-5. A copy is on no move, even if the session was. A session that was frozen for a
//       destination that is gone can thus continue under another id.
//   session-file-6. A checksum that fits does not say which program wrote it. The file is checked to the last
//       field, like a value from a connection.
//
// This file opens no files: lines go out, and lines come in.

import { CorruptRecordError, HoldfastError, NotFoundError, UsageError } from "../errors/errors.ts";
import { isSessionId } from "../ids.ts";
import { decodeLine, decodeRecords, encodeLine, type BlobSource } from "../journal/codec.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { StorageReader } from "../ports/storage.ts";
import type { Entry, ImportedSignal, ImportSession } from "../session/changes.ts";
import { parseChange } from "../ports/storage-wire-check.ts";
import { NO_AMOUNT } from "../session/budget.ts";
import { refuseNewerSession, type Session } from "../session/session.ts";
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
  readonly format: number;
  readonly session: Session;
}

/** The lines of a session's file. @throws NotFoundError */
export async function* exportLines(
  reader: StorageReader,
  sessionId: string,
  hash: RunningHash,
): AsyncGenerator<string> {
  const hashed = (line: string): string => {
    hash.update(`${line}\n`);
    return `${line}\n`;
  };
  // Read before the row. Signals consumed in between are found in the journal, and signals that arrive in
  // between are not part of the file.
  const pending = await reader.pendingSignals(sessionId);
  const session = await reader.session(sessionId);
  if (session === undefined) {
    throw new NotFoundError("session_not_found", `there is no session ${sessionId}`);
  }
  const header: Header = {
    holdfast: "session",
    format: FORMAT,
    session: await withOwnBudget(reader, session),
  };
  yield hashed(JSON.stringify(header));
  const consumed = new Set<string>();
  for await (const record of recordsOf(reader, session)) {
    for (const signalId of consumedBy(record)) consumed.add(signalId);
    const { payload, ...rest } = record;
    yield hashed(encodeLine(rest, payload));
  }
  for await (const { content, ...entry } of entriesOf(reader, session))
    yield hashed(encodeLine({ type: "entry", ...entry }, content));
  for (const { signalId, name, payload } of pending)
    if (!consumed.has(signalId)) yield hashed(encodeLine({ type: "signal", signalId, name }, payload));
  yield `${JSON.stringify({ sha256: hash.digest("hex") })}\n`;
}

function consumedBy(record: JournalRecord): readonly string[] {
  if (record.type === "take_signals") return record.signalIds;
  return record.type === "signal_received" || record.type === "request_received" ? [record.signalId] : [];
}

/**
 * The session of a file, as it is to be stored, from its lines without their ends. The last line is held
 * back, because its checksum does not cover itself.
 */
export class SessionFile {
  readonly #where: string;
  readonly #hash: RunningHash;
  readonly #records: JournalRecord[] = [];
  readonly #entries: Entry[] = [];
  readonly #signals: ImportedSignal[] = [];
  #header: Header | undefined;
  #held: string | undefined;
  #number = 0;

  /** @param where names the file in errors. */
  constructor(where: string, hash: RunningHash) {
    this.#where = where;
    this.#hash = hash;
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

  #accept(line: string): void {
    this.#hash.update(`${line}\n`);
    const at = `${this.#where}, line ${++this.#number}`;
    if (this.#header === undefined) {
      this.#header = readHeader(line, at);
      return;
    }
    if (line.startsWith('{"type":"entry",')) {
      const { header, payload = "null" } = decodeLine(line, at);
      const { type: _type, ...entry } = header;
      this.#entries.push({ ...entry, content: payload } as unknown as Entry);
    } else if (line.startsWith('{"type":"signal",')) {
      const { header, payload } = decodeLine(line, at);
      const { signalId, name } = header as unknown as ImportedSignal;
      this.#signals.push({ signalId, name, payload });
    } else {
      this.#records.push(...decodeRecords(line, NO_BLOBS, at));
    }
  }

  /**
   * @param wanted an id to store the session under, instead of its own.
   * @throws CorruptRecordError when the file is damaged, UsageError when the session cannot have that id.
   */
  end(wanted: string | undefined): ImportSession {
    const sum = `{"sha256":"${this.#hash.digest("hex")}"}`;
    const last = this.#held ?? "";
    if (this.#header === undefined && !last.startsWith(MARK)) throw notOurs(this.#where, last);
    if (this.#header === undefined || last !== sum) {
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
    const { move: _move, ...session } = this.#header.session; // session-file-5.
    const { sessionId, account } = session;
    const change: ImportSession = {
      type: "import_session",
      sessionId,
      session: {
        ...session,
        inbox: 0,
        // Running tasks reserve their amounts again when they start again.
        ...(account === undefined ? {} : { account: { ...account, reserved: NO_AMOUNT } }),
      },
      records: this.#records,
      entries: this.#entries,
      signals: this.#signals,
    };
    if (parseChange(change) === undefined) throw notASession(this.#where);
    return wanted === undefined || wanted === sessionId ? change : renamed(change, wanted);
  }
}

/** session-file-4. */
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
  if (header.format !== FORMAT) {
    throw new HoldfastError("version_unsupported", `the file is of format ${String(header.format)}`, {
      at,
      expected: `format ${FORMAT}`,
      fix: "use the version of Holdfast that wrote it, or a newer one",
    });
  }
  if (typeof header.session !== "object" || header.session === null) throw notASession(at);
  refuseNewerSession(header.session, at); // Before its records are decoded, because types of a newer format are unknown here.
  return header as Header;
}

/** session-file-6. */
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
