// The calls of an external agent to its session, carried out by the session (`WayBackCalls`).
//
//   - A call is recorded with the events of its turn before it is carried out, and its effects are in the
//     commit of its session.
//   way-back-calls-2. Where a turn was cut off, the agent may not have seen the result of a call. If it
//       repeats the call in a later turn of the same request, with equal arguments, it gets the recorded
//       result, once. Nothing is carried out again.
//   - A question outlives its process, as a question for a permission does. Its answer begins the next turn.
//   - An equal question that is still open is not asked a second time.

import { HoldfastError } from "@holdfast/core";
import type { AgentContext } from "@holdfast/runtime";

import { textOrJson } from "../fields.ts";
import type { LiveTurns } from "../turn-task.ts";
import type { SessionCallEvent } from "./pending-calls.ts";
import {
  failed,
  StartedSessions,
  succeeded,
  type StartedParts,
  type StartedSession,
} from "./started-sessions.ts";
import type { CallResult } from "./way-back.ts";
import { isLook, isQuestion, type SessionCall } from "./way-back-tools.ts";

/** A call that was carried out (way-back-calls-2). */
export interface DoneCall {
  readonly key: string;
  readonly result: CallResult;
}

/** A result that did not reach the agent for certain. */
export interface LateResult {
  readonly call: SessionCall;
  readonly result: CallResult;
}

const NOTHING_USED: NonNullable<SessionCallEvent["used"]> = { tokens: 0, costMicroUsd: 0 };

interface Made {
  readonly call: SessionCall;
  readonly result: Promise<CallResult>;
  /** Whether the result was written to the agent. */
  readonly isDelivered: Promise<boolean>;
}

type Context = Pick<
  AgentContext,
  | "run"
  | "signalParent"
  | "requestFromParent"
  | "requestInput"
  | "reportProgress"
  | "remainingBudget"
  | "spawnAgent"
  | "waitForChild"
  | "waitForChildEvent"
  | "child"
  | "signalChild"
  | "sleep"
>;

interface CallParts extends StartedParts {
  readonly live: LiveTurns;
}

/** The record of earlier turns. */
interface EarlierCalls {
  readonly done: readonly DoneCall[];
  readonly started: readonly StartedSession[];
}

export class WayBackCalls {
  /** The calls of earlier turns that a call of this turn may repeat. */
  done: readonly DoneCall[];
  readonly #ctx: Context;
  readonly #live: LiveTurns;
  readonly #sessions: StartedSessions;
  readonly #made: Made[] = [];
  readonly #open = new Map<string, Promise<CallResult>>();

  constructor(ctx: Context, { live, ...parts }: CallParts, { done, started }: EarlierCalls) {
    this.#ctx = ctx;
    this.#live = live;
    this.#sessions = new StartedSessions(ctx, parts, started);
    this.done = done;
  }

  /** The sessions that the agent has started, in this turn and before. */
  get started(): readonly StartedSession[] {
    return this.#sessions.started;
  }

  take(event: SessionCallEvent): void {
    const result = this.#resultOf(event);
    const isDelivered = result.then((given) => this.#deliver(event.callId, given));
    for (const promise of [result, isDelivered]) promise.catch(() => {}); // Awaited only at the end of the turn.
    this.#made.push({ call: event.call, result, isDelivered });
  }

  /**
   * Waits for every call of a turn that is over. The calls count as done for the next turn.
   *
   * @param seenResults how many results of this tool the agent has reported.
   * @returns the results that the agent has not seen for certain.
   */
  async late(seenResults: (tool: string) => number): Promise<readonly LateResult[]> {
    const seen = new Map<string, number>();
    const late: LateResult[] = [];
    for (const { call, result, isDelivered } of this.#made) {
      const given = await result;
      const count = (seen.get(call.tool) ?? 0) + 1;
      const isSeen = (await isDelivered) && count <= seenResults(call.tool);
      if (isSeen) seen.set(call.tool, count);
      else if (!isLook(call)) late.push({ call, result: given });
    }
    this.done = [...this.done, ...late.map(({ call, result }) => ({ key: keyOf(call), result }))];
    return late;
  }

  #resultOf({ call, used }: SessionCallEvent): Promise<CallResult> {
    const key = keyOf(call);
    // way-back-calls-2.
    const at = this.done.findIndex((one) => one.key === key);
    const known = this.done[at];
    if (known !== undefined) {
      this.done = this.done.toSpliced(at, 1);
      return Promise.resolve(known.result);
    }
    const open = this.#open.get(key);
    if (open !== undefined) return open;
    const result = this.#carryOut(call, used);
    if (!isQuestion(call)) return result;
    this.#open.set(key, result);
    const forget = (): void => void this.#open.delete(key);
    result.then(forget, forget);
    return result;
  }

  async #carryOut(call: SessionCall, used = NOTHING_USED): Promise<CallResult> {
    switch (call.tool) {
      case "signal_parent": {
        const { name = "message", text } = call.input;
        const isSent = this.#ctx.signalParent(name, { text });
        return isSent ? succeeded("Sent.") : failed("This session has no parent.");
      }
      case "report_progress":
        this.#ctx.reportProgress({ progress: call.input.text });
        return succeeded("Reported.");
      case "remaining_budget": {
        const { tokens, costMicroUsd, ...rest } = this.#ctx.remainingBudget();
        return succeeded(
          JSON.stringify({
            ...rest,
            ...(tokens === undefined ? {} : { tokens: Math.max(0, tokens - used.tokens) }),
            ...(costMicroUsd === undefined
              ? {}
              : { costMicroUsd: Math.max(0, costMicroUsd - used.costMicroUsd) }),
          }),
        );
      }
      case "ask_parent": {
        const { question } = call.input;
        return (
          (await this.#askHandler(question)) ?? this.#ask(`For the parent of this session: ${question}`, {})
        );
      }
      case "request_input": {
        const { question, options, approval = false } = call.input;
        const details = options === undefined ? {} : { details: { options } };
        return approval ? this.#askApproval(question, details) : this.#ask(question, details);
      }
      case "list_agent_blueprints":
        return this.#sessions.agents();
      case "start_agent_session":
        return this.#sessions.start(call.input);
      case "list_agent_sessions":
        return this.#sessions.list();
      case "resume_agent_session":
        return this.#sessions.resume(call.input);
      case "get_agent_session_status":
        return this.#sessions.status(call.input.session_id);
      case "get_agent_session_result":
        return this.#sessions.result(call.input.session_id);
      case "delete_all_agent_sessions":
        return this.#sessions.deleteEnded();
    }
  }

  /** The handler `ask_parent` of the parent's agent. @returns `undefined` where there is none. */
  async #askHandler(question: string): Promise<CallResult | undefined> {
    try {
      return succeeded(textOrJson(await this.#ctx.requestFromParent("ask_parent", { question })));
    } catch (error) {
      if (!HoldfastError.is(error)) throw error;
      return undefined; // A person answers.
    }
  }

  async #ask(prompt: string, details: { readonly details?: object }): Promise<CallResult> {
    return succeeded(
      textOrJson(await this.#ctx.requestInput<unknown>({ prompt, ...details }, { answer: "any" })),
    );
  }

  async #askApproval(prompt: string, details: { readonly details?: object }): Promise<CallResult> {
    const { approved, reason } = await this.#ctx.requestInput({ prompt, ...details });
    const said = reason === undefined ? "" : ` The reason: ${reason}`;
    return succeeded(`${approved ? "Yes." : "No."}${said}`);
  }

  async #deliver(callId: number, result: CallResult): Promise<boolean> {
    try {
      return await this.#ctx.run(
        "answer_call",
        ({ sessionId }) => this.#live.get(sessionId)?.answerCall(callId, result) === true,
        { retry: { maxAttempts: 1 } },
      );
    } catch (error) {
      if (HoldfastError.is(error)) return false; // It is unknown.
      throw error;
    }
  }
}

/** The call and its result, for a prompt. */
export function lateText({ call: { tool, input }, result }: LateResult): string {
  return `You called ${tool} ${JSON.stringify(input)}. It was carried out, and you need not repeat it. Its result: ${result.text}`;
}

function keyOf({ tool, input }: SessionCall): string {
  return JSON.stringify([tool, input]);
}
