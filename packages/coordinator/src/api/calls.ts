// `Calls` makes one call of a method for any protocol. It checks the caller, the rate and the request, and
// converts what the service throws.
//
//   - No code of a service runs before token, role and rate are checked, and the message keeps every
//     constraint.
//   - A method whose contract names no callers cannot be called.
//   - A service may throw anything. Callers get a HoldfastError.
//   - A stream ends when its token becomes invalid.

import { clearInterval, setInterval } from "node:timers";
import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { HoldfastError, toError } from "@holdfast/core";
import { callerOf, NOBODY, type Authenticate, type Caller } from "../call/caller.ts";
import type { Implementation, Methods } from "../call/methods.ts";
import { findViolations } from "./constraints.ts";
import { mayCall, methodOf, type Method } from "./contract.ts";
import { ratesOf, type ApiLimits } from "./limits.ts";
import { Rates } from "./rates.ts";
import { invalid, Refusal, type FieldError } from "../call/refusal.ts";
import { taken } from "../store/taken.ts";
import { ANOTHER_TOKEN, tokenFor } from "../call/token-advice.ts";

export interface CallOptions {
  /** A missing method is answered with `not_implemented`. */
  readonly methods: Methods;
  readonly authenticate: Authenticate;
  readonly limits: ApiLimits;
  /** Milliseconds that only grow. */
  readonly monotonic: () => number;
}

export class Calls {
  readonly #options: CallOptions;
  readonly #rates: Rates;
  readonly #streams = new Map<string, number>();
  /** The Authorization headers of open streams. */
  readonly #rechecked = new Map<
    string,
    { readonly stops: Set<(error: Error) => void>; readonly timer: NodeJS.Timeout }
  >();

  constructor(options: CallOptions) {
    this.#options = options;
    this.#rates = new Rates(ratesOf(options.limits), options.monotonic);
  }

  /** @throws Refusal `unauthenticated` or `token_revoked`. */
  async authenticate(authorization: string | undefined): Promise<Caller> {
    const token = /^Bearer ([\x21-\x7e]{1,500})$/i.exec(authorization ?? "")?.[1];
    const found = token === undefined ? undefined : await this.#options.authenticate(token);
    if (found?.status === "known") return found.caller;
    throw found?.status === "revoked"
      ? new Refusal("token_revoked", "this token was revoked, has expired or was used up", {
          expected: "a valid token; a registration token is valid for one runner, once",
          fix: ANOTHER_TOKEN,
        })
      : new Refusal(
          "unauthenticated",
          token === undefined ? "the request has no token" : "the token is unknown",
          {
            expected: "the header Authorization: Bearer TOKEN, with a token of this coordinator",
            fix: ANOTHER_TOKEN,
          },
        );
  }

  /** Refuses a call that this caller may not make now. @throws Refusal */
  admit(method: Method, caller: Caller): void {
    if (!mayCall(method, caller.kind)) {
      throw new Refusal(
        "insufficient_scope",
        `a token of kind "${caller.kind}" may not call ${method.name}`,
        tokenFor(method.callers),
      );
    }
    if (method.counts !== undefined && isLimited(caller)) this.#rates.take(method.counts, caller.tokenId);
  }

  /** Checks token, role and rate of a method that is known from the start. */
  async enter(desc: DescMethod, authorization: string | undefined): Promise<Caller> {
    const method = methodOf(desc);
    const caller = method.isOpen ? NOBODY : await this.authenticate(authorization);
    this.admit(method, caller);
    return caller;
  }

  /** @throws HoldfastError and no other error. */
  async unary(
    desc: DescMethod,
    request: Message,
    context: HandlerContext,
    found: readonly FieldError[] = [],
  ) {
    refuseInvalid(desc, request, found);
    try {
      const answer = await (this.#implementation(desc)(request, context) as Promise<object>);
      return create(desc.output, answer as never) as Message;
    } catch (thrown) {
      throw toOurs(thrown);
    }
  }

  /** @throws HoldfastError and no other error, from its first element on. */
  async *stream(
    desc: DescMethod,
    request: Message,
    context: HandlerContext,
    found: readonly FieldError[] = [],
  ): AsyncGenerator<Message> {
    refuseInvalid(desc, request, found);
    const caller = callerOf(context);
    const leave = this.#enterStream(caller);
    const guard = this.#guard(caller, context);
    const answers = (this.#implementation(desc)(request, context) as AsyncIterable<object>)[
      Symbol.asyncIterator
    ]();
    try {
      for (;;) {
        const next = await guard.unlessOver(answers.next());
        if (next.done === true) return;
        yield create(desc.output, taken(next) as never);
      }
    } catch (thrown) {
      throw toOurs(thrown);
    } finally {
      leave();
      guard.end();
      // Not awaited: the generator may wait for an event that never comes, and its signal is aborted already.
      void answers.return?.()?.then(undefined, () => {});
    }
  }

  #implementation(desc: DescMethod): Implementation {
    const found = this.#options.methods.get(desc);
    if (found !== undefined) return found;
    throw new Refusal("not_implemented", `this coordinator does not serve ${desc.parent.name}.${desc.name}`);
  }

  #enterStream(caller: Caller): () => void {
    const open = this.#streams.get(caller.tokenId) ?? 0;
    const { streamsPerToken } = this.#options.limits;
    if (isLimited(caller) && open >= streamsPerToken) {
      throw new Refusal("rate_limited", `this token has ${open} streams open`, {
        expected: `at most ${streamsPerToken} open streams`,
        fix: "close one stream, or watch several things over one stream",
        retryAfterMs: 1000,
      });
    }
    this.#streams.set(caller.tokenId, open + 1);
    return () => {
      const left = (this.#streams.get(caller.tokenId) ?? 1) - 1;
      if (left === 0) this.#streams.delete(caller.tokenId);
      else this.#streams.set(caller.tokenId, left);
    };
  }

  /** Ends waits when the token becomes invalid, or when the call ends from outside. */
  #guard(caller: Caller, { requestHeader, signal }: HandlerContext): Guard {
    const authorization = requestHeader.get("authorization") ?? undefined;
    let over: Error | undefined;
    let waiting: ((error: Error) => void) | undefined;
    const stop = (error: Error): void => {
      over ??= error;
      waiting?.(over);
    };
    const onAbort = (): void => stop(new Refusal("unavailable", "the stream was closed"));
    const forget = caller.kind === "none" ? (): void => {} : this.#recheck(authorization, stop);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    return {
      unlessOver: (promise) =>
        new Promise((resolve, reject) => {
          waiting = reject;
          promise.then(resolve, reject);
          if (over !== undefined) reject(over);
        }),
      end: () => {
        forget();
        signal.removeEventListener("abort", onAbort);
      },
    };
  }

  /** Stops each stream with this token when the token becomes invalid. One check serves all of them. */
  #recheck(authorization: string | undefined, stop: (error: Error) => void): () => void {
    const key = authorization ?? "";
    let checked = this.#rechecked.get(key);
    if (checked === undefined) {
      const stops = new Set<(error: Error) => void>();
      const timer = setInterval(() => {
        this.authenticate(authorization).catch((error: Error) => {
          for (const each of stops) each(error);
        });
      }, this.#options.limits.recheckMs);
      this.#rechecked.set(key, (checked = { stops, timer }));
    }
    const { stops, timer } = checked;
    stops.add(stop);
    return () => {
      stops.delete(stop);
      if (stops.size > 0) return;
      clearInterval(timer);
      this.#rechecked.delete(key);
    };
  }
}

interface Guard {
  /** The promise, unless the stream ends first. There is one such promise at a time. */
  readonly unlessOver: <T>(promise: Promise<T>) => Promise<T>;
  readonly end: () => void;
}

/** Admins are people or tests, and a runner's writes are the work itself. */
function isLimited({ kind }: Caller): boolean {
  return kind === "user" || kind === "job";
}

/**
 * Refuses a request with the mistakes found while reading it, and with violated constraints of the other
 * fields.
 */
function refuseInvalid(desc: DescMethod, request: Message, found: readonly FieldError[]): void {
  const violations = findViolations(desc.input, request);
  if (found.length === 0 && violations.length === 0) return;
  const known = new Set(found.map(({ pointer }) => pointer));
  throw invalid([...found, ...violations.filter(({ pointer }) => !known.has(pointer))]);
}

function toOurs(thrown: unknown): HoldfastError {
  if (HoldfastError.is(thrown)) return thrown;
  // A defect of the service. The text of its error may contain anything.
  return new HoldfastError("internal", toError(thrown).message, { cause: thrown });
}
