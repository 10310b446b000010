import { defined } from "@holdfast/core";
import { refuse } from "@holdfast/terminal/frame/arguments";
import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { isSignalName } from "@holdfast/terminal/view/typed-answer";
import { readPayload } from "@holdfast/terminal/frame/input";
import { sendSignal } from "../sessions/send-signal.ts";

export const signal: Command = {
  name: "signal",
  takes: [
    SESSION_ARGUMENT,
    { name: "NAME", is: "the signal's name" },
    { name: "JSON|@file|-", is: "the payload", optional: true, ifMore: "put the JSON in single quotes" },
  ],
  description:
    "The command returns when the signal is stored. The signal is consumed once, by the commit that uses it. A session that is running " +
    "reacts at once; any other session reacts when it is resumed. The payload is JSON, or the text of a file or of standard input, of which a long one " +
    "keeps its beginning and its end. The signals `ci` and `review` are the next message of a conversation that waits, marked as data.",
  options: {
    key: { help: "a second signal with the same key is not stored", value: "KEY" },
  },
  examples: [
    ["signal ses_019a go", "a signal without a payload"],
    [`signal ses_019a go '{"version": 2}'`, "with one"],
    ["signal ses_019a ci @build.log", "the session that made a change learns what the build says"],
    [`signal ses_019a paid '{"order": 7}' --key order-7`, "safe to repeat"],
  ],

  async run(args, io) {
    const [id = "", name = "", text] = args.positionals;
    if (!isSignalName(name)) {
      throw refuse(`"${name}" cannot be the name of a signal`, args.usage, {
        fix: name.startsWith("answer:")
          ? "answer questions with `holdfast answer`"
          : "use letters, digits, spaces and . _ : / @ + -",
      });
    }
    const payload =
      text === undefined ? undefined : await readPayload(text, io, `payload of signal "${name}"`);
    const dedupKey = args.text("key");
    return sendSignal(args, io, {
      id,
      choose: () => ({
        name,
        send: (requests, sessionId, signalId) =>
          requests.signal(sessionId, name, payload, {
            signalId,
            ...defined({ dedupKey }),
          }),
        said: `signal "${name}" is stored`,
        repeated: `a signal with the key "${dedupKey}" is already stored; nothing changes`,
      }),
    });
  },
};
