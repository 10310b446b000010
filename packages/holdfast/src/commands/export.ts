import { refuse } from "@holdfast/terminal/frame/arguments";
import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { resolve } from "node:path";
import { findDatabase } from "@holdfast/place/project";
import { withReaderOf } from "@holdfast/place/find-session";
import { exportLines } from "@holdfast/runtime";
import { writeNewFile } from "@holdfast/terminal/frame/new-file";

export const exportSession: Command = {
  name: "export",
  takes: [SESSION_ARGUMENT],
  description:
    "The file is lines of JSON, and its last line is a checksum. Only this user may read it, and it appears under its name when it is " +
    "complete. The session does not change, and may be running meanwhile. Its parent is not in the file, and its children only with " +
    "--tree: then all sessions below it are, as they stood at one moment. The file holds everything that was recorded, secrets " +
    "included.",
  options: {
    tree: { help: "also write all sessions below it; they are imported together" },
    output: {
      help: "the file to write (default: ID.ndjson in this folder), or - for standard output; one that exists is not touched",
      value: "FILE",
      short: "o",
    },
  },
  examples: [
    ["export ses_019a", "to a file that is named like the session"],
    ["export ses_019a -o backup.ndjson", "`holdfast import backup.ndjson` imports it, here or elsewhere"],
    ["export ses_019a --tree", "with its children, and theirs"],
    ["export ses_019a -o - | gzip > backup.gz", "to another program; `holdfast import -` reads one"],
  ],

  async run(args, io) {
    const [id = ""] = args.positionals;
    const isToStdout = args.text("output") === "-";
    if (isToStdout && io.isJson)
      throw refuse(
        "with --json, standard output holds the result and cannot also hold the session",
        args.usage,
        {
          got: "--json --output -",
          fix: "leave --json or -o - out; the session is already written as lines of JSON",
        },
      );
    return withReaderOf(findDatabase(args, io), id, async ({ sessionId, children }, reader) => {
      const lines = exportLines(reader, sessionId, { tree: args.has("tree") });
      if (isToStdout) await io.stream(lines);
      else {
        const path = resolve(io.cwd, args.text("output") ?? `${sessionId}.ndjson`);
        await writeNewFile(path, lines);
        io.result({ sessionId, file: path }, path);
      }
      if (children > 0 && !args.has("tree"))
        io.note(
          `${io.notes.symbols.warn} its children (${children}) are not in the file; --tree also writes them`,
        );
      return 0;
    });
  },
};
