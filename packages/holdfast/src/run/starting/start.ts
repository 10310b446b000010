// `start`: carries out a plan. The session runs in this process, or runners have it and this process follows.
// `startAt` is the start alone. A held runner uses it, because its host follows the session in its own way.

import { defined, encodeJson, ConflictError, HoldfastError, validate } from "@holdfast/core";
import type { Agent, Runtime, SessionHandle } from "@holdfast/runtime";
import { worksInFolder } from "../../agents/workspaces/works-in-folder.ts";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { quoted } from "@holdfast/terminal/frame/plain-text";
import type { CoordinatorAccess } from "@holdfast/place/coordinator-access";
import { noteStack } from "@holdfast/place/find-session";
import type { Database } from "@holdfast/place/project";
import type { HoldfastClient } from "@holdfast/client";
import { secretsFor } from "@holdfast/terminal/secrets/agent-secrets";
import { showEndedBefore } from "@holdfast/terminal/view/session-end";
import { driveCall, type DriveCall } from "../drive/drive-call.ts";
import type { LoadedAgent } from "../load-agent.ts";
import type { SessionStart, StartPlan } from "./start-plan.ts";

/** A runtime of this process, or the runners of a coordinator. Either can start a session. */
type Starter =
  | { readonly type: "runtime"; readonly runtime: Runtime; readonly agent: Agent }
  | { readonly type: "runners"; readonly client: HoldfastClient; readonly name: string };

/** @returns the exit code. */
export async function start(
  plan: StartPlan,
  args: Arguments,
  io: Io,
  talk: Pick<DriveCall, "chat" | "secrets"> = {},
): Promise<number> {
  const { place, loaded, found } = plan;
  const { sessionId, options } = plan.start;
  if (loaded !== undefined) await checkInput(plan, loaded, args, io);
  switch (place.type) {
    case "ended":
      return showEndedBefore(place.session, io);
    case "followed":
      return follow(sessionId, place.database, args, io);
    case "runners": {
      const { database, name } = place;
      if ("agents" in database) noteStack(database, io);
      const begin = () => startByRunners(plan.start, name, database.coordinator, args, io);
      return driveCall({ agent: undefined, sessionId, database, begin }, args, io);
    }
    case "here": {
      const { database, loaded: agentHere } = place;
      const { agent } = agentHere;
      if (plan.missedByStack !== undefined)
        io.note(io.notes.paint.dim(`${plan.missedByStack}: the session runs in this process`));
      const secrets = talk.secrets ?? (await secretsFor({ agents: [agent] }, args, io));
      await noteFolder(plan, agentHere, database, io);
      const begin = async (runtime: Runtime): Promise<SessionHandle> => {
        if (found !== null) return runtime.resume(sessionId);
        const handle = await startAt(plan.start, { type: "runtime", runtime, agent });
        return handle?.created === true ? handle : runtime.resume(sessionId);
      };
      const isBudgeted = options.budget !== undefined;
      return driveCall({ agent, sessionId, database, begin, isBudgeted, ...talk, secrets }, args, io);
    }
  }
}

/** Starts a session, or finds the same one under its id. @returns its handle, where it runs in this process. */
export async function startAt(
  { input, sessionId, file, options }: SessionStart,
  starter: Starter,
): Promise<SessionHandle | undefined> {
  if (starter.type === "runtime") {
    const { demands: _, ...limits } = options;
    const source = file === undefined ? {} : { file };
    return starter.runtime.start(starter.agent, input, { sessionId, ...source, ...limits });
  }
  await starter.client.sessions.start(starter.name, input, { sessionId, ...options });
  return undefined;
}

/** Follows a session that runners have, to its end. @returns the exit code. */
export function follow(
  sessionId: string,
  database: Database,
  args: Arguments,
  io: Io,
  showsPast = false,
): Promise<number> {
  const begin = () => Promise.resolve(undefined);
  return driveCall({ agent: undefined, sessionId, database, begin, showsPast }, args, io);
}

async function startByRunners(
  wanted: SessionStart,
  name: string,
  { url, token }: CoordinatorAccess,
  args: Arguments,
  io: Io,
): Promise<undefined> {
  const { createClient } = await import("@holdfast/client");
  const client = createClient({ url, token });
  const id = args.text("session");
  try {
    await startAt(wanted, { type: "runners", client, name });
  } catch (thrown) {
    if (!HoldfastError.is(thrown) || thrown.code !== "session_exists" || id === undefined) throw thrown;
    throw new HoldfastError(
      "session_exists",
      `session ${id} was started with another agent, input or options`,
      {
        fix: `choose another id; run ${io.call(`show ${id}`)} to see that session`,
        cause: thrown,
      },
    );
  } finally {
    client.close();
  }
}

/** The input is checked before anything is written. The schema's result is recorded. */
async function checkInput(
  { start: { input, sessionId }, hasInput, found }: StartPlan,
  { agent }: LoadedAgent,
  args: Arguments,
  io: Io,
): Promise<void> {
  if (found !== null && !hasInput) return;
  const [path = "", text] = args.positionals;
  const what = `input of agent "${agent.name}"`;
  let valid: unknown;
  try {
    valid = await validate(agent.input, input, what, "invalid_input");
  } catch (error) {
    if (hasInput || !HoldfastError.is(error)) throw error;
    throw new HoldfastError("invalid_input", `agent "${agent.name}" needs an input, and none was given`, {
      expected: error.message,
      fix: `give it: ${io.call(`run ${quoted(path)} --input '{…}'`)}, or a text: ${io.call(`run ${quoted(path)} "…"`)}`,
      cause: error,
    });
  }
  if (found === null || encodeJson(valid, "the input") === found.input) return;
  throw new ConflictError("session_exists", `session ${sessionId} was started with another input`, {
    ...defined({ got: args.text("input") ?? text }),
    expected: found.input ?? "no input",
    fix: "leave --input out to continue it, or start another session",
  });
}

/** Says what a person should know of the folder that the session works in. */
async function noteFolder(
  { folder, found, continues, start: { sessionId } }: StartPlan,
  loaded: LoadedAgent,
  place: Database | undefined,
  io: Io,
): Promise<void> {
  if (folder === "worktree" && found === null) {
    const { noteUncommitted } = await import("../../agents/workspaces/uncommitted-work.ts");
    await noteUncommitted(io);
  }
  if (folder !== "shared" || place === undefined || !worksInFolder(loaded)) return;
  const { noteSharedFolder } = await import("../../agents/workspaces/shared-folder.ts");
  const named = continues === undefined ? {} : { named: continues };
  await noteSharedFolder({ record: undefined, ...loaded, sessionId, place, ...named }, io);
}
