import { HoldfastError, isEnded, type Session } from "@holdfast/core";
import type { Runtime } from "@holdfast/runtime";
import {
  DETACH_OPTION,
  SESSION_OR_LAST,
  GRACE_OPTION,
  SECRET_STDIN_OPTION,
  TRACE_OPTION,
  VERBOSE_OPTION,
  type Arguments,
  type Command,
  type Io,
} from "@holdfast/terminal/frame/command";
import { findDatabase } from "@holdfast/place/project";
import { findPlace } from "@holdfast/place/find-session";
import { agentOf, sessionOf } from "../run/recorded-agent.ts";
import { showEndedBefore } from "@holdfast/terminal/view/session-end";
import { isRunByStack } from "../run/starting/start-plan.ts";
import { follow } from "../run/starting/start.ts";
import { runInBackground } from "../run/background.ts";
import { isScripted, SCRIPTED_OPTIONS, withScriptedModel } from "../run/starting/scripted-model.ts";
import { driveCall } from "../run/drive/drive-call.ts";

export const resume: Command = {
  name: "resume",
  takes: [SESSION_OR_LAST],
  description:
    "Loads the session's agent from the file it was started from and continues from the last commit. Recorded work " +
    "is not done again. For a session that has ended, the command only shows its result.",
  options: {
    last: { help: "the newest session that has not ended; refused if that is paused as poison" },
    agent: { help: "load the agent from another file", value: "FILE" },
    "accept-drift": { help: "keep recorded results although the agent now asks with other inputs" },
    trace: TRACE_OPTION,
    "secret-stdin": SECRET_STDIN_OPTION,
    grace: GRACE_OPTION,
    verbose: VERBOSE_OPTION,
    detach: { ...DETACH_OPTION, excludes: ["secret-stdin", "park"] },
    park: {
      help: "exit as soon as the session waits and nothing below it runs here: the session's id goes to standard output, the exit code is 0 or that of a paused session",
    },
    scripted: { help: SCRIPTED_OPTIONS.scripted.help },
    replies: { ...SCRIPTED_OPTIONS.replies, excludes: ["scripted"] },
  },
  examples: [
    ["resume ses_019a", "the beginning of an id is enough if only one id begins with it"],
    ["resume --last", "the session that was interrupted last"],
    ["resume ses_019a --agent fixed.ts --accept-drift", "continue with corrected code"],
  ],

  run: (args, io) => withScriptedModel(args, io, () => resumeSession(args, io)),
};

async function resumeSession(args: Arguments, io: Io): Promise<number> {
  const database = await findPlace(findDatabase(args, io), args, io, ({ status }) => !isEnded(status));
  const session = await sessionOf(args, database);
  if (isEnded(session.status)) {
    return showEndedBefore(session, io);
  }
  const { sessionId } = session;
  if (!args.has("agent") && !isScripted(args) && isRunByStack(session, database))
    return follow(sessionId, database, args, io);
  if (args.has("last") && session.status === "paused" && session.pauseReason === "poison")
    throw refusePoison(session, io); // A loop of restarts must not try it again and again.
  const agent = await agentOf(session, database, args, io);
  if (args.has("detach")) {
    const { options } = resume;
    return runInBackground({ command: "resume", options, words: [sessionId], sessionId }, args, io);
  }
  const acceptDrift = args.has("accept-drift");
  const begin = (runtime: Runtime) => runtime.resume(sessionId, { acceptDrift });
  return driveCall({ agent, sessionId, database, begin }, args, io);
}

function refusePoison({ sessionId, error }: Session, io: Io): HoldfastError {
  const why = error === undefined ? "" : `: ${error.message}`;
  return new HoldfastError("session_paused", `session ${sessionId} is paused (poison)${why}`, {
    expected: "a session that did not end its process again and again",
    fix: `correct the cause, then \`${io.call(`resume ${sessionId}`)}\` tries it again`,
  });
}
