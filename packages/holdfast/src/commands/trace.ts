import { takeOnly } from "../frame/arguments.ts";
import type { Command } from "../frame/command.ts";

export const trace: Command = {
  name: "trace",
  summary: "Show where a session's time and money went, from its journal",
  usage: "trace ID",
  description:
    "A timeline: each turn with its tasks, attempts and waits, how long they took, and the tokens and cost that tasks reported; below it what " +
    "each session that it asked for used, and the sum. " +
    "It is computed from the journal, so it works for every session, whether it was traced or not. In a bar # is an attempt and " +
    "- is waiting. Durations of tasks are from the moment they were asked for.",
  options: {},
  examples: [
    ["trace ses_019a", "turns, tasks with bars, waits, retries, tokens and cost"],
    ["trace ses_019a --json | jq .usage", "for programs"],
  ],

  async run(args, io) {
    const id = takeOnly(args.positionals, "the session's id", trace.usage);
    const { findDatabase } = await import("../place/project.ts");
    const { withReaderOf } = await import("../place/find-session.ts");
    const { readTimeline, timelineJson } = await import("../view/session-timeline.ts");
    const { timelineText } = await import("../view/timeline-text.ts");
    const { noteUnstored } = await import("../view/describe-session.ts");
    return withReaderOf(findDatabase(args, io), id, async (session, reader) => {
      noteUnstored(session, io);
      const { sessionId } = session;
      const now = Date.now();
      const timeline = await readTimeline(reader, sessionId, now);
      io.show(timelineJson(timeline), timelineText(timeline, io.results, now));
      return 0;
    });
  },
};
