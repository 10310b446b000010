// `InboxReader`: everything that waits for a person, from the list of sessions and the records of their
// questions.
//
//   - The record of a question is read once for each state of its session. A database that was replaced by an
//     older copy may have another question under the same number. A person must not approve one command while
//     another is shown.
//   - The list does not say which questions have an answer that no process has taken. Each session is
//     therefore read alone, too, once for each state.
//   - At most `SESSIONS_MAX` sessions of each status are looked at, the newest ones. `cut` names the statuses
//     that have more.

import {
  answerLines,
  inInboxOrder,
  principalOf,
  viewQuestion,
  visibleText,
  type AskedQuestion,
  type InboxItem,
  type QuestionView,
} from "@holdfast/proto/view";
import { call } from "./client.ts";
import { listPath } from "./session-list.ts";
import type { JournalRecord, Session, SessionPage, Wait } from "./types.ts";

/** An item, with what the page needs to answer it. */
export interface OpenItem extends InboxItem {
  readonly session: Session;
  readonly wait?: Wait;
  /** The call that is to be approved, by the word for its work. */
  readonly work?: QuestionView["work"];
}

/** The id of the item of a question. */
export function itemOfQuestion(sessionId: string, { id }: Pick<Wait, "id">): string {
  return `${sessionId}-${id}`;
}

/** Whether its answer is an approval or a denial. */
export function canApprove({ kind, wait }: OpenItem): boolean {
  return kind !== "answered" && wait !== undefined && wait.answer !== "any";
}

export interface Inbox {
  readonly items: readonly OpenItem[];
  /** The newest failed sessions, also those that wait for nobody. */
  readonly failed: readonly Session[];
  /** The statuses of which only the newest `SESSIONS_MAX` sessions were looked at. */
  readonly cut: readonly string[];
}

export const SESSIONS_MAX = 500;
const STATUSES = ["input_required", "paused", "failed"] as const;
const AT_ONCE = 8;
const FAILED_DAYS = 7;
const RECORDS = 200;

export class InboxReader {
  readonly #call: typeof call;
  readonly #questions = new Map<string, Promise<AskedQuestion | undefined>>();
  readonly #answered = new Map<string, Promise<ReadonlySet<number>>>();
  readonly #parents = new Map<string, Promise<readonly string[]>>();

  /** The sessions with open items, as the last read has found them; `undefined` while a read is under way. */
  #open: ReadonlySet<string> | undefined;
  #reads = 0;

  /** @param request asks the server. */
  constructor(request: typeof call = call) {
    this.#call = request;
  }

  /** Whether a change of this session may change the items. */
  concerns({ sessionId, status }: Session): boolean {
    return this.#open === undefined || this.#open.has(sessionId) || STATUSES.some((each) => each === status);
  }

  async read(why: (session: Session) => string, isLocal: boolean): Promise<Inbox> {
    this.#open = undefined;
    const ownRead = ++this.#reads;
    const pages = await Promise.all(
      STATUSES.map((status) => this.#call<SessionPage>("GET", listPath({ status, limit: SESSIONS_MAX }))),
    );
    const sessions = pages
      .flatMap((page) => page.sessions)
      .filter((session) => session.movedTo === undefined && isOpen(session));
    const found: (readonly OpenItem[])[] = [];
    const queue = sessions.entries();
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (const [at, session] of queue) found[at] = await this.#itemsOf(session, why, isLocal);
      }),
    );
    if (ownRead === this.#reads) this.#open = new Set(sessions.map(({ sessionId }) => sessionId));
    return {
      items: inInboxOrder(found.flat()) as readonly OpenItem[],
      failed: pages[STATUSES.indexOf("failed")]!.sessions.filter(({ movedTo }) => movedTo === undefined),
      cut: STATUSES.filter((_, at) => pages[at]!.nextCursor !== undefined),
    };
  }

  /** The items of one session. */
  async readSession(
    session: Session,
    why: (session: Session) => string,
    isLocal: boolean,
  ): Promise<readonly OpenItem[]> {
    return this.#itemsOf(session, why, isLocal);
  }

  async #itemsOf(
    session: Session,
    why: (session: Session) => string,
    isLocal: boolean,
  ): Promise<readonly OpenItem[]> {
    const { sessionId, title, owner, updatedAt, endedAt, pauseReason, status, error } = session;
    const path = [...(await this.#pathTo(session)), session.agent];
    const about = title === undefined ? {} : { title };
    const common = { session, sessionId, ...about, path, principal: principalOf(owner, !isLocal) };
    if (status === "failed")
      return [
        {
          ...common,
          id: sessionId,
          kind: "uncertain_effect",
          what: error?.message ?? "an effect may have happened",
          since: endedAt ?? updatedAt,
          commands: [`holdfast show ${sessionId}`],
        },
      ];
    if (status === "paused")
      return [
        {
          ...common,
          id: sessionId,
          kind: "pause",
          what: why(session),
          ...(pauseReason === undefined ? {} : { pauseReason }),
          since: updatedAt,
          commands: [
            pauseReason === "budget_exceeded"
              ? `holdfast budget ${session.exhausted?.payer ?? sessionId}`
              : `holdfast ${isLocal && pauseReason !== "by_user" ? "resume" : "unpause"} ${sessionId}`,
          ],
        },
      ];
    const asked = session.waits.filter(({ type }) => type === "input").sort((a, b) => a.id - b.id);
    const answered = await this.#answeredOf(session);
    return Promise.all(
      asked.map(async (wait): Promise<OpenItem> => {
        const question = (await this.#questionOf(session, wait.id)) ?? { prompt: wait.prompt ?? "" };
        const { kind, prompt, tool, work, action, editable, change, folder, details, lastingRule, askedBy } =
          viewQuestion(question, wait.answer);
        return {
          ...common,
          wait,
          id: itemOfQuestion(sessionId, wait),
          kind: answered.has(wait.id) ? "answered" : kind,
          what: visibleText(prompt),
          ...(tool === undefined ? {} : { tool }),
          ...(work === undefined ? {} : { work }),
          ...(action === undefined ? {} : { action: visibleText(action) }),
          ...(editable === undefined ? {} : { editable }),
          ...(change === undefined ? {} : { change }),
          ...(folder === undefined ? {} : { folder }),
          ...(details === undefined ? {} : { details }),
          ...(lastingRule === undefined ? {} : { lastingRule: visibleText(lastingRule) }),
          ...(askedBy === undefined ? {} : { askedBy: visibleText(askedBy) }),
          since: updatedAt,
          ...(wait.until === undefined ? {} : { until: wait.until }),
          commands: answered.has(wait.id)
            ? isLocal
              ? [`holdfast resume ${sessionId}`]
              : [] // Its runners take the answer.
            : answerLines(sessionId, wait).map((line) => `holdfast ${line}`),
        };
      }),
    );
  }

  /** The names of the agents above a session, from the root of its tree down. */
  #pathTo({ parentSessionId }: Session): Promise<readonly string[]> {
    if (parentSessionId === undefined) return Promise.resolve([]);
    return once(this.#parents, parentSessionId, async () => {
      const parent = await this.#call<Session>("GET", `/v1/sessions/${encodeURIComponent(parentSessionId)}`);
      return [...(await this.#pathTo(parent)), parent.agent];
    });
  }

  /** The questions that have an answer which no process has taken. */
  #answeredOf({ sessionId, nextSeq, updatedAt }: Session): Promise<ReadonlySet<number>> {
    return once(this.#answered, `${sessionId}-${nextSeq}-${updatedAt}`, async () => {
      const { waits } = await this.#call<Session>("GET", `/v1/sessions/${encodeURIComponent(sessionId)}`);
      return new Set(waits.filter(({ answered }) => answered === true).map(({ id }) => id));
    });
  }

  /**
   * A command is at or behind the position of its number. It is looked for from the end of the journal,
   * because open questions are among its last records.
   */
  #questionOf(session: Session, id: number): Promise<AskedQuestion | undefined> {
    const { sessionId, nextSeq, updatedAt } = session;
    return once(this.#questions, `${sessionId}-${id}-${nextSeq}-${updatedAt}`, async () => {
      for (let to = nextSeq; to > id; to -= RECORDS) {
        const from = Math.max(id, to - RECORDS);
        const path = `/v1/sessions/${encodeURIComponent(sessionId)}/events?fromSeq=${from}&limit=${RECORDS}`;
        const { records } = await this.#call<{ readonly records: readonly JournalRecord[] }>("GET", path);
        const found = records.find((record) => record.type === "request_input" && record.id === id);
        if (found?.payload !== undefined) return JSON.parse(found.payload) as AskedQuestion;
      }
      return undefined;
    });
  }
}

/**
 * Whether a session of one of the statuses waits for a person. Failed sessions do so for a week, if an effect
 * is uncertain.
 */
function isOpen({ status, error, endedAt = 0 }: Session): boolean {
  return (
    status !== "failed" ||
    (error?.name === "UncertainEffectError" && endedAt > Date.now() - FAILED_DAYS * 86_400_000)
  );
}

const KEPT = 5_000;

function once<T>(cache: Map<string, Promise<T>>, key: string, read: () => Promise<T>): Promise<T> {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const reading = read();
  cache.set(key, reading);
  reading.catch(() => cache.delete(key));
  if (cache.size > KEPT) cache.delete(cache.keys().next().value!);
  return reading;
}
