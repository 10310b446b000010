// Sessions of an external agent whose supervising process is killed again and again (`killedSession`). The program does numbered steps and asks
// once. A step leaves a line in the file `steps`, and the answer a file of its own.

import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { ExternalProject } from "./external-project.ts";

export interface KilledAgent {
  readonly name: string;
  /** Options of `holdfast run` besides the request. */
  readonly options?: readonly string[];
  /** Variables of every command. */
  readonly env?: Readonly<Record<string, string>>;
  /** The steps of one session. */
  readonly steps: number;
  /** The time after the beginning of a turn within which its process is killed. */
  readonly killWithinMs: number;
}

export interface KillReport {
  kills: number;
  sessions: number;
  steps: number;
  answers: number;
}

/** One session that is killed until it has ended, or until there were so many kills. */
export async function killedSession(
  project: ExternalProject,
  { name, options = [], env = {}, steps: count, killWithinMs }: KilledAgent,
  session: string,
  kills: number,
  report: KillReport,
): Promise<void> {
  const words = [
    ...Array.from({ length: count }, (_, step) => `step:${session}-${step}`),
    `ask:answered-${session}`,
  ];
  let command = ["run", name, words.join(" "), "--session", session, "--park", ...options];
  const reported = new Set<string>();
  for (;;) {
    const running = project.startHere(command, env);
    const isKilled = report.kills < kills;
    const ended = running.finished;
    if (isKilled) {
      await Promise.race([ended, running.says(":turn")]);
      await Promise.race([ended, delay(Math.random() * killWithinMs)]);
      running.kill("SIGKILL");
      report.kills++;
    }
    const { code, stderr } = await ended;
    if (!isKilled) expect(code, stderr).toBe(0);
    command = ["resume", session, "--park"];
    for (const step of reported) expect(project.steps().get(step), `${name}: step ${step}`).toBe(1);
    const { entries, status } = await project.shown(session);
    for (const [, step] of JSON.stringify(entries).matchAll(/step ([\w-]+) is done/g)) reported.add(step!);
    if (status === "input_required") {
      await project.run("approve", session);
      report.answers++;
    }
    if (status === "completed") break;
    expect(["working", "waiting", "input_required", "submitted"], `${name}: ${status}`).toContain(status);
  }
  const { entries } = await project.shown(session);
  expect(JSON.stringify(entries.at(-1))).toContain(`Done: ${words[0]}`); // The answer is there.
  const done = [...project.steps()].filter(([step]) => step.startsWith(`${session}-`));
  expect(done, name).toHaveLength(count);
  for (const step of reported) expect(project.steps().get(step), `${name}: step ${step}`).toBe(1);
  // The person's answer reached the program. A program that is killed after the call, and before its report, asks again.
  expect(project.lines(`answered-${session}`), name).toContain("x");
  expect(project.processes(), name).toEqual([]);
  report.steps += count;
  report.sessions++;
}
