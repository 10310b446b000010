import { defined, isEnded } from "@holdfast/core";
import { sessionIdOf } from "@holdfast/terminal/frame/arguments";
import type { Command } from "@holdfast/terminal/frame/command";
import { resolve } from "node:path";
import { findDatabase } from "@holdfast/place/project";
import { withStorage } from "@holdfast/place/find-session";
import { openFile } from "@holdfast/terminal/frame/new-file";
import { createRuntime } from "@holdfast/runtime";

export const importSession: Command = {
  name: "import",
  takes: [{ name: "FILE|-", is: "the file" }],
  description:
    "The sessions are as they were when they were written, with their unread signals, and continue when they are resumed. All are " +
    "imported or none. A damaged file, or a session that already exists here, changes nothing; a file that was imported before is no " +
    "error. If both copies continue, their tasks run twice. Import only files that you trust: a session has the permissions that people " +
    "gave it.",
  options: {
    session: { help: "an id of your own, instead of the session's; not for a tree", value: "NEW" },
  },
  examples: [
    ["import ses_019a.ndjson", "as the session it was"],
    ["gunzip -c backup.gz | holdfast import -", "from another program"],
    ["import ses_019a.ndjson --session again", "beside the one that is here already"],
  ],

  async run(args, io) {
    const [file = ""] = args.positionals;
    const wanted = sessionIdOf(args);
    const chunks = file === "-" ? bytesOf(io.stdin) : await openFile(resolve(io.cwd, file));
    return withStorage(findDatabase(args, io), async ({ storage }) => {
      const runtime = createRuntime({ storage, adopt: false, development: false });
      try {
        const options = {
          name: file === "-" ? "standard input" : file,
          ...defined({ sessionId: wanted }),
        };
        const { sessionId, created, session } = await runtime.import(chunks, options);
        const row = await session();
        const { status } = row;
        const next = io.call(isEnded(status) ? `result ${sessionId}` : `resume ${sessionId}`);
        const result = {
          sessionId,
          status,
          ...(created ? {} : { alreadyImported: true }),
          ...(isEnded(status) ? {} : { resume: next }),
        };
        io.result(result, sessionId);
        if (!created) io.note(`${io.notes.symbols.warn} it is here already, and nothing was changed`);
        const [child] = await storage.reader.sessions({ parent: sessionId, limit: 1 });
        if (created && row.children > 0 && child === undefined)
          io.note(
            `${io.notes.symbols.warn} its children did not come along: it sees those that had not ended as failed`,
          );
        if (created && row.detachedFrom !== undefined)
          io.note(`${io.notes.symbols.warn} it is no longer a child of ${row.detachedFrom.sessionId}`);
        io.note(isEnded(status) ? `it has ended: ${next}` : `continue with: ${next}`);
        return 0;
      } finally {
        await runtime.close();
      }
    });
  },
};

async function* bytesOf(stdin: AsyncIterable<Uint8Array | string>): AsyncGenerator<Uint8Array> {
  for await (const chunk of stdin) yield Buffer.from(chunk);
}
