import { existsSync } from "node:fs";
import { refuse, takeNothing } from "../frame/arguments.ts";
import type { Command } from "../frame/command.ts";

export const doctor: Command = {
  name: "doctor",
  summary: "Check this installation and the database, and list what is unfinished",
  usage: "doctor [--storage URL]",
  description:
    "Reads the whole database and checks every row. The exit code is 10 when the database is damaged. The command changes nothing, and " +
    "may run while others use the database.",
  options: {
    storage: {
      help: "a coordinator's storage: sqlite:PATH or postgres://USER@HOST/DATABASE",
      value: "URL",
      excludes: ["db"],
    },
  },
  examples: [
    ["doctor", "the project's database"],
    ["doctor --db backup.db", "another one"],
    ["doctor --storage postgres://me@db.example/fleet", "a fleet's"],
  ],

  async run(args, io) {
    takeNothing(args.positionals, doctor.usage);
    if (args.has("url"))
      throw refuse("doctor cannot examine a coordinator over its API", doctor.usage, {
        got: "--url",
        fix: "name the coordinator's storage: --storage postgres://…, or on its machine --storage sqlite:PATH",
      });
    const { findLocalDatabase } = await import("../place/project.ts");
    const { examine, examinePostgres, examinationText } = await import("../ask/examination.ts");
    const { readStorageUrl } = await import("../place/coordinator-storage.ts");
    const named = args.text("storage");
    const storage = named === undefined ? undefined : readStorageUrl(named, io);
    if (storage?.type === "memory")
      throw refuse(
        "memory: storage cannot be inspected; it exists only inside the running process",
        doctor.usage,
        { got: "--storage memory:" },
      );
    const database =
      storage?.type === "sqlite"
        ? { ...findLocalDatabase(args, io), path: storage.path, origin: "flag" as const, from: "--storage" }
        : findLocalDatabase(args, io);
    const { NotFoundError } = await import("@holdfast/core");
    if (storage?.type !== "postgres" && database.origin === "flag" && !existsSync(database.path))
      throw new NotFoundError("file_not_found", `there is no database at ${database.path}`, {
        at: database.path,
        fix: "check the path; without --db and --storage, doctor examines the project's database",
      });
    const found =
      storage?.type === "postgres" ? await examinePostgres(storage.url, io) : await examine(database, io);
    io.show(found, examinationText(found, io.results));
    return found.exitCode;
  },
};
