import { refuse, takeNothing } from "../arguments.ts";
import type { Command } from "../command.ts";

export const doctor: Command = {
  name: "doctor",
  summary: "Check this installation and the database, and list what is unfinished",
  usage: "doctor",
  description:
    "Reads the whole database and checks every row. The exit code is 10 when it is damaged. Changes nothing.",
  options: {},
  examples: [
    ["doctor", "the project's database"],
    ["doctor --db backup.db", "another one"],
  ],

  async run(args, io) {
    takeNothing(args.positionals, doctor.usage);
    if (args.has("url"))
      throw refuse("a coordinator is not examined from here", doctor.usage, {
        got: "--url",
        fix: "call it beside the coordinator, with --db and its file",
      });
    const { findLocalDatabase } = await import("../project.ts");
    const { examine, examinationText } = await import("../examination.ts");
    const found = await examine(findLocalDatabase(args, io), io);
    io.show(found, examinationText(found, io.results));
    return found.exitCode;
  },
};
