// Sessions of an external agent whose supervising process is killed again and again (`killedSession`). The
// program does numbered steps and asks once. A step leaves a line in the file `steps`, and the answer a file
// of its own.

import { expect } from "vitest";
import type { ExternalProject } from "./external-project.ts";
import { killUntilEnded } from "./kill-session.ts";

export interface KilledAgent {
  readonly name: string;
  /** Fields of the input besides the request. */
  readonly input?: Readonly<Record<string, string>>;
  /** Variables of every command. */
  readonly env?: Readonly<Record<string, string>>;
  /** The steps of one session. */
  readonly steps: number;
  /** The time after the beginning of a turn within which its process is killed. */
  readonly killWithinMs: number;
}

export interface KillReport {
  readonly kills: { done: number; readonly max: number };
  sessions: number;
  steps: number;
  answers: number;
  /** How often the program did not know its session (`restore_incomplete`), and a person agreed to a new one. */
  afresh: number;
}

/** @param max the kills of the whole test. */
export function emptyReport(max: number): KillReport {
  return { kills: { done: 0, max }, sessions: 0, steps: 0, answers: 0, afresh: 0 };
}

/** One session that is killed until it has ended, or until there were so many kills. */
export async function killedSession(
  project: ExternalProject,
  { name, input = {}, env = {}, steps: count, killWithinMs }: KilledAgent,
  session: string,
  report: KillReport,
): Promise<void> {
  const words = [
    ...Array.from({ length: count }, (_, step) => `step:${session}-${step}`),
    `ask:answered-${session}`,
  ];
  const request = JSON.stringify({ text: words.join(" "), ...input });
  const begin = ["run", name, "--input", request, "--session", session, "--park"];
  const reported = new Set<string>();
  const checkSteps = (): void => {
    for (const step of reported) expect(project.steps().get(step), `${name}: step ${step}`).toBe(1);
  };
  const { entries } = await killUntilEnded({
    withinMs: killWithinMs,
    start: async (isFirst) => project.startHere(isFirst ? begin : ["resume", session, "--park"], env),
    works: (running) => running.says(":turn"),
    kills: report.kills,
    ends: async (running) => {
      const { code, stderr } = await running.finished;
      expect(code, stderr).toBe(0);
    },
    show: () => project.shown(session),
    check: (seen) => {
      checkSteps();
      for (const [, step] of JSON.stringify(seen.entries).matchAll(/step ([\w-]+) is done/g))
        reported.add(step!);
    },
    approve: ({ waits = [] }) => {
      if (waits.some(({ prompt }) => prompt?.includes("restore_incomplete"))) report.afresh++;
      else report.answers++;
      return project.run("approve", session);
    },
  });
  expect(JSON.stringify(entries.at(-1))).toContain(`Done: ${words[0]}`); // The answer is there.
  const done = [...project.steps()].filter(([step]) => step.startsWith(`${session}-`));
  expect(done, name).toHaveLength(count);
  checkSteps();
  // The person's answer reached the program. A program that is killed after the call, and before its report,
  // asks again.
  expect(project.lines(`answered-${session}`), name).toContain("x");
  expect(project.processes(), name).toEqual([]);
  report.steps += count;
  report.sessions++;
}
