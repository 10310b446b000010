// `ExecutorChildren`: the children that the executor of a session has started, as the session's agent knows them.
//
//   executor-children-1. The commit that creates a child also remembers it, and only then its executor gets an answer.
//   executor-children-2. A request of a turn that was lost, or of a cancelled session, is not carried out, because nobody waits
//       for its answer. The executor that resumes a turn asks again if it wants to.
//   executor-children-3. A callback is consumed in the commit that starts the turn which it is the prompt of.

import { CHILD_ENDED, HoldfastError, type Callback } from "@holdfast/core";
import { defineTask, remote, type AgentContext, type TaskDefinition } from "@holdfast/runtime";

import { callbackText } from "./callback-text.ts";
import type { AgentAnswers, AgentRequest } from "./turn-reports.ts";

/** The callbacks of one turn have at most this much text between them, unless one alone has more. The others wait. */
const CALLBACK_CHARS = 200_000;

/** A child that the session still has to know. */
export interface KnownChild {
  readonly sessionId: string;
  /** Whether its callback is still to come. */
  readonly callsBack: boolean;
  readonly idempotencyKey?: string;
}

/** The part of a session's context that concerns its children. */
type Context = Pick<
  AgentContext,
  "sessionId" | "scheduleTask" | "spawnAgent" | "child" | "waitForChild" | "takeSignal"
>;

// oxlint-disable-next-line typescript/consistent-type-definitions -- an interface is no JSON value.
type Answer = {
  readonly reportId: string;
} & (
  | { readonly childId: string }
  /** An input that the agent does not take. */
  | { readonly refusal: { readonly message: string; readonly fix: string } }
);

export type AnswerTask = TaskDefinition<Answer, null>;

/** The task that answers requests of an executor. It starts after the commit that asks for it (executor-children-1). */
export function answerTask(executor: string, answers: AgentAnswers): AnswerTask {
  return defineTask<Answer, null>({
    name: `executor-answer:${executor}`,
    description: `An answer to the executor ${executor}.`,
    run: ({ reportId, ...answer }) => {
      if ("childId" in answer) answers.give(reportId, answer.childId);
      else {
        const { message, fix } = answer.refusal;
        answers.refuse(reportId, new HoldfastError("invalid_input", message, { fix }));
      }
      return null;
    },
  });
}

export class ExecutorChildren {
  readonly #ctx: Context;
  readonly #answers: AnswerTask;
  #known: readonly KnownChild[];

  constructor(ctx: Context, answers: AnswerTask, known: readonly KnownChild[]) {
    this.#ctx = ctx;
    this.#answers = answers;
    this.#known = known;
  }

  get known(): readonly KnownChild[] {
    return this.#known;
  }

  /** Carries out a request of the turn that is under way. */
  carryOut(reportId: string, request: AgentRequest): void {
    const answer = (childId: string): void =>
      void this.#ctx.scheduleTask(this.#answers, { reportId, childId });
    if (request.type === "start_child") {
      try {
        return answer(this.#start(request));
      } catch (error) {
        if (!HoldfastError.is(error) || error.code !== "invalid_input") throw error;
        const refusal = { message: error.message, fix: error.fix ?? "" };
        return void this.#ctx.scheduleTask(this.#answers, { reportId, refusal });
      }
    }
    const { childId } = request;
    const answerAtEnd = (): void => answer(childId);
    void this.#ctx.waitForChild(this.#ctx.child(childId)).then(answerAtEnd, answerAtEnd);
  }

  #start({
    agent,
    input,
    mode,
    idempotencyKey,
    timeoutMs,
  }: AgentRequest & { readonly type: "start_child" }): string {
    const known = this.#known.find(
      (child) => idempotencyKey !== undefined && child.idempotencyKey === idempotencyKey,
    );
    if (known !== undefined) return known.sessionId;
    const callsBack = mode === "async_callback";
    const patience = timeoutMs === undefined ? {} : { timeoutMs };
    const notify = callsBack ? "callback" : "end";
    const { sessionId } = this.#ctx.spawnAgent(remote(agent), input, { notify, ...patience });
    const key = idempotencyKey === undefined ? {} : { idempotencyKey };
    if (callsBack || idempotencyKey !== undefined)
      this.#known = [...this.#known, { sessionId, callsBack, ...key }];
    return sessionId;
  }
}

/** Whether callbacks are still to come. Children of the session from which this one was forked call back to that one. */
export function expectsCallbacks(
  { sessionId }: Pick<Context, "sessionId">,
  known: readonly KnownChild[],
): boolean {
  return known.some((child) => child.callsBack && child.sessionId.startsWith(`${sessionId}-`));
}

/** executor-children-3. The prompt of the callbacks that have come, and the children that are still to be known. */
export function takeCallbacks(
  ctx: Context,
  known: readonly KnownChild[],
): { readonly prompt: string; readonly children: readonly KnownChild[] } | undefined {
  const taken: Callback[] = [];
  for (let chars = 0; chars < CALLBACK_CHARS;) {
    const callback = ctx.takeSignal<Callback>(CHILD_ENDED);
    if (callback === undefined) break;
    taken.push(callback);
    chars += JSON.stringify(callback).length;
  }
  const [first, ...others] = taken;
  if (first === undefined) return undefined;
  const ended = new Set(taken.map(({ child }) => child));
  const children = known
    .map((child) => (ended.has(child.sessionId) ? { ...child, callsBack: false } : child))
    .filter(({ callsBack, idempotencyKey }) => callsBack || idempotencyKey !== undefined);
  return { prompt: callbackText([first, ...others]), children };
}
