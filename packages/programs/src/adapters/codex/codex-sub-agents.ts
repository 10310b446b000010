// `CodexSubAgents`: the sub-agents of a Codex turn, each of which works in a thread of its own. Observed with
// 0.171.
//
//   - The work of a thread names the call that started it. A first message of a thread may come before the
//     call says which thread it has started. Then the open call counts, or the id of the thread where not
//     exactly one call is open.
//   - The usage of a thread is counted for the turns that began in this process, as for the agent itself
//     (codex-dialogue-2).

import type { Author } from "../../session/external-agent-protocol.ts";
import { fieldsOf, textOr, type Fields } from "../../session/fields.ts";

interface SubAgent {
  readonly parentCallId: string;
  readonly turnIds: Set<string>;
}

export class CodexSubAgents {
  readonly #byThread = new Map<string, SubAgent>();
  /** Calls that start a thread and do not say yet which. */
  readonly #starting = new Set<string>();

  /** An item of any thread, which may be a call that starts another one. */
  item({ type, id, tool, receiverThreadIds, kind, agentThreadId }: Fields, isCompleted: boolean): void {
    const callId = textOr(id, "");
    if (type === "subAgentActivity" && kind === "started") this.#started(agentThreadId, callId);
    if (type !== "collabAgentToolCall" || tool !== "spawnAgent") return;
    for (const thread of Array.isArray(receiverThreadIds) ? receiverThreadIds : [])
      this.#started(thread, callId);
    if (isCompleted) this.#starting.delete(callId);
    else this.#starting.add(callId);
  }

  authorOf(threadId: string): Required<Author> {
    return { parentCallId: this.#of(threadId).parentCallId };
  }

  turnStarted(threadId: string, params: Fields): void {
    this.#of(threadId).turnIds.add(textOr(fieldsOf(params["turn"])["id"], ""));
  }

  countsTurn(threadId: string, turnId: unknown): boolean {
    return typeof turnId === "string" && this.#of(threadId).turnIds.has(turnId);
  }

  #started(thread: unknown, parentCallId: string): void {
    if (typeof thread === "string" && !this.#byThread.has(thread))
      this.#byThread.set(thread, { parentCallId, turnIds: new Set() });
  }

  #of(threadId: string): SubAgent {
    const [open, ...others] = this.#starting;
    this.#started(threadId, open !== undefined && others.length === 0 ? open : threadId);
    return this.#byThread.get(threadId)!;
  }
}
