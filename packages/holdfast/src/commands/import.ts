import { isEnded, isSessionId } from "@holdfast/core";
import { refuse, takeOnly } from "../arguments.ts";
import type { Command } from "../command.ts";

export const importSession: Command = {
  name: "import",
  summary: "Bring back a session that was written to a file",
  usage: "import FILE [--session NEW]",
  description:
    "The session stands as it stood when it was written, signals it had not read included, and goes on when it is resumed. A file " +
    "that is damaged, or a session that is there already, changes nothing. Where both copies go on, what their tasks do is done twice.",
  options: {
    session: { help: "an id of your own, instead of the session's", value: "NEW" },
  },
  examples: [
    ["import ses_019a.ndjson", "as the session it was"],
    ["import ses_019a.ndjson --session again", "beside the one that is here already"],
  ],

  async run(args, io) {
    const file = takeOnly(args.positionals, "the file", importSession.usage);
    const wanted = args.text("session");
    if (wanted !== undefined && !isSessionId(wanted)) {
      throw refuse(`"${wanted}" cannot be the id of a session`, importSession.usage, {
        expected: "1 to 100 letters, digits, dots, dashes and underscores, starting with a letter or a digit",
      });
    }
    const { resolve } = await import("node:path");
    const { findDatabase } = await import("../project.ts");
    const { withStorage } = await import("../find-session.ts");
    const { openFile } = await import("../new-file.ts");
    const { createRuntime } = await import("@holdfast/runtime");
    const chunks = await openFile(resolve(io.cwd, file));
    return withStorage(findDatabase(args, io), async ({ storage }) => {
      const runtime = createRuntime({ storage, adopt: false, development: false });
      try {
        const options = { name: file, ...(wanted === undefined ? {} : { sessionId: wanted }) };
        const { sessionId, session } = await runtime.import(chunks, options);
        const { status } = await session();
        const next = io.call(isEnded(status) ? `result ${sessionId}` : `resume ${sessionId}`);
        io.result({ sessionId, status, ...(isEnded(status) ? {} : { resume: next }) }, sessionId);
        io.note(isEnded(status) ? `it has ended: ${next}` : `go on with: ${next}`);
        return 0;
      } finally {
        await runtime.close();
      }
    });
  },
};
