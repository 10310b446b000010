import { isEnded } from "@holdfast/core";
import { takeOnly } from "../arguments.ts";
import type { Command } from "../command.ts";

const POLL_MS = 200;

export const logs: Command = {
  name: "logs",
  summary: "Show everything a session did, from its journal",
  usage: "logs ID [--follow]",
  description:
    "Every line is numbered by its position in the journal, which never changes. With --json each event is one line of JSON, and " +
    "the result of a session that has ended is the last one.",
  options: {
    follow: { help: "stay, and show what is committed, until the session ends", short: "f" },
  },
  examples: [
    ["logs ses_019a", "what it did so far"],
    ["logs ses_019a -f", "and what it does, from another terminal"],
    ["logs ses_019a --json | jq 'select(.type == \"task_failed\")'", "for programs"],
  ],

  async run(args, io) {
    const id = takeOnly(args.positionals, "the session's id", logs.usage);
    const { findDatabase } = await import("../project.ts");
    const { withReaderOf } = await import("../find-session.ts");
    const { JournalTail } = await import("../journal-events.ts");
    const { eventLine } = await import("../event-line.ts");
    const { localTime } = await import("../plain-text.ts");
    const { resultOf } = await import("../session-end.ts");
    return withReaderOf(findDatabase(args, io), id, async ({ sessionId }, reader) => {
      const tail = new JournalTail(reader, sessionId);
      const now = Date.now();
      let at = "";
      for (;;) {
        // Asked before the journal, so that nothing that was committed before the end is missed.
        const session = await reader.session(sessionId);
        await tail.advance((event) => {
          if (event.at !== undefined) at = localTime(event.at);
          const line = eventLine(event, io.results, now);
          const number = String(event.seq).padStart(4);
          if (io.isJson || line !== undefined)
            io.show(event, `${io.results.paint.dim(`${number}  ${at.padEnd(19)}`)}  ${line ?? ""}`);
        });
        if (session === undefined || isEnded(session.status)) {
          if (session !== undefined && io.isJson) io.show(resultOf(session), "");
          return 0;
        }
        if (!args.has("follow") || io.isOutputClosed) return 0;
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    });
  },
};
