// `readCall`, `loadStarted`: what a command that starts a session reads before the start is planned. The
// command line is checked before a file of the user is loaded.

import { defined, mintId } from "@holdfast/core";
import { graceOf, sessionIdOf } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { readInput } from "@holdfast/terminal/frame/input";
import { randomU32 } from "@holdfast/terminal/frame/random";
import { agentPlaces, shownPath } from "../../agents/agent-places.ts";
import { findStrictBounds } from "@holdfast/place/project";
import { refuseSecondStdin } from "@holdfast/terminal/secrets/agent-secrets";
import { loadAgent, type LoadedAgent } from "../load-agent.ts";
import { profileIn, wishOf, type StartFacts } from "./start-plan.ts";
import { refuseStart, type RefusalFacts } from "./start-refusals.ts";
import { noteIsolation } from "../../agents/workspaces/isolation-note.ts";

/** The facts of a start that the command line has. */
export type StartCall = Pick<
  StartFacts,
  "command" | "text" | "wish" | "input" | "sessionId" | "cwd" | "isStrict"
> & {
  /** The id that the user chose. */
  readonly wanted: string | undefined;
};

/**
 * @param text the input, as an argument of the command.
 * @throws UsageError
 */
export async function readCall(
  args: Arguments,
  { command, text }: Pick<RefusalFacts, "command" | "text">,
  io: Io,
): Promise<StartCall> {
  refuseStart({ command, args, text });
  graceOf(args); // A wrong duration is refused before anything is loaded.
  const wanted = sessionIdOf(args);
  const wish = { ...wishOf(args, io.env), ...defined({ environment: await environmentOf(args) }) };
  const isStrict = findStrictBounds(args, io).value;
  const given = args.text("input");
  refuseSecondStdin(args, given === "-" ? "--input -" : undefined);
  const input = given === undefined ? text : await readInput(given, io);
  const sessionId = wanted ?? mintId("ses", Date.now(), randomU32);
  return { command, text, wish, isStrict, input, sessionId, cwd: io.cwd, wanted };
}

/** The agent that a call names, and what a person should know of it. @throws HoldfastError as `loadAgent`. */
export async function loadStarted(
  path: string,
  args: Arguments,
  { input, wish, ...facts }: Pick<StartFacts, "command" | "text" | "wish" | "input" | "insteadOfChat">,
  io: Io,
): Promise<LoadedAgent> {
  const sandbox = args.text("sandbox");
  const loaded = await loadAgent(path, {
    cwd: io.cwd,
    env: io.env,
    given: wish.environment,
    resumesAtReset: args.has("resume-at-reset"),
    overrides: {
      ...(args.has("worktree") ? { workspace: "worktree" } : {}),
      ...defined({ sandbox }),
    },
    profile: args.text("profile") ?? profileIn(input),
    onSlow: () => io.note(`${path} is still being loaded`),
  });
  refuseStart({ ...facts, args, loaded });
  const { record, notes = [] } = loaded;
  for (const note of notes) io.note(`${io.notes.symbols.warn} ${note}`);
  if (record !== undefined) {
    noteIsolation(record, io);
    await noteUnusedFiles(io);
  }
  return loaded;
}

async function environmentOf(args: Arguments) {
  if (!args.has("env") && !args.has("env-ref")) return undefined;
  return (await import("../../library/given-environment.ts")).givenEnvironment(args);
}

/** The most files of other tools that one note names. */
const UNUSED_MAX = 12;

/** One line that names the files of other tools which no session uses, with their kinds, and events whose hooks are not run. */
async function noteUnusedFiles(io: Io): Promise<void> {
  const { findUnusedFiles, readHookFiles } = await import("@holdfast/agents");
  const places = agentPlaces(io);
  const unused = [
    ...[...Map.groupBy(findUnusedFiles(places), ({ path }) => path)].map(
      ([path, files]) => `${shownPath(path, io)} (${files.map(({ kind }) => kind).join(", ")})`,
    ),
    ...readHookFiles(places).flatMap(({ path, verdicts }) => {
      const events = verdicts.flatMap(({ field, verdict }) =>
        verdict === "ignored" ? (/^hooks\.(\w+)$/.exec(field)?.[1] ?? []) : [],
      );
      return events.length === 0 ? [] : [`hooks of ${events.join(" and ")} in ${shownPath(path, io)}`];
    }),
  ].map((what) => plainLine(what, 160));
  if (unused.length === 0) return;
  const more = unused.length - UNUSED_MAX;
  const rest = more > 0 ? ` and ${more} more` : "";
  io.note(
    io.notes.paint.dim(
      `not used here: ${unused.slice(0, UNUSED_MAX).join(", ")}${rest} (\`${io.call("agents check")}\` says why)`,
    ),
  );
}
