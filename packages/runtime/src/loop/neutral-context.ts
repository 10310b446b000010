// `inNeutral`, `neutral`, `boundHere`: the asynchronous contexts in which loops, agents and steps run.
//
// Node passes the stores of `AsyncLocalStorage` on with every immediate, timer and promise. The loops of a
// runtime serve all its sessions, and a request of any user may start their next turn. They would show that
// request's stores to the agents of all other users.
//
//   neutral-context-1. The loops run in a context without any store, and so does everything that they call.
//       An agent and a registered task begin in an empty context of their own, as `enterWith` changes a
//       context.
//   neutral-context-2. A closure of `ctx.run` runs in the context in which the agent's code gave it. It sees
//       what this code has set, and never the context of the caller of `runtime.start`.
//
// A context can only be captured, so it is captured when this module is loaded. A program that loads Holdfast
// within a request captures the request's stores then. They are removed from the captured resource. Node has
// no public function for that, so `isEmpty` says whether the resource has the form that is known of Node 22
// to 26.

import { AsyncResource } from "node:async_hooks";

/** Without a hook for the end of the resource, which nobody listens to. */
const OPTIONS = { requireManualDestroy: true };

/** Where `AsyncResource` has its stores: all in one frame, or (Node 22) each under a key of its own. */
const FRAME = "context_frame";
const STORE = "kResourceStore";

const captured = emptied(new AsyncResource("HoldfastLoop", OPTIONS));

/** Whether the neutral context is known to be empty, also if this module was loaded within a request. */
export const isNeutralEmpty = stores(captured) !== undefined;

/** The function, run in the neutral context, whatever the context of its caller. */
export function inNeutral(fn: () => void): () => void {
  // mutant: slices-in-a-request
  return () => captured.runInAsyncScope(fn);
}

/** Call a function in a new context without stores (neutral-context-1). */
export function neutral<T>(fn: () => T): T {
  return captured.runInAsyncScope(makeResource).runInAsyncScope(fn);
}

/** The closure, run in the context of this call whenever it is called (neutral-context-2). */
export function boundHere<A, T>(closure: (argument: A) => T): (argument: A) => T {
  const here = makeResource();
  // mutant: steps-in-a-request
  return (argument) => here.runInAsyncScope(closure, undefined, argument);
}

function makeResource(): AsyncResource {
  return new AsyncResource("HoldfastStep", OPTIONS);
}

/** The keys of a resource's stores; `undefined` when its form is not known. */
function stores(resource: AsyncResource): readonly symbol[] | undefined {
  const keys = Object.getOwnPropertySymbols(resource);
  if (!keys.some((key) => key.description === FRAME)) return undefined;
  return keys.filter((key) => key.description === FRAME || key.description === STORE);
}

function emptied(resource: AsyncResource): AsyncResource {
  const held = resource as unknown as Record<symbol, unknown>;
  for (const key of stores(resource) ?? []) held[key] = undefined;
  return resource;
}
