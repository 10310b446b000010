// `SessionRelations`: the relations of a session to other sessions, as they change during a turn.
//
//   - After a fork, earlier children and the parent are another session's. Their records replay.
//   session-relations-2. A minimal session becomes persistent by the command that creates a child, asks its
//       parent, or takes signals as a child. No answer is then lost with its process, and no session that
//       restarts from scratch has asked another one before.

import { callerLine } from "../errors/author-line.ts";
import { CancelledError, UsageError } from "../errors/errors.ts";
import { positionIn } from "../ids.ts";
import type { Persisting } from "../journal/record.ts";
import { at } from "../replay/faults.ts";
import type { KernelParts } from "../replay/turn.ts";
import type { ParentRef, Persistence } from "../session/session.ts";

export class SessionRelations {
  /** The parent, as far as the agent knows. */
  parent: ParentRef | undefined;
  /** The seed of which those of the children are made. */
  seed: number;
  /** How much of this session survives its process, so far. */
  persistence: Persistence;
  /** How many children were ever asked for. */
  children: number;
  /** Children with a lower number are another session's. */
  #firstChild = 0;
  readonly #parts: KernelParts;

  constructor(parts: KernelParts) {
    const { relations, seed } = parts.options;
    this.#parts = parts;
    this.parent = relations.parent;
    this.seed = seed;
    this.persistence = relations.persistence;
    this.children = relations.children;
  }

  leaveOrigin(seed: number): void {
    this.seed = seed;
    this.parent = undefined;
    this.#firstChild = this.#parts.cursor.id;
  }

  /** session-relations-2. The part of a command that takes signals: only a child can lose a signal of its parent. */
  listening(): Persisting {
    return this.parent === undefined ? {} : this.persisting();
  }

  /** session-relations-2. The part of a command by which a minimal session becomes persistent. */
  persisting(): Persisting {
    if (this.persistence !== "minimal") return {};
    this.persistence = "full";
    this.#parts.segment.enablePersistence();
    return { persists: true };
  }

  /** The number in a child's session id. @throws CancelledError */
  numberOf(childId: string): number {
    const id = this.numberIn(childId);
    if (id < this.#firstChild) throw new CancelledError(`child ${childId}`, "the session was forked");
    return id;
  }

  /** The same, also of a child from before a fork. @throws UsageError */
  numberIn(childId: string): number {
    const { sessionId, origins = [] } = this.#parts.options;
    const names = [sessionId, ...origins].map((name) => positionIn(childId, name));
    const id = names.find((one) => one !== undefined);
    if (id !== undefined && id < this.#parts.cursor.id) return id;
    throw this.#parts.faults.fail(
      new UsageError(`"${childId}" is no child of this session`, {
        ...at(callerLine()),
        expected: `the sessionId of what ctx.spawnAgent() of session ${this.#parts.cursor.self} returned`,
      }),
    );
  }
}
