// `WorkAnswers` answers what a coordinator asks about the work of sessions in their folders on this machine.
//
//   - A command may arrive twice. It is carried out once while its answer is awaited.
//   - A coordinator that asks too much keeps the runner from no other work: few commands run at once.
//   - A title becomes a line of the history of git, and is made one line without control characters here.

import { HoldfastError, recordError, titleFrom } from "@holdfast/core";
import type { Command } from "./poll-loop.ts";

/** Each starts programs of git. */
const AT_ONCE_MAX = 4;

/** The work of sessions in their folders on this machine. */
export interface WorkOfSessions {
  /** The work of a session, in JSON. */
  read(sessionId: string): Promise<object>;
  /** Merges that work into the project. Without it the policy of the machine forbids merges. */
  merge?(
    sessionId: string,
    how: { readonly commit: boolean; readonly title: string | undefined },
  ): Promise<object>;
}

interface WorkAnswer {
  readonly commandId: string;
  readonly answer?: Uint8Array<ArrayBuffer>;
  readonly error?: Uint8Array<ArrayBuffer>;
}

export class WorkAnswers {
  readonly #work: WorkOfSessions | undefined;
  readonly #send: (answer: WorkAnswer) => Promise<unknown>;
  readonly #underway = new Set<string>();

  /** @param send gives an answer to the coordinator. Its failures are ignored, as the caller can ask again. */
  constructor(work: WorkOfSessions | undefined, send: (answer: WorkAnswer) => Promise<unknown>) {
    this.#work = work;
    this.#send = send;
  }

  /** Never rejects. */
  async answer(command: Command): Promise<void> {
    const { commandId } = command;
    if (this.#underway.has(commandId)) return;
    this.#underway.add(commandId);
    try {
      const answered = await this.#carryOut(command).then(
        (answer) => ({ answer: bytesOf(answer) }),
        (error: unknown) => ({ error: bytesOf(recordError(error)) }),
      );
      await this.#send({ commandId, ...answered });
    } catch {
      // The coordinator is away, or its caller no longer waits.
    } finally {
      this.#underway.delete(commandId);
    }
  }

  async #carryOut({ type, sessionId = "", arguments: bytes }: Command): Promise<object> {
    if (this.#underway.size > AT_ONCE_MAX)
      throw new HoldfastError("rate_limited", "the runner shows the work of other sessions now", {
        expected: `at most ${AT_ONCE_MAX} questions at once`,
        fix: "ask again in a moment",
      });
    if (this.#work === undefined)
      throw new HoldfastError("not_implemented", "this runner shows no work of sessions", {
        fix: "use a runner that `holdfast runner` has started",
      });
    if (type === "read_work") return this.#work.read(sessionId);
    if (this.#work.merge === undefined)
      throw new HoldfastError(
        "policy_denied",
        "the policy of the runner's machine lets no coordinator merge work",
        {
          at: "mergeWork",
          fix: `run \`holdfast merge ${sessionId}\` in the project on that machine, or set "mergeWork": true in its policy`,
        },
      );
    const how = JSON.parse(Buffer.from(bytes ?? []).toString() || "{}") as Readonly<Record<string, unknown>>;
    const given = typeof how["title"] === "string" ? how["title"] : "";
    const title = titleFrom({ title: given, input: undefined });
    return this.#work.merge(sessionId, { commit: how["commit"] === true, title });
  }
}

function bytesOf(value: object): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}
