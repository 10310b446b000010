// `startChat`: a conversation with an agent file, begun or continued, in this process.

import {
  ConflictError,
  decodeJson,
  HoldfastError,
  isEnded,
  NotFoundError,
  UsageError,
  validate,
  type Session,
} from "@holdfast/core";
import type { Agent, Runtime, SessionHandle } from "@holdfast/runtime";
import { noteSharedFolder } from "../agents/workspaces/shared-folder.ts";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { quoted } from "@holdfast/terminal/frame/plain-text";
import { findSession, placeOf, placeOfExact, withReader } from "@holdfast/place/find-session";
import { findDatabase, type Database } from "@holdfast/place/project";
import { driveCall } from "../run/drive/drive-call.ts";
import { loadAgent } from "../run/load-agent.ts";
import { loadedAgentOf } from "../run/recorded-agent.ts";
import { loadStarted, readCall } from "../run/starting/prepare-start.ts";
import { planStart } from "../run/starting/start-plan.ts";
import { refuseStart } from "../run/starting/start-refusals.ts";
import { start } from "../run/starting/start.ts";
import { secretsFor } from "@holdfast/terminal/secrets/agent-secrets";
import { entryText, roleText } from "@holdfast/terminal/view/event-line";
import { programOf } from "@holdfast/machine/agent-source";
import { ChatCommands, ProgramCommands, type LineCommands } from "./chat-commands.ts";
import { ChatTalk } from "./chat-talk.ts";

/** @returns the exit code. */
export async function startChat(args: Arguments, io: Io): Promise<number> {
  const [path, text] = args.positionals;
  const call = await readCall(args, { command: "chat", text }, io);
  const { wanted, sessionId } = call;
  const given = findDatabase(args, io);
  // With a PATH it is the whole id of a new session, or of one that goes on.
  const place = path === undefined ? placeOf : placeOfExact;
  const database = wanted === undefined ? given : await place(given, wanted);
  const found = wanted === undefined ? undefined : await sessionOf(wanted, database, path === undefined);
  if (found !== undefined) {
    refuseStart({ ...call, args, found });
    return continueChat(found, database, args, io);
  }
  const insteadOfChat = io.call(`run ${quoted(path ?? "")}`);
  const loaded = await loadStarted(path ?? "", args, { ...call, insteadOfChat }, io);
  const { source } = loaded;
  const commands = commandsFor(source.kind === "program" ? source.name : undefined, io);
  const planOf = (said: string) =>
    planStart(args, { ...call, text: said, input: said, loaded, found: null, database });
  // All that can be refused is refused before a person types.
  const { start: begun } = planOf(text ?? "");
  if (text !== undefined) await checkText(loaded.agent, begun.input);
  const secrets = await secretsFor({ agents: [loaded.agent] }, args, io);
  const chat = new ChatTalk(io, sessionId, text === undefined ? undefined : [], commands);
  const said = text ?? (await chat.first());
  if (said !== undefined) return start(planOf(said), args, io, { secrets, chat });
  await chat.close();
  return 0;
}

function commandsFor(program: string | undefined, io: Io): LineCommands {
  return program === undefined ? new ChatCommands(io) : new ProgramCommands(program);
}

async function continueChat(session: Session, database: Database, args: Arguments, io: Io): Promise<number> {
  const { sessionId, status, agent: ref } = session;
  const [path, text] = args.positionals;
  if (isEnded(status))
    throw new ConflictError("session_ended", `session ${sessionId} has ended (${status})`, {
      fix: `look at it: ${io.call(`logs ${sessionId}`)}, or start another conversation`,
    });
  if (path !== undefined) await checkName(path, session, io);
  const isElsewhere = database.coordinator !== undefined && ref.file === undefined;
  const loaded = isElsewhere ? undefined : await loadedAgentOf(session, database, args, io);
  const agent = loaded?.agent;
  if (loaded !== undefined)
    await noteSharedFolder({ record: undefined, ...loaded, sessionId, place: database }, io);
  const secrets = agent === undefined ? undefined : await secretsFor({ agents: [agent] }, args, io);
  await showRecent(session, database, io);
  const chat = new ChatTalk(
    io,
    sessionId,
    text === undefined ? [] : [text],
    commandsFor(programOf(ref.file), io),
  );
  const begin = (runtime: Runtime): Promise<SessionHandle | undefined> =>
    agent === undefined ? Promise.resolve(undefined) : runtime.resume(sessionId);
  return driveCall({ agent, sessionId, database, begin, secrets, chat }, args, io);
}

async function sessionOf(
  wanted: string,
  database: Database,
  mustExist: boolean,
): Promise<Session | undefined> {
  return withReader(database, async (reader) => {
    if (reader === undefined && mustExist)
      throw new NotFoundError("session_not_found", `there is no session ${quoted(wanted)}`, {
        at: database.path,
        fix: "run `holdfast list` to see all sessions",
      });
    if (reader === undefined) return undefined;
    return mustExist ? findSession(reader, wanted) : reader.session(wanted);
  });
}

async function checkName(path: string, { sessionId, agent }: Session, io: Io): Promise<void> {
  const { agent: loaded } = await loadAgent(path, { cwd: io.cwd, env: io.env });
  if (loaded.name === agent.name) return;
  throw new ConflictError("session_exists", `session ${sessionId} belongs to another agent`, {
    got: `agent "${loaded.name}"`,
    expected: `agent "${agent.name}"`,
    fix: `continue it: ${io.call(`chat --session ${sessionId}`)}, or choose another id`,
  });
}

async function checkText(agent: Agent, input: unknown): Promise<void> {
  try {
    await validate(agent.input, input, `input of agent "${agent.name}"`, "invalid_input");
  } catch (error) {
    if (!HoldfastError.is(error)) throw error;
    throw new UsageError("the message is empty", { expected: "a text", cause: error });
  }
}

const RECENT = 6;

/** The end of the conversation so far. */
async function showRecent({ sessionId, entryCount }: Session, database: Database, io: Io): Promise<void> {
  if (io.isJson) return;
  await withReader(database, async (reader) => {
    const entries = (await reader?.entries(sessionId, Math.max(0, entryCount - RECENT), RECENT)) ?? [];
    for (const { role, content } of entries) {
      const value = decodeJson(content);
      const said = entryText(role, value);
      if (said !== "")
        io.note(io.notes.paint.dim(`${role === "user" ? "you" : roleText(role, value)}: ${said}`));
    }
  });
}
