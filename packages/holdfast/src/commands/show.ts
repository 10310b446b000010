import { defined, type StorageReader } from "@holdfast/core";
import { refuse } from "@holdfast/terminal/frame/arguments";
import { SESSION_OR_LAST, type Arguments, type Command } from "@holdfast/terminal/frame/command";
import { CommandError } from "@holdfast/terminal/frame/command-error";
import {
  pictureJson,
  readPicture,
  type SessionPlace,
  type TaskPicture,
} from "@holdfast/terminal/view/session-picture";
import { AnswerPrincipals } from "@holdfast/place/answer-principals";
import { findDriver } from "@holdfast/place/project-storage";
import { findDatabase, type Database } from "@holdfast/place/project";
import { findPlace, withReaderOfMeant } from "@holdfast/place/find-session";
import { pictureText, taskText } from "@holdfast/terminal/view/picture-text";

export const show: Command = {
  name: "show",
  takes: [SESSION_OR_LAST],
  options: {
    last: { help: "the newest session" },
    task: { help: "one task: its input, output and error in full", value: "NUMBER" },
  },
  examples: [
    ["show ses_019a", "status, waits, tasks with attempts and durations, conversation"],
    ["show --last --task 3", "input and output of task 3 of the newest session"],
    ["show ses_019a --json | jq .tasks", "all of it, for programs"],
  ],

  async run(args, io) {
    const task = readTaskNumber(args);
    const database = await findPlace(findDatabase(args, io), args, io);
    return withReaderOfMeant(database, args, async ({ sessionId }, reader) => {
      const picture = await readPicture(reader, sessionId, placeOf(sessionId, database, reader), io);
      const now = Date.now();
      if (task !== undefined) {
        const found = picture.tasks.find(({ id }) => id === task);
        if (found === undefined) throw noSuchTask(sessionId, task, picture.tasks);
        io.show(found, taskText(found, io.results));
        return 0;
      }
      io.show(pictureJson(picture, now), pictureText(picture, io.results, now));
      return 0;
    });
  },
};

function readTaskNumber(args: Arguments): number | undefined {
  const text = args.text("task");
  if (text === undefined) return undefined;
  if (/^#?\d{1,15}$/.test(text)) return Number(text.replace("#", ""));
  throw refuse("--task is not the number of a task", args.usage, {
    got: text,
    fix: "run `holdfast show ID` to see the tasks with their numbers",
  });
}

function noSuchTask(sessionId: string, task: number, tasks: readonly TaskPicture[]): CommandError {
  return new CommandError("task_not_found", `session ${sessionId} has no task ${task}`, {
    expected:
      tasks.length === 0
        ? "no task number; the session has no tasks"
        : `one of ${tasks
            .slice(-20)
            .map(({ id }) => `#${id}`)
            .join(", ")}`,
  });
}

/** The facts about a session that only the coordinator or the database of this project knows. */
function placeOf(sessionId: string, database: Database, reader: StorageReader): SessionPlace {
  const { coordinator } = database;
  const principals = coordinator === undefined ? new AnswerPrincipals(reader) : undefined;
  return {
    isElsewhere: coordinator !== undefined,
    ...defined({ principalOf: principals && ((signalId: string) => principals.of(signalId)) }),
    run: async () =>
      coordinator &&
      (await (await import("@holdfast/place/coordinator-call")).readRunOf(coordinator, sessionId)),
    ownerPid: async (session) => {
      const driver = await findDriver(database, [session]);
      return driver?.isDriven(session) === true ? driver.pid : undefined;
    },
  };
}
