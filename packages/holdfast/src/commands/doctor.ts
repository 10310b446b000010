import { existsSync } from "node:fs";
import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Command, Io } from "@holdfast/terminal/frame/command";
import { findLocalDatabase } from "@holdfast/place/project";
import { examinationText, examine, examinePostgres } from "../doctor/examination.ts";
import { readStorageUrl } from "@holdfast/place/coordinator-storage";
import { NotFoundError } from "@holdfast/core";
import { checkLines, joined, problemOf } from "../doctor/check.ts";
import { examineInstallation } from "../doctor/installation.ts";
import { reportOf } from "../doctor/report.ts";

export const doctor: Command = {
  name: "doctor",
  description:
    "Checks versions, settings, disks, sandboxes, secrets, models, agents, programs of external agents, the local stack, its port, the coordinator that HOLDFAST_URL " +
    "names and the clock. Each line says ok, warning or problem, and what to do. Then it reads the project's whole database and checks " +
    "every row. With --db or --storage it examines that database alone. The command changes nothing, may run while others use the " +
    "database, and shows no secret. Without --online it asks no server of models on another machine. Exit codes: 0 without a problem, " +
    "also with warnings; 10 when the database is damaged; else that of the first problem, such as 3 for a wrong file, 5 for a token " +
    "and 7 for a coordinator that does not answer.",
  options: {
    storage: {
      help: "a coordinator's storage: sqlite:PATH or postgres://USER@HOST/DATABASE",
      value: "URL",
      excludes: ["db", "online"],
    },
    online: { help: "also ask providers of models on other machines, with their keys", excludes: ["db"] },
    report: {
      help: "write a text for an issue: without paths, names, ids and secrets",
      excludes: ["db", "storage"],
    },
  },
  examples: [
    ["doctor", "the installation and the project's database"],
    ["doctor --online", "and whether providers of models accept the keys"],
    ["doctor --report", "a text to put into an issue; read it before you send it"],
    ["doctor --db backup.db", "another database"],
    ["doctor --storage postgres://me@db.example/fleet", "a fleet's"],
  ],

  async run(args, io) {
    if (args.has("url"))
      throw refuse("doctor cannot examine a coordinator over its API", args.usage, {
        got: "--url",
        fix: "name the coordinator's storage: --storage postgres://…, or on its machine --storage sqlite:PATH",
      });
    return args.has("db") || args.has("storage") ? examineNamed(args, io) : examineAll(args, io);
  },
};

/** The database that a flag names, alone. @returns the exit code. */
async function examineNamed(args: Arguments, io: Io): Promise<number> {
  const named = args.text("storage");
  const storage = named === undefined ? undefined : readStorageUrl(named, io);
  if (storage?.type === "memory")
    throw refuse(
      "memory: storage cannot be inspected; it exists only inside the running process",
      args.usage,
      { got: "--storage memory:" },
    );
  const database =
    storage?.type === "sqlite"
      ? { ...findLocalDatabase(args, io), path: storage.path, origin: "flag" as const, from: "--storage" }
      : findLocalDatabase(args, io);
  if (storage?.type !== "postgres" && !existsSync(database.path))
    throw new NotFoundError("file_not_found", `there is no database at ${database.path}`, {
      at: database.path,
      fix: "check the path; without --db and --storage, doctor examines the project's database",
    });
  const found =
    storage?.type === "postgres" ? await examinePostgres(storage.url, io) : await examine(database, io);
  io.show(found, examinationText(found, io.results).join("\n"));
  return found.exitCode;
}

/** The installation, and the project's database if the settings say where it is. @returns the exit code. */
async function examineAll(args: Arguments, io: Io): Promise<number> {
  let database: ReturnType<typeof findLocalDatabase> | undefined;
  try {
    database = findLocalDatabase(args, io);
  } catch {
    // The check of the settings reports it.
  }
  const checks = [...(await examineInstallation(args, io, database?.path))];
  let found: Awaited<ReturnType<typeof examine>> | undefined;
  try {
    found = database === undefined ? undefined : await examine(database, io);
  } catch (thrown) {
    checks.push({ subject: "database", ...problemOf(thrown) });
  }
  const problem = checks.find(({ status }) => status === "problem");
  const damaged = found?.exitCode ?? 0;
  const exitCode = damaged === 0 && problem?.status === "problem" ? problem.exitCode : damaged;
  if (args.has("report")) {
    const report = reportOf(checks, found, io);
    io.show({ report }, report);
    return exitCode;
  }
  const lines = checkLines(checks, io.results);
  if (found !== undefined) lines.push("", ...examinationText(found, io.results));
  io.show(
    {
      checks: checks.map(({ subject, status, found: what, fix }) => ({
        subject,
        status,
        found: joined(what),
        fix: fix === undefined ? undefined : joined(fix),
      })),
      ...found,
      exitCode,
    },
    lines.join("\n"),
  );
  return exitCode;
}
