import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Command } from "@holdfast/terminal/frame/command";
import { listRules, listSessionRules, revokeRules } from "../../agents/kept-rules.ts";
import { findDatabase } from "@holdfast/place/project";
import { withReaderOf } from "@holdfast/place/find-session";

export const rules: Command = {
  name: "rules",
  actions: {
    list: { does: "the rules of this project, or of a session", options: ["session"] },
    revoke: {
      does: "revoke rules of this project, or all of a session",
      takes: [{ name: "NUMBER", is: "the rule's number", optional: true, repeats: true, orOption: "all" }],
      options: ["all", "session"],
    },
  },
  description:
    "`holdfast approve ID --for project` keeps an answer as a rule of the current project, in your data folder and never in the project. A " +
    "rule counts for sessions that start later. `--for session` keeps it in the session alone; `rules revoke --session ID` ends all rules " +
    "that a session has, from its next model call.",
  options: {
    all: { help: "revoke every rule of the project" },
    session: { help: "list or end the rules of this session", value: "ID" },
  },
  examples: [
    ["rules list", "the rules of this project, with their numbers"],
    ["rules list --session ses_019a", "the rules that a session works with"],
    ["rules revoke 2", "the second one; running sessions keep what they started with"],
    ["rules revoke --session ses_019a", "the session asks again"],
  ],

  async run(args, io) {
    const { action, positionals: rest } = args;
    if (action === "list") {
      const id = args.text("session");
      if (id === undefined) return listRules(io);
      const database = findDatabase(args, io);
      const isElsewhere = database.coordinator !== undefined;
      return withReaderOf(database, id, (session, reader) =>
        listSessionRules(session, { reader, isElsewhere }, io),
      );
    }
    const session = args.text("session");
    const ways = [session !== undefined, args.has("all"), rest.length > 0].filter(Boolean).length;
    if (ways !== 1)
      throw refuse(
        ways === 0 ? "the rule's number is missing" : "name numbers, --all or --session",
        args.usage,
        {
          fix: "`holdfast rules list` shows the numbers",
        },
      );
    if (session === undefined) return revokeRules(args.has("all") ? "all" : rest, io);
    const { sendSignal } = await import("../../sessions/send-signal.ts");
    return sendSignal(args, io, {
      id: session,
      choose: () => ({
        name: "revoke_rules",
        send: (requests, sessionId, signalId) =>
          requests.signal(sessionId, "revoke_rules", undefined, { signalId }),
        said: "the session's rules end at its next model call",
        repeated: "the session's rules were already revoked",
      }),
    });
  },
};
