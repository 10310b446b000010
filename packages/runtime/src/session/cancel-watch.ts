// `CancelWatch`: requests a session's cancel, notices a stored one, and watches its deadline.
//
// Storage acknowledges a cancel before the agent is notified. This holds for a cancel by a person, the
// parent, the session's deadline, an unanswered question, or a budget. Therefore all of them end the same
// way, even without this process.

import type { CancelCause, Clock, Exhausted, HoldfastError, RequestCancel, Session } from "@holdfast/core";
import { noticeOf } from "@holdfast/core/internal";
import type { EventDraft } from "../tasks/attempts.ts";
import type { Submit } from "./session-claim.ts";
import { alarm, type Timers } from "../loop/timers.ts";

const AGAIN_MS = 100;

type Why = Pick<RequestCancel, "reason" | "cause" | "exhausted">;

/** The interface of the session whose cancel is watched. */
export interface CancelHost {
  readonly sessionId: string;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly graceMs: number;
  readonly submit: Submit;
  isOver(): boolean;
  /** Whether its agent has been notified. */
  isDelivered(): boolean;
  /** Deliver the cancel before anything else. */
  deliver(event: EventDraft): void;
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

  /** Whether a stored cancel was noticed. */
  get seen(): boolean {
    return this.#seen;
  }

  /** Take over the cancel of a stored session, if it has one. */
  notice({ cancel }: Pick<Session, "cancel">): void {
    if (cancel === undefined || this.#seen || cancel.mode !== "graceful") return;
    this.#seen = true;
    this.#host.timers.set(this.#endAlarm, cancel.deadlineAt);
    if (this.#host.isDelivered()) return;
    this.#host.deliver({ type: "cancel_requested", at: this.#host.clock.now(), ...noticeOf(cancel) });
  }

  /**
   * Whether an unanswered question has requested a cancel that is not stored yet. Until then its expired wait
   * is left alone.
   */
  get isGivingUp(): boolean {
    return this.#questionGivenUp && !this.#seen;
  }

  /** Request a cancel, unless there is one. */
  request(cause: CancelCause, reason: string): void {
    this.#ask({ cause, reason });
  }

  /**
   * Request a cancel of the payer, which reaches this session too. If the payer has ended, cancel this session.
   */
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

  /** Cancel the session for a question that nobody answered in time; its agent may clean up. */
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
        // The session is in its first slice, and not stored yet.
        if (status === "not_found") timers.after(again, AGAIN_MS);
        else this.#host.look();
      },
      (error) => this.#host.fail(error),
    );
  }
}
