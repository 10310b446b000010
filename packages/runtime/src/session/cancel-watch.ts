// `CancelWatch`: requests a session's cancel, notices a stored one, and watches its deadline.
//
// Storage acknowledges a cancel before the agent is notified. This holds for a cancel by a person, the
// parent, the session's deadline, an unanswered question, or a budget. Therefore all of them end the same
// way, even without this process.

import { type CancelCause, type Exhausted, noticeOf, type RequestCancel, type Session } from "@holdfast/core";
import type { Attempts } from "../tasks/attempts.ts";
import type { DriverWorld } from "./driver-environment.ts";
import type { DrivenSession } from "./driven-session.ts";
import { HANDED_OVER } from "./session-row.ts";
import { alarm } from "../loop/timers.ts";

const AGAIN_MS = 100;

type Why = Pick<RequestCancel, "reason" | "cause" | "exhausted">;

export class CancelWatch {
  readonly #world: Pick<DriverWorld, "clock" | "limits" | "submit" | "timers">;
  readonly #driven: DrivenSession;
  readonly #attempts: Attempts;
  readonly #endAlarm = alarm(() => this.#end());
  readonly #deadlineAlarm = alarm(() => this.request("deadline", "its time is up"));
  #seen = false;
  #questionGivenUp = false;

  constructor(world: DriverWorld, driven: DrivenSession, attempts: Attempts) {
    this.#world = world;
    this.#driven = driven;
    this.#attempts = attempts;
    const { deadlineAt } = driven.session;
    this.notice(driven.session);
    if (deadlineAt !== undefined) world.timers.set(this.#deadlineAlarm, deadlineAt);
  }

  /** Whether a stored cancel was noticed. */
  get seen(): boolean {
    return this.#seen;
  }

  /** Whether a cancel was noticed, or the agent has been notified of one. */
  get isCancelling(): boolean {
    // mutant: unseen-cancel-completes
    return this.#driven.kernel.turn.cancel !== undefined || this.#seen;
  }

  /** Take over the cancel of a stored session, if it has one. */
  notice({ cancel }: Pick<Session, "cancel">): void {
    if (cancel === undefined || this.#seen || cancel.mode !== "graceful") return;
    this.#seen = true;
    this.#world.timers.set(this.#endAlarm, cancel.deadlineAt);
    const { pending, kernel, drainTo } = this.#driven;
    // At an orderly stop the next process tells the agent.
    if (kernel.turn.cancel !== undefined || drainTo === HANDED_OVER) return;
    pending.addFirst({ type: "cancel_requested", at: this.#world.clock.now(), ...noticeOf(cancel) });
    if (drainTo !== undefined) this.#attempts.reportKept(kernel.open.tasks());
    this.#driven.drainTo = undefined;
    this.#attempts.starts.refuseUnpaid();
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
   * Request a cancel of the payer, which reaches this session too. If the payer has ended, cancel this
   * session.
   */
  requestForBudget(exhausted: Exhausted, reason: string): void {
    const { submit, limits } = this.#world;
    const why = { cause: "budget_exceeded", reason, exhausted } as const;
    if (exhausted.payer === this.#driven.sessionId) return this.#ask(why);
    submit(
      {
        type: "request_cancel",
        sessionId: exhausted.payer,
        mode: "graceful",
        graceMs: limits.cancelGraceMs,
        ...why,
      },
      ({ status }) => {
        if (this.#driven.isOver) return;
        if (status === "requested") this.#driven.driver.poke();
        else this.#ask(why);
      },
      (error) => this.#driven.driver.abandon(error),
    );
  }

  #ask(why: Why): void {
    if (!this.#seen) this.#submit({ mode: "graceful", graceMs: this.#world.limits.cancelGraceMs, ...why });
  }

  /** Cancel the session for a question that nobody answered in time; its agent may clean up. */
  giveUpQuestion(prompt: string): void {
    if (this.#questionGivenUp) return;
    this.#questionGivenUp = true;
    this.request("input_timeout", `nobody answered "${prompt}"`);
  }

  close(): void {
    this.#world.timers.set(this.#endAlarm, Infinity);
    this.#world.timers.set(this.#deadlineAlarm, Infinity);
  }

  #end(): void {
    if (!this.#driven.isOver) this.#submit({ mode: "hard", graceMs: 0, reason: "the grace period ended" });
  }

  #submit(request: Why & Pick<RequestCancel, "mode" | "graceMs">): void {
    const { sessionId, driver } = this.#driven;
    const { submit, timers } = this.#world;
    const again = alarm(() => {
      if (!this.#driven.isOver) this.#submit(request);
    });
    submit(
      { type: "request_cancel", sessionId, ...request },
      ({ status }) => {
        // The session is in its first slice, and not stored yet.
        if (status === "not_found") timers.after(again, AGAIN_MS);
        else driver.poke();
      },
      (error) => driver.abandon(error),
    );
  }
}
