import { setTimeout } from "node:timers";
import { HoldfastError, isEnded } from "@holdfast/core";
import { SESSION_OR_LAST, type Command } from "@holdfast/terminal/frame/command";
import { findDatabase } from "@holdfast/place/project";
import { withReaderOfMeant } from "@holdfast/place/find-session";
import { JournalTail } from "@holdfast/terminal/view/journal-events";
import { cancelledLine, endLine, eventLine } from "@holdfast/terminal/view/event-line";
import { localTime } from "@holdfast/terminal/frame/plain-text";
import { resultOf } from "@holdfast/terminal/view/session-end";
import { watchElsewhere } from "@holdfast/terminal/view/moved-session";
import { noteUnstored } from "@holdfast/terminal/view/describe-session";
import { AnswerPrincipals } from "@holdfast/place/answer-principals";

const POLL_MS = 200;
const AWAY_MS = 1_000;

export const logs: Command = {
  name: "logs",
  takes: [SESSION_OR_LAST],
  description:
    "Every line is numbered by its position in the journal, which never changes. With --json each event is one line of JSON, and " +
    "the result of a session that has ended is the last one.",
  options: {
    last: { help: "the newest session" },
    raw: { help: "the lines that the program of an external agent has written, as this machine keeps them" },
    follow: { help: "stay and show new records until the session ends", short: "f" },
  },
  examples: [
    ["logs ses_019a", "what it did so far"],
    ["logs ses_019a -f", "and what it does next, from another terminal"],
    ["logs ses_019a --raw | jq .type", "the messages of the program of an external agent, turn by turn"],
    ["logs ses_019a --json | jq 'select(.type == \"task_failed\")'", "for programs"],
  ],

  async run(args, io) {
    const database = findDatabase(args, io);
    return withReaderOfMeant(database, args, async (found, reader) => {
      noteUnstored(found, io);
      const { sessionId } = found;
      if (args.has("raw")) {
        const { showRawLines } = await import("../sessions/show-raw-lines.ts");
        return showRawLines(reader, sessionId, args.has("follow"), io);
      }
      // A coordinator's audit is for its admins.
      const principals = database.coordinator === undefined ? new AnswerPrincipals(reader) : undefined;
      const principalOf = principals && ((signalId: string) => principals.of(signalId));
      const tail = new JournalTail(reader, sessionId, 0, principalOf);
      const now = Date.now();
      let at = "";
      let isEndShown = false;
      // A fault stands in the session's row, not in its journal.
      const showLast = (line: string, when: number | undefined): void => {
        const time = when === undefined ? "" : localTime(when);
        io.show(line, `${io.results.paint.dim(`${" ".repeat(4)}  ${time.padEnd(19)}`)}  ${line}`);
      };
      /** @returns whether that was all. */
      const show = async (): Promise<boolean> => {
        // Asked before the journal, so that nothing that was committed before the end is missed.
        const session = await reader.session(sessionId);
        const isCancelled = session?.status === "cancelled";
        await tail.advance((event) => {
          if (event.at !== undefined) at = localTime(event.at);
          isEndShown = event.type === "complete" || event.type === "fail";
          const line =
            isEndShown && isCancelled
              ? cancelledLine(session.cancel?.reason, io.results)
              : eventLine(event, io.results, { now, sessionId });
          const number = String(event.seq).padStart(4);
          if (io.isJson || line !== undefined)
            io.show(event, `${io.results.paint.dim(`${number}  ${at.padEnd(19)}`)}  ${line ?? ""}`);
        });
        const last = session === undefined || isEndShown ? undefined : endLine(session, io.results);
        if (session === undefined || isEnded(session.status)) {
          if (session !== undefined && io.isJson) io.show(resultOf(session), "");
          else if (last !== undefined) showLast(last, session?.endedAt);
          return true;
        }
        const elsewhere = watchElsewhere(session, io);
        if (elsewhere !== undefined) {
          io.note(`it has moved; watch it there: ${elsewhere}`);
          return true;
        }
        if (!args.has("follow") && last !== undefined && !io.isJson) showLast(last, session.updatedAt);
        return !args.has("follow") || io.isOutputClosed;
      };
      // `logs -f` continues when the coordinator is back.
      let isAway = false;
      for (;;) {
        try {
          if (await show()) return 0;
          isAway = false;
        } catch (error) {
          const isPassing = HoldfastError.is(error) && error.code === "storage_unavailable";
          if (!args.has("follow") || !isPassing || io.isOutputClosed) throw error;
          if (!isAway)
            io.note(io.notes.paint.yellow(`${io.notes.symbols.warn} ${error.message}; tried again`));
          isAway = true;
        }
        await new Promise((resolve) => setTimeout(resolve, isAway ? AWAY_MS : POLL_MS));
      }
    });
  },
};
