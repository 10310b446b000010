// `noteUnheeded`: runners heed what a child demands of its place, and a process that runs what its session asks
// for does not.

import type { Session } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { plainLine, quoted } from "@holdfast/terminal/frame/plain-text";

const DEMANDS_CHARS = 100;

/** @param agent the name of the agent that runners could run. */
export function noteUnheeded(child: Session | undefined, agent: string | undefined, io: Io): void {
  const demands = Object.entries(child?.placement?.demands ?? {});
  if (child === undefined || demands.length === 0) return;
  const labels = plainLine(demands.map(([name, value]) => `${name}=${value}`).join(", "), DEMANDS_CHARS);
  const { paint, symbols } = io.notes;
  io.note(
    paint.yellow(
      `${symbols.warn} child ${child.sessionId} demands ${labels}, and runs in this process all the same`,
    ),
  );
  io.note(`to let runners run it: ${io.call(`run --agent ${quoted(agent ?? "NAME")}`)}`);
}
