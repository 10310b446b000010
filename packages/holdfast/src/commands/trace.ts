import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { findDatabase } from "@holdfast/place/project";
import { withReaderOf } from "@holdfast/place/find-session";
import { readTimeline, timelineJson } from "@holdfast/terminal/view/session-timeline";
import { timelineText } from "@holdfast/terminal/view/timeline-text";
import { noteUnstored } from "@holdfast/terminal/view/describe-session";

export const trace: Command = {
  name: "trace",
  takes: [SESSION_ARGUMENT],
  description:
    "A timeline: each turn with its tasks, attempts and waits, their durations, and the tokens and cost that tasks reported. Below the " +
    "timeline: the usage of each session below this one, and the sum. The timeline is computed from the journal, so every session has " +
    "one, whether it was traced or not. In a bar, # is an attempt and - is waiting. A task's duration begins when the agent asked for it.",
  options: {},
  examples: [
    ["trace ses_019a", "turns, tasks with bars, waits, retries, tokens and cost"],
    ["trace ses_019a --json | jq .usage", "for programs"],
  ],

  async run(args, io) {
    const [id = ""] = args.positionals;
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
