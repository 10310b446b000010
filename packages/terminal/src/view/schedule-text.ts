// Schedules as they are shown: for people, and as JSON for programs.

import { decodeJson, defined, type Schedule } from "@holdfast/core";
import { limitsText } from "./budget-text.ts";
import { plainLine, table, zonedTime } from "../frame/plain-text.ts";

/** A firing that is later than this was missed. */
export const LATE_MS = 5_000;
const NAME_CHARS = 60;

export function scheduleJson({ scheduleId, cron, timeZone, action, ...times }: Schedule): object {
  const { nextAt, isPaused = false, lastAt, createdAt } = times;
  const does =
    action.type === "start"
      ? {
          start: {
            agent: action.agent,
            input: decodeJson(action.input) ?? null,
            ...defined({ budget: action.budget }),
          },
        }
      : {
          signal: {
            sessionId: action.sessionId,
            name: action.name,
            payload: decodeJson(action.payload) ?? null,
          },
        };
  return {
    scheduleId,
    cron,
    timeZone,
    ...does,
    ...(isPaused ? { isPaused } : { nextAt }),
    ...defined({ lastAt }),
    createdAt,
  };
}

export function scheduleTable(schedules: readonly Schedule[], now: number): string {
  const rows = schedules.map((schedule) => [
    schedule.scheduleId,
    plainLine(schedule.cron, NAME_CHARS),
    schedule.isPaused === true
      ? "paused"
      : `${zonedTime(schedule.nextAt, schedule.timeZone)}${schedule.nextAt < now - LATE_MS ? " (overdue: no process fires schedules)" : ""}`,
    whatItDoes(schedule),
  ]);
  return table([["SCHEDULE", "CRON", "NEXT", "DOES"], ...rows]).join("\n");
}

export function whatItDoes({ action }: Schedule): string {
  if (action.type === "start") {
    const within = action.budget === undefined ? "" : `, each within ${limitsText(action.budget)}`;
    return `starts ${plainLine(action.agent.name, NAME_CHARS)}${within}`;
  }
  return `signals ${action.sessionId}: ${plainLine(action.name, NAME_CHARS)}`;
}
