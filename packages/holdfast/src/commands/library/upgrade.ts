import { exitCodeOf, isActive, isQueuedTaskAgent, recordError, VERSION, type Session } from "@holdfast/core";
import { newestFirst, withReaders } from "@holdfast/place/find-session";
import { findDatabase, placesOf, type Database } from "@holdfast/place/project";
import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Command, Io } from "@holdfast/terminal/frame/command";
import { count, fittedTable, plainLine } from "@holdfast/terminal/frame/plain-text";
import { errorLines, statusText } from "@holdfast/terminal/view/describe-session";
import { shownIds } from "@holdfast/terminal/view/session-tree";
import { foreseeSession, type Foreseen } from "../../run/replaying/foresee-session.ts";
import { SessionAgents } from "../../run/replaying/session-agents.ts";

export const upgrade: Command = {
  name: "upgrade",
  description:
    "Says for each session that has not ended whether this version of Holdfast and the code of its agent as it is now would continue it, " +
    "or refuse it, and why. For that the command loads the agents and replays what is recorded, as `holdfast replay` does: no task is " +
    "started, and nothing is written. Others may use the database or the coordinator meanwhile, also processes of an older version. " +
    "Install the new version beside the old one and call the command of the new one. A coordinator does not know the code of agents, " +
    "which --agents names. Exit codes: 0 all sessions continue; else that of the first session that does not, such as 1 for changed code, " +
    "3 for an agent that cannot be loaded, and 11 for a session, a database or an agent of another version.",
  options: {
    check: { help: "say what would become of each session, and change nothing" },
    agents: {
      help: "the agents of these files in place of those that sessions have recorded, as `holdfast runner` loads them",
      value: "FILE|AGENT",
      repeats: true,
      takesMore: true,
    },
  },
  examples: [
    ["upgrade --check", "would this version continue the sessions of this project?"],
    ["upgrade --check --url https://fleet.example --agents agents.ts", "those of a coordinator"],
    ["upgrade --check --json | jq '.sessions[] | select(.outcome != \"continues\")'", "for programs"],
  ],

  async run(args, io) {
    if (!args.has("check"))
      throw refuse("upgrade needs --check: it checks sessions, and installs nothing", args.usage, {
        fix: `install the new version with \`npm install holdfast\`, and run \`${io.call("upgrade --check")}\``,
      });
    return withReaders(placesOf(findDatabase(args, io)), async (readers) => {
      const checked: Checked[] = [];
      for (const { place, reader } of readers) {
        const agents = new SessionAgents(place, args, io);
        for await (const session of newestFirst(reader)) {
          // The session of a queued task continues with the one that asked for it.
          if (!isActive(session) || isQueuedTaskAgent(session.agent.name)) continue;
          const foreseen = await foreseeSession(reader, session, () => agents.of(session));
          checked.push({ place, session, foreseen });
        }
      }
      io.show({ version: VERSION, sessions: checked.map(rowJson) }, textOf(checked, io));
      const first = checked.find(({ foreseen }) => foreseen.outcome !== "continues")?.foreseen;
      return first === undefined || first.outcome === "continues" ? 0 : exitCodeOf(first.error);
    });
  },
};

interface Checked {
  readonly place: Database;
  readonly session: Session;
  readonly foreseen: Foreseen;
}

function rowJson({ place, session, foreseen }: Checked): object {
  const { sessionId, agent, status } = session;
  const row = { sessionId, agent, status, place: place.path, outcome: foreseen.outcome };
  if (foreseen.outcome === "continues") return row;
  return { ...row, why: foreseen.why, error: recordError(foreseen.error) };
}

function textOf(checked: readonly Checked[], io: Io): string {
  const { paint, symbols, columns } = io.results;
  if (checked.length === 0) return `there is no unfinished session: nothing has to continue with ${VERSION}`;
  const ids = shownIds(
    checked.map(({ session }) => session),
    io.results,
  );
  const rows = checked.map(({ session, foreseen }) => [
    ids(session.sessionId),
    statusText(session),
    plainLine(session.agent.name, 40),
    foreseen.outcome === "continues"
      ? `${symbols.done} continues`
      : `${symbols.failed} ${foreseen.outcome}: ${plainLine(foreseen.why, 200)}`,
  ]);
  const lines = fittedTable([["SESSION", "STATUS", "AGENT", `WITH ${VERSION}`], ...rows], {
    columns,
    id: 0,
    cutMark: symbols.cut,
  });
  for (const { session, foreseen } of checked) {
    if (foreseen.outcome === "continues") continue;
    lines.push("", paint.bold(`${ids(session.sessionId)}: ${foreseen.why}`));
    const error = { ...recordError(foreseen.error), name: "Error" }; // No class of ours for people.
    lines.push(...errorLines(error).map((line) => `  ${line}`));
  }
  const going = checked.filter(({ foreseen }) => foreseen.outcome === "continues").length;
  const sum = `${going} of ${count(checked.length, "unfinished session")} would continue with Holdfast ${VERSION}`;
  lines.push("", going === checked.length ? paint.green(sum) : paint.red(sum));
  return lines.join("\n");
}
