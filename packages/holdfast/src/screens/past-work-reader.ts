// `PastWorkReader`: what sessions do now, and the last of what they did, by their journals. A record is read
// once, however often a screen is drawn.

import type { Session, StorageReader } from "@holdfast/core";
import type { Look } from "@holdfast/terminal/frame/command";
import { JournalTail } from "@holdfast/terminal/view/journal-events";
import { PastWork } from "@holdfast/terminal/view/work/past-work";

interface Followed {
  readonly work: PastWork;
  readonly tail: JournalTail;
  nextSeq: number;
}

export class PastWorkReader {
  readonly #look: Look;
  #followed = new Map<string, Followed>();

  constructor(look: Look) {
    this.#look = look;
  }

  /** The work of each session that keeps a journal, by its id. A session that is not asked for is forgotten. */
  async read(
    sessions: readonly { readonly session: Session; readonly reader: StorageReader }[],
  ): Promise<ReadonlyMap<string, PastWork>> {
    const before = this.#followed;
    this.#followed = new Map();
    for (const { session, reader } of sessions) {
      if (session.persistence !== undefined) continue;
      const { sessionId, nextSeq } = session;
      const known = before.get(sessionId) ?? this.#begun(session, reader);
      if (known.nextSeq !== nextSeq) await known.tail.advance((event) => known.work.event(event));
      known.nextSeq = nextSeq;
      this.#followed.set(sessionId, known);
    }
    return new Map([...this.#followed].map(([id, { work }]) => [id, work]));
  }
  #begun(session: Session, reader: StorageReader): Followed {
    const work = new PastWork(session, this.#look);
    return { work, tail: new JournalTail(reader, session.sessionId, work.fromSeq), nextSeq: -1 };
  }
}
