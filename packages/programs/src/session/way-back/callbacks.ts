// The callbacks of sessions that an agent has started (`takeCallbacks`): each tells how one of them ended,
// and they are the prompt of a turn.
//
//   callbacks-1. A callback is consumed in the commit that begins the turn of which it is the prompt.
//   callbacks-2. A session with callbacks to come does not end, however long they take.

import { CHILD_ENDED, type Callback } from "@holdfast/core";
import type { AgentContext } from "@holdfast/runtime";

import { callbackText } from "./callback-text.ts";
import type { StartedSession } from "./started-sessions.ts";

/** The callbacks of one turn have at most this much text between them, unless one alone has more. The others wait. */
const CALLBACK_CHARS = 200_000;

/**
 * Whether callbacks are still to come (callbacks-2). Children of the session from which this one was forked
 * call back to that one.
 */
export function expectsCallbacks(
  { sessionId }: Pick<AgentContext, "sessionId">,
  started: readonly StartedSession[],
): boolean {
  return started.some((one) => one.callsBack === true && one.sessionId.startsWith(`${sessionId}-`));
}

/** Whether a callback has come, or is still to come. */
export function isCalledBack(
  ctx: Pick<AgentContext, "sessionId" | "hasSignal">,
  started: readonly StartedSession[],
): boolean {
  // mutant: callback-given-up
  return expectsCallbacks(ctx, started) || ctx.hasSignal(CHILD_ENDED);
}

/** callbacks-1. The prompt of the callbacks that have come, and the sessions as they are known then. */
export function takeCallbacks(
  ctx: Pick<AgentContext, "takeSignal">,
  started: readonly StartedSession[],
): { readonly prompt: string; readonly started: readonly StartedSession[] } | undefined {
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
  return {
    prompt: callbackText([first, ...others]),
    started: started.map((one) => {
      const { callsBack: _told, ...rest } = one;
      return ended.has(one.sessionId) ? rest : one;
    }),
  };
}
