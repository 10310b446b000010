// `killUntilEnded`: one session of `holdfast run` or of a runner, whose process is killed at random moments
// until the session has ended.

import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { Finished, HoldfastProcess } from "./holdfast-process.ts";

/** A session, as `holdfast show --json` prints it. */
export interface SeenSession {
  readonly status: string;
  readonly error?: { readonly message: string };
  readonly waits?: readonly { readonly id?: string; readonly prompt?: string }[];
  readonly entries: readonly { readonly role: string; readonly content: unknown }[];
}

export interface KilledSession {
  /** Starts the process that begins the session, or that goes on with it. */
  start(isFirst: boolean): Promise<HoldfastProcess>;
  /** Resolves when the process works on the session, or when it can do nothing more without a person. */
  works(process: HoldfastProcess, isOver: (session: SeenSession) => boolean): Promise<unknown>;
  /** The kills of the whole test. A process that begins after the last one is not killed. */
  readonly kills: { done: number; readonly max: number };
  /** The longest time of work before a kill. */
  readonly withinMs: number;
  /** Called after each process with what is stored. It may throw. */
  check(session: SeenSession): void;
  show(): Promise<SeenSession>;
  /** Approves the question of the session. It is called once for each question. */
  approve(session: SeenSession): Promise<Finished>;
  /** Resolves when the process that is not killed has ended, or ends it when it can do nothing more. */
  ends(process: HoldfastProcess, isOver: (session: SeenSession) => boolean): Promise<void>;
}

const OPEN = ["working", "waiting", "input_required", "submitted"];

/** @returns the session that has completed. */
export async function killUntilEnded(killed: KilledSession): Promise<SeenSession> {
  const answered = new Set<string>();
  const newQuestion = (session: SeenSession): string | undefined =>
    questionsOf(session).find((question) => !answered.has(question));
  const isOver = (session: SeenSession): boolean =>
    session.status === "completed" || newQuestion(session) !== undefined;
  for (let isFirst = true; ; isFirst = false) {
    const { kills } = killed;
    const isKilled = kills.done < kills.max;
    const running = await killed.start(isFirst);
    if (isKilled) {
      kills.done++;
      await Promise.race([running.finished, killed.works(running, isOver)]);
      await Promise.race([running.finished, delay(Math.random() * killed.withinMs)]);
      running.kill("SIGKILL");
      await running.finished;
    } else await killed.ends(running, isOver);
    const session = await killed.show();
    killed.check(session);
    if (session.status === "completed") return session;
    expect(OPEN, session.error?.message).toContain(session.status);
    const question = newQuestion(session);
    if (question !== undefined) {
      const { code, stderr } = await killed.approve(session);
      expect(code, stderr).toBe(0);
      answered.add(question);
    } else expect(isKilled, `the answer to ${questionsOf(session).join()} was lost`).toBe(true);
  }
}

function questionsOf({ status, waits = [] }: SeenSession): readonly string[] {
  return status === "input_required" ? waits.flatMap(({ id }) => id ?? []) : [];
}
