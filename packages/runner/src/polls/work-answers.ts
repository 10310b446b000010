// `WorkAnswers` answers what a coordinator asks about the work of sessions in their folders on this machine.
//
//   - A command may arrive twice. It is carried out once while its answer is awaited.
//   - A coordinator that asks too much keeps the runner from no other work: few commands run at once.
//   - No answer has a secret that this process holds, as a file or a diff may have one.
//   - A title becomes a line of the history of git, and is made one line without control characters here.

import { HoldfastError, recordError, titleFrom } from "@holdfast/core";
import type { Redactor } from "@holdfast/system";
import type { Command } from "./poll-loop.ts";

/** Each starts programs of git. */
const AT_ONCE_MAX = 4;

/** A session. An earlier one of the same id had another time of its start. */
interface SessionOfWork {
  readonly sessionId: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

/** The work of sessions in their folders on this machine. */
export interface WorkOfSessions {
  /** It removes the secrets that no answer may contain. */
  readonly redactor: Pick<Redactor, "json" | "text">;
  /** The work of a session, in JSON. */
  read(session: SessionOfWork): Promise<object>;
  /**
   * Merges that work into the project, if it still is of this revision. Without it the policy of the machine
   * forbids merges.
   */
  merge?(
    session: SessionOfWork,
    how: { readonly commit: boolean; readonly revision: string; readonly title: string | undefined },
  ): Promise<object>;
}

interface WorkAnswer {
  readonly commandId: string;
  readonly answer?: Uint8Array<ArrayBuffer>;
  readonly error?: Uint8Array<ArrayBuffer>;
}

interface Underway {
  readonly type: Command["type"];
  readonly answered: Promise<void>;
}

export class WorkAnswers {
  readonly #work: WorkOfSessions | undefined;
  readonly #send: (answer: WorkAnswer) => Promise<unknown>;
  readonly #underway = new Map<string, Underway>();

  /** @param send gives an answer to the coordinator. Its failures are ignored, as the caller can ask again. */
  constructor(work: WorkOfSessions | undefined, send: (answer: WorkAnswer) => Promise<unknown>) {
    this.#work = work;
    this.#send = send;
  }

  /** Never rejects. */
  async answer(command: Command): Promise<void> {
    const { commandId, type } = command;
    if (this.#underway.has(commandId)) return;
    const answered = this.#answer(command);
    this.#underway.set(commandId, { type, answered });
    await answered;
    this.#underway.delete(commandId);
  }

  /** Resolves when no merge is carried out any more. A read may be cut off at any time. */
  async idle(): Promise<void> {
    const merges = () => [...this.#underway.values()].filter(({ type }) => type === "merge_work");
    while (merges().length > 0) await Promise.all(merges().map(({ answered }) => answered));
  }

  async #answer(command: Command): Promise<void> {
    const redactor = this.#work?.redactor;
    const isCrowded = this.#underway.size >= AT_ONCE_MAX;
    try {
      const answered = await this.#carryOut(command, isCrowded).then(
        (answer) => ({ answer: bytesOf(answer, redactor) }),
        (error: unknown) => ({ error: bytesOf(recordError(error, (text) => redactor?.text(text) ?? text)) }),
      );
      await this.#send({ commandId: command.commandId, ...answered });
    } catch {
      // The coordinator is away, or its caller no longer waits.
    }
  }

  async #carryOut({ type, sessionId = "", arguments: bytes }: Command, isCrowded: boolean): Promise<object> {
    if (isCrowded)
      throw new HoldfastError("rate_limited", "the runner shows the work of other sessions now", {
        expected: `at most ${AT_ONCE_MAX} questions at once`,
        fix: "ask again in a moment",
      });
    if (this.#work === undefined)
      throw new HoldfastError("not_implemented", "this runner shows no work of sessions", {
        fix: "use a runner that `holdfast runner` has started",
      });
    const given = JSON.parse(Buffer.from(bytes ?? []).toString() || "{}") as Readonly<
      Record<string, unknown>
    >;
    const { createdAt } = given;
    if (typeof createdAt !== "number")
      throw new HoldfastError("invalid_input", "the question does not say which session it means", {
        at: "createdAt",
        expected: "the start of the session, in milliseconds since 1970",
        fix: "use a coordinator of the runner's version",
      });
    const session = { sessionId, createdAt };
    if (type === "read_work") return this.#work.read(session);
    if (this.#work.merge === undefined)
      throw new HoldfastError(
        "policy_denied",
        "the policy of the runner's machine lets no coordinator merge work",
        {
          at: "mergeWork",
          fix: `run \`holdfast merge ${sessionId}\` in the project on that machine, or set "mergeWork": true in its policy`,
        },
      );
    const title = titleFrom({ title: textOf(given["title"]), input: undefined });
    const revision = textOf(given["revision"]);
    return this.#work.merge(session, { commit: given["commit"] === true, revision, title });
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function bytesOf(value: object, redactor?: Pick<Redactor, "json">): Uint8Array<ArrayBuffer> {
  const text = JSON.stringify(value);
  return new TextEncoder().encode(redactor?.json(text) ?? text);
}
