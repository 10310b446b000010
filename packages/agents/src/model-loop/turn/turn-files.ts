// `TurnFiles`: the files of a session's own workspace. They are kept at the end of a turn, and a fork begins
// with them.
//
//   - A turn that called a tool which may change files keeps them before its checkpoint. Another turn does
//     not.
//   - Files that cannot be kept fail no session. A note in the conversation says so, and the state says that
//     the last snapshot is older.
//   - A fork works in the workspace of no other session. It gets one of its own with the files of the
//     snapshot in its state, before its first call of a tool.

import { HoldfastError } from "@holdfast/core";

import type { AgentRecord } from "../../record/agent-record.ts";
import type { SessionFiles } from "../model-state.ts";
import { PREPARE_RETRY, type TurnDraft } from "./turn-draft.ts";

const INTERRUPTED = "the turn was interrupted";
const REASON_CHARS = 1_000;

/** The files of one turn. */
export class TurnFiles {
  readonly #draft: TurnDraft;
  readonly #agent: AgentRecord;
  #opening: Promise<void> | undefined;
  /** For the model of a fork, after the results of the calls under way. */
  #note: string | undefined;
  #mayDiffer = false;

  constructor(draft: TurnDraft, agent: AgentRecord) {
    this.#draft = draft;
    this.#agent = agent;
  }

  /** A call of a tool that may change files begins. */
  noteChange(): void {
    this.#mayDiffer = true;
  }

  /** @throws HoldfastError `task_failed` when the files of the snapshot are gone. */
  async own(): Promise<void> {
    const { files } = this.#draft.state;
    if (files === null || files.session === this.#draft.ctx.sessionId) return;
    await (this.#opening ??= this.#open(files));
  }

  /** Reports to the model of a fork where it works, between two turns or after the results of all calls. */
  report(): void {
    if (this.#note !== undefined) this.#draft.append("user", this.#note);
    this.#note = undefined;
  }

  async keep(): Promise<void> {
    const { ctx, parts, state } = this.#draft;
    const { files } = state;
    const { keepFiles } = parts;
    if (files === null || keepFiles === undefined) return;
    if (!this.#mayDiffer && files.staleBecause === null) return;
    try {
      const kept = await ctx.run("keep_files", (task) => keepFiles(this.#agent, task), {
        effect: "repeatable",
        retry: { maxAttempts: 3, nonRetryable: ["limit_exceeded", "file_not_found", "conflict"] },
      });
      this.#draft.change({ files: { ...files, ...kept, staleBecause: null } });
    } catch (error) {
      if (!HoldfastError.is(error) || !["task_failed", "task_timeout"].includes(error.code)) throw error;
      const why = ((error.cause as Error | undefined)?.message ?? error.message).slice(0, REASON_CHARS);
      if (why !== files.staleBecause)
        this.#draft.append("user", `(The files of this turn were not kept for a fork: ${why})`);
      this.#draft.change({ files: { ...files, staleBecause: why } });
    }
    this.#mayDiffer = false;
  }

  /** The turn ends with calls that are cancelled, which may still change files. */
  interrupt(): void {
    const { files } = this.#draft.state;
    if (files !== null && this.#mayDiffer)
      this.#draft.change({ files: { ...files, staleBecause: INTERRUPTED } });
  }

  async #open(files: SessionFiles): Promise<void> {
    const { ctx, parts, state } = this.#draft;
    const opened = await ctx.run(
      "open_fork",
      (task) => parts.openFork(this.#agent, { ...state, files }, task, ctx.input),
      {
        retry: PREPARE_RETRY,
      },
    );
    this.#draft.change(opened);
    this.#note = noteOf(opened.workspace.root, files.staleBecause);
  }
}

function noteOf(root: string, staleBecause: string | null): string {
  const stale =
    staleBecause === null
      ? ""
      : ` Its files are those of an earlier turn, because later ones were not kept (${staleBecause}).`;
  return (
    `(This session is a fork, and works in a folder of its own from here on: ${root}. It has the files of the last turn that ended before the fork. ` +
    `Files that git ignores, and changes inside of submodules, are not in it.${stale} Look before you rely on what was done.)`
  );
}
