import { refuse, takeOnly } from "../frame/arguments.ts";
import type { Command } from "../frame/command.ts";

export const exportSession: Command = {
  name: "export",
  summary: "Write one session to a file: its journal, its conversation and the signals it has not read",
  usage: "export ID [-o FILE]",
  description:
    "The file is lines of JSON, the last one a checksum, readable by this user only; it appears under its name when it is whole. " +
    "The session is left as it is, and may be running meanwhile. Its children and its parent are not in the file. What the agent " +
    "was told stands in it as it was recorded, secrets too.",
  options: {
    output: {
      help: "the file to write (default: ID.ndjson in this folder), or - for standard output; one that exists is not touched",
      value: "FILE",
      short: "o",
    },
  },
  examples: [
    ["export ses_019a", "to a file that is named like the session"],
    ["export ses_019a -o backup.ndjson", "`holdfast import backup.ndjson` brings it back, here or elsewhere"],
    ["export ses_019a -o - | gzip > backup.gz", "to another program; `holdfast import -` reads one"],
  ],

  async run(args, io) {
    const id = takeOnly(args.positionals, "the session's id", exportSession.usage);
    const isToStdout = args.text("output") === "-";
    if (isToStdout && io.isJson)
      throw refuse(
        "with --json standard output is the result, and cannot be the session as well",
        exportSession.usage,
        {
          got: "--json --output -",
          fix: "leave one of them out: the session is lines of JSON already",
        },
      );
    const { resolve } = await import("node:path");
    const { findDatabase } = await import("../place/project.ts");
    const { withReaderOf } = await import("../place/find-session.ts");
    const { exportLines } = await import("@holdfast/runtime");
    const { writeNewFile } = await import("../frame/new-file.ts");
    return withReaderOf(findDatabase(args, io), id, async ({ sessionId, children }, reader) => {
      if (isToStdout) await io.stream(exportLines(reader, sessionId));
      else {
        const path = resolve(io.cwd, args.text("output") ?? `${sessionId}.ndjson`);
        await writeNewFile(path, exportLines(reader, sessionId));
        io.result({ sessionId, file: path }, path);
      }
      if (children > 0) {
        io.note(
          `${io.notes.symbols.warn} its children (${children}) are not in the file; each is a session to export by itself`,
        );
      }
      return 0;
    });
  },
};
