// `prepareRun`: the agent of a call of `run`, its input, and the session that it continues.

import { encodeJson, HoldfastError, ConflictError, validate, type Session } from "@holdfast/core";
import type { AgentRecord, GivenEnvironment } from "@holdfast/agents";
import { agentSourceText, type AgentSource } from "@holdfast/machine/agent-source";
import type { Agent, StartOptions } from "@holdfast/runtime";
import { takeOnly } from "../../frame/arguments.ts";
import type { Arguments, Io } from "../../frame/command.ts";
import { readInput } from "../../frame/input.ts";
import { quoted } from "../../frame/plain-text.ts";
import { findDatabase, type Database } from "../../place/project.ts";
import { refuseSecondStdin } from "../../secrets/agent-secrets.ts";
import { loadAgent } from "../load-agent.ts";
import { inputOf, overridesOf, profileIn, refuseForFound } from "../loading/external-input.ts";
import { findPlaceOf, findStarted } from "./found-session.ts";
import type { RunCall } from "./run-call.ts";
import { refuseCombinations, type RunFacts } from "./run-refusals.ts";

interface LoadedRun {
  readonly agent: Agent;
  readonly source: AgentSource;
  /** The source, as the session stores it. */
  readonly file: string;
  readonly isExternal: boolean;
  /** The agent file. */
  readonly record: AgentRecord | undefined;
  readonly input: unknown;
  /** The input as it was given, by `--input` or as a text. */
  readonly givenInput: string | undefined;
  readonly facts: RunFacts;
}

export interface PreparedRun extends LoadedRun {
  readonly call: RunCall;
  readonly options: RunCall["options"];
  /** The database of this call; absent for an ephemeral session. */
  readonly database: Database | undefined;
  /** The database with the session. It is that of the local stack when the session is there. */
  readonly place: Database | undefined;
  /** The session that this call continues. */
  readonly found: Session | undefined;
}

export async function prepareRun(call: RunCall, io: Io): Promise<PreparedRun> {
  const { args, wanted } = call;
  const loaded = await loadRun(call, io);
  const { agent, file, record } = loaded;
  const database = args.has("ephemeral") ? undefined : findDatabase(args, io);
  const sought = { args, io, agent, file, wanted };
  const place = database === undefined ? undefined : await findPlaceOf(database, sought);
  const found = place === undefined ? undefined : await findStarted(place, sought);
  await checkInput(loaded, found, args, io);
  const facts = { ...loaded.facts, isFound: found !== undefined };
  refuseCombinations(facts);
  const options = { ...limitsOf(record), ...call.options };
  return { ...loaded, facts, call, options, database, place, found };
}

async function loadRun({ args, usage }: RunCall, io: Io): Promise<LoadedRun> {
  const [path, text] = takePathAndText(args, usage);
  refuseCombinations({ args, usage, text });
  const environment = await environmentOf(args, usage);
  const given = args.text("input");
  refuseSecondStdin(args, given === "-" ? "--input -" : undefined);
  const plainInput = given === undefined ? text : await readInput(given, io);
  const {
    agent,
    source,
    record,
    notes = [],
  } = await loadAgent(path, {
    cwd: io.cwd,
    env: io.env,
    given: environment,
    resumesAtReset: args.has("resume-at-reset"),
    overrides: overridesOf(args),
    profile: args.text("profile") ?? profileIn(plainInput),
    onSlow: () => io.note(`${path} is still being loaded`),
  });
  const file = agentSourceText(source);
  const isExternal = source.kind === "program";
  const input = inputOf(plainInput, args, { agent: agent.name, isExternal, record });
  for (const note of notes) io.note(`${io.notes.symbols.warn} ${note}`);
  if (record !== undefined)
    (await import("../../agents/workspaces/isolation-note.ts")).noteIsolation(record, io);
  const facts = { args, usage, text, agent, isExternal, record };
  refuseCombinations(facts);
  return { agent, source, file, isExternal, record, input, givenInput: given ?? text, facts };
}

/** The file or name of the agent, and a text as its input. */
function takePathAndText(args: Arguments, usage: string): readonly [path: string, text: string | undefined] {
  const [path, text, ...rest] = args.positionals;
  if (text === undefined || rest.length > 0)
    return [takeOnly(args.positionals, "the agent's file, or --agent NAME", usage), undefined];
  return [path ?? "", text];
}

async function environmentOf(args: Arguments, usage: string): Promise<GivenEnvironment | undefined> {
  if (!args.has("env") && !args.has("env-ref")) return undefined;
  return (await import("../../library/given-environment.ts")).givenEnvironment(args, usage);
}

/** The input is checked before anything is written. The schema's result is recorded. */
async function checkInput(
  { agent, input, givenInput }: LoadedRun,
  found: Session | undefined,
  args: Arguments,
  io: Io,
): Promise<void> {
  if (found !== undefined && givenInput === undefined) return refuseForFound(args, found.sessionId);
  const valid = await validInput(agent, input, givenInput === undefined, args.positionals[0] ?? "", io);
  if (found !== undefined && encodeJson(valid, "the input") !== found.input)
    throw otherInput(found, givenInput);
}

/**
 * The schema's result for the input. Without an input, the error explains that one is needed and how to give
 * it.
 */
async function validInput(
  agent: Agent,
  input: unknown,
  isMissing: boolean,
  path: string,
  io: Io,
): Promise<unknown> {
  try {
    return await validate(agent.input, input, `input of agent "${agent.name}"`, "invalid_input");
  } catch (error) {
    if (!isMissing || !HoldfastError.is(error)) throw error;
    throw new HoldfastError("invalid_input", `agent "${agent.name}" needs an input, and none was given`, {
      expected: error.message,
      fix: `give it: ${io.call(`run ${quoted(path)} --input '{…}'`)}, or a text: ${io.call(`run ${quoted(path)} "…"`)}`,
      cause: error,
    });
  }
}

function otherInput({ sessionId, input }: Session, given: string | undefined): ConflictError {
  return new ConflictError("session_exists", `session ${sessionId} was started with another input`, {
    ...(given === undefined ? {} : { got: given }),
    expected: input ?? "no input",
    fix: "leave --input out to continue it, or start another session",
  });
}

/** The limits that an agent file sets. The options of the call override them. */
function limitsOf(record: AgentRecord | undefined): Pick<StartOptions, "budget" | "timeoutMs"> {
  if (record === undefined) return {};
  const { budget, ttlMs, isConversation } = record;
  return {
    ...(budget === null ? {} : { budget }),
    // A conversation waits this long for its next request.
    ...(ttlMs === null || isConversation ? {} : { timeoutMs: ttlMs }),
  };
}
