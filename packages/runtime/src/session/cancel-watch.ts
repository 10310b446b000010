// A session's cancel: asked for by whoever has a reason, noticed when it is stored, and its deadline.
//
// A cancel is acknowledged by storage before the agent hears of it, whoever asks: a person, the parent, the session's own
// deadline, a question that nobody answered, a budget. So all of them end the same way, also without this process.

import type { CancelCause, Clock, Exhausted, HoldfastError, RequestCancel, Session } from "@holdfast/core";
import { noticeOf } from "@holdfast/core/internal";
import type { EventDraft } from "../tasks/attempts.ts";
import type { Submit } from "./session-claim.ts";
import { alarm, type Timers } from "../loop/timers.ts";

const AGAIN_MS = 100;

type Why = Pick<RequestCancel, "reason" | "cause" | "exhausted">;

/** What it needs of its session. */
export interface CancelHost {
  readonly sessionId: string;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly graceMs: number;
  readonly submit: Submit;
  isOver(): boolean;
  /** Whether its agent has been told. */
  isTold(): boolean;
  /** Deliver it before anything else. */
  tell(event: EventDraft): void;
  /** Something was stored for the session. */
  look(): void;
  fail(error: HoldfastError): void;
}

export class CancelWatch {
  readonly #host: CancelHost;
  readonly #endAlarm = alarm(() => this.#end());
  readonly #deadlineAlarm = alarm(() => this.request("deadline", "its time is up"));
  #seen = false;
  #questionGivenUp = false;

  constructor(host: CancelHost, session: Pick<Session, "cancel" | "deadlineAt">) {
    this.#host = host;
    this.notice(session);
    if (session.deadlineAt !== undefined) host.timers.set(this.#deadlineAlarm, session.deadlineAt);
  }

  /** Whether one is under way. */
  get seen(): boolean {
    return this.#seen;
  }

  /** What is stored says whether there is one. */
  notice({ cancel }: Pick<Session, "cancel">): void {
    if (cancel === undefined || this.#seen || cancel.mode !== "graceful") return;
    this.#seen = true;
    this.#host.timers.set(this.#endAlarm, cancel.deadlineAt);
    if (this.#host.isTold()) return;
    this.#host.tell({ type: "cancel_requested", at: this.#host.clock.now(), ...noticeOf(cancel) });
  }

  /** Whether one was asked for because of a question, and is not stored yet: until it is, that time is up is nothing to act on. */
  get isGivingUp(): boolean {
    return this.#questionGivenUp && !this.#seen;
  }

  /** Ask for one, unless there is one. */
  request(cause: CancelCause, reason: string): void {
    this.#ask({ cause, reason });
  }

  /** Ask for that of the session whose budget it is, which reaches this one too; for its own, when that one has ended. */
  requestForBudget(exhausted: Exhausted, reason: string): void {
    const { sessionId: self, graceMs, submit } = this.#host;
    const why = { cause: "budget_exceeded", reason, exhausted } as const;
    if (exhausted.payer === self) return this.#ask(why);
    submit(
      { type: "request_cancel", sessionId: exhausted.payer, mode: "graceful", graceMs, ...why },
      ({ status }) => {
        if (this.#host.isOver()) return;
        if (status === "requested") this.#host.look();
        else this.#ask(why);
      },
      (error) => this.#host.fail(error),
    );
  }

  #ask(why: Why): void {
    if (!this.#seen) this.#submit({ mode: "graceful", graceMs: this.#host.graceMs, ...why });
  }

  /** A question nobody answered in time is the end of its session, which its agent may clean up after. */
  giveUpQuestion(prompt: string): void {
    if (this.#questionGivenUp) return;
    this.#questionGivenUp = true;
    this.request("input_timeout", `nobody answered "${prompt}"`);
  }

  close(): void {
    this.#host.timers.set(this.#endAlarm, Infinity);
    this.#host.timers.set(this.#deadlineAlarm, Infinity);
  }

  #end(): void {
    if (!this.#host.isOver()) this.#submit({ mode: "hard", graceMs: 0, reason: "the grace period ended" });
  }

  #submit(request: Why & Pick<RequestCancel, "mode" | "graceMs">): void {
    const { sessionId, timers } = this.#host;
    const again = alarm(() => {
      if (!this.#host.isOver()) this.#submit(request);
    });
    this.#host.submit(
      { type: "request_cancel", sessionId, ...request },
      ({ status }) => {
        // Asked for in its first slice: it is not stored yet.
        if (status === "not_found") timers.after(again, AGAIN_MS);
        else this.#host.look();
      },
      (error) => this.#host.fail(error),
    );
  }
}
