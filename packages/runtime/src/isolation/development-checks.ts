// `installDevelopmentChecks`: reports calls that an agent must not make between two deliveries, as a replay
// would read another value. The call still works, and each line of code is reported once.
//
// The checks patch globals while a runtime is open. They recognise an agent by its asynchronous context, as a
// slice runs only agents. Calls from other code are not reported. Neither are calls from our own packages and
// from node_modules, which read clocks for their own timing.

import { DurableFuture, framesOf, isOurs, UsageError } from "@holdfast/core";

export interface DevelopmentChecksOptions {
  /** The session whose agent is running this very moment, if one is. */
  readonly currentSession: () => string | undefined;
  readonly warn: (sessionId: string, message: string) => void;
  /** Called for every such call, also if its line was reported before. */
  readonly onOutsideCall: (sessionId: string, line: string) => void;
}

type AnyFunction = (this: unknown, ...args: never[]) => unknown;

/** @param watched the function that took the place of the called one. */
type Report = (what: string, instead: string, watched: AnyFunction) => void;

/** Install the checks. The returned function removes them, in the reverse order of other installations. */
export function installDevelopmentChecks({
  currentSession,
  warn,
  onOutsideCall,
}: DevelopmentChecksOptions): () => void {
  const reported = new Set<string>();
  const undo: (() => void)[] = [];

  const report: Report = (what, instead, watched) => {
    const sessionId = currentSession();
    if (sessionId === undefined) return;
    const line = agentLine(watched);
    if (line === undefined) return;
    onOutsideCall(sessionId, line);
    if (reported.has(`${what} ${line}`)) return;
    reported.add(`${what} ${line}`);
    warn(sessionId, `${what} in an agent gives another answer on replay (${line}); use ${instead}`);
  };

  const watch = (owner: object, name: string, what: string, instead: string): void => {
    const holder = owner as Record<string, AnyFunction>;
    const original = holder[name];
    if (typeof original !== "function") return;
    const watched: AnyFunction = function (...args) {
      report(what, instead, watched);
      return original.apply(this, args);
    };
    Object.assign(watched, original);
    holder[name] = watched;
    undo.push(() => {
      if (holder[name] === watched) holder[name] = original;
    });
  };

  watch(Date, "now", "Date.now()", "ctx.now()");
  watch(Math, "random", "Math.random()", "ctx.random()");
  watch(performance, "now", "performance.now()", "ctx.now(), or measure inside a task");
  watch(crypto, "randomUUID", "crypto.randomUUID()", "ctx.randomUuid()");
  watch(crypto, "getRandomValues", "crypto.getRandomValues()", "ctx.random()");
  watch(globalThis, "setTimeout", "setTimeout()", "ctx.sleep()");
  watch(globalThis, "fetch", "fetch()", "a task: ctx.run(name, fn)");
  undo.push(watchDate(report), refuseRacing("race", currentSession), refuseRacing("any", currentSession));
  return () => {
    for (const step of undo.splice(0).toReversed()) step();
  };
}

function watchDate(report: Report): () => void {
  const original = globalThis.Date;
  const watched: DateConstructor = new Proxy(original, {
    construct: function construct(target, args: never[], newTarget) {
      if (args.length === 0) report("new Date()", "new Date(ctx.now())", construct);
      return Reflect.construct(
        target,
        args,
        newTarget === watched ? target : (newTarget as new () => Date),
      ) as object;
    },
  });
  globalThis.Date = watched;
  return () => {
    if (globalThis.Date === watched) globalThis.Date = original;
  };
}

/**
 * K2a: the losers of a native race stay open, and a consuming one would eat the next signal. The session is
 * paused, as for every other mistake with `ctx`.
 */
function refuseRacing(name: "race" | "any", currentSession: () => string | undefined): () => void {
  const holder = Promise as unknown as Record<
    string,
    (this: unknown, items: Iterable<unknown>) => Promise<unknown>
  >;
  const original = holder[name]!;
  const watched = function (this: unknown, items: Iterable<unknown>): Promise<unknown> {
    if (currentSession() === undefined) return original.call(this, items);
    const list = [...items];
    const consuming = list.find(
      (item): item is DurableFuture<unknown> => item instanceof DurableFuture && item.consuming,
    );
    if (consuming === undefined) return original.call(this, list);
    const error = new UsageError(
      `${consuming.label} was given to Promise.${name}(), which would leave it open when it loses`,
      {
        at: agentLine(watched) ?? "the agent",
        fix: `use ctx.${name}(), which withdraws the losers, or { timeoutMs } of the wait itself`,
      },
    );
    return consuming.refuse(error);
  };
  holder[name] = watched;
  return () => {
    if (holder[name] === watched) holder[name] = original;
  };
}

/** The line that called a function of this file, if it is the user's own code. */
function agentLine(below: AnyFunction): string | undefined {
  const here = {};
  Error.captureStackTrace(here, below);
  const caller = framesOf(here)[0] ?? "";
  if (caller.includes("node:") || caller.includes("/node_modules/")) return undefined;
  const place = /\(?(?:file:\/\/)?([^()\s]+:\d+:\d+)\)?$/.exec(caller.trim())?.[1];
  // The nearest frame counts, not the nearest one of the agent: it did not make calls that we make on its
  // behalf.
  return place === undefined || isOurs(place) ? undefined : place;
}
