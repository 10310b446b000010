// `runAtPlace`: the place where the session of a call of `run` runs.
//
//   it has ended                                   nowhere: its end is shown
//   it exists, and the local stack runs its agent  in the stack, and this process follows
//   it is new, and the stack has loaded its agent  in the stack, and this process follows
//   otherwise                                      in this process

import { isEnded, mintId } from "@holdfast/core";
import type { Runtime } from "@holdfast/runtime";
import { graceOf } from "../../frame/arguments.ts";
import type { Io } from "../../frame/command.ts";
import { randomU32 } from "../../frame/random.ts";
import { findStrictBounds, findTraces } from "../../place/project.ts";
import { secretsFor } from "../../secrets/agent-secrets.ts";
import { parksOf } from "../drive/parks.ts";
import { askedWorkspace, withOptions } from "../loading/external-input.ts";
import type { PreparedRun } from "./prepare-run.ts";
import { refuseCombinations, resumesInStack } from "./run-refusals.ts";

/** @returns the exit code. */
export async function runAtPlace(prepared: PreparedRun, io: Io): Promise<number> {
  const { agent, file, found, place, database } = prepared;
  const { args } = prepared.call;
  if (found !== undefined && isEnded(found.status)) {
    const { showEndedBefore } = await import("../../view/session-end.ts");
    return showEndedBefore(found, io);
  }
  const { followInStack, stackThatRuns } = await import("../stack-run.ts");
  if (found !== undefined && place !== undefined) {
    const followed = await followInStack(found, place, args, io);
    if (followed !== undefined) return followed;
  } else if (stackThatRuns(agent, file, database, args, io) !== undefined) {
    return runInStack(prepared, io);
  }
  return runHere(prepared, io);
}

async function runInStack({ agent, input, facts, call, options }: PreparedRun, io: Io): Promise<number> {
  refuseCombinations({ ...facts, isOfStack: true });
  const forStack = resumesInStack(facts) ? withOptions(input, { resumeAtReset: true }) : input;
  const { runByName } = await import("../run-by-name.ts");
  return runByName({ name: agent.name, wanted: call.wanted, input: forStack, options }, call.args, io);
}

async function runHere(prepared: PreparedRun, io: Io): Promise<number> {
  const { agent, call, options, place, found } = prepared;
  const { args, wanted } = call;
  const secrets = await secretsFor({ agents: [agent] }, args, io);
  const sessionId = found?.sessionId ?? wanted ?? mintId("ses", Date.now(), randomU32);
  await noteFolder(prepared, sessionId, io);
  const { wantedTracer } = await import("../../tracing/wanted-tracer.ts");
  const tracer = await wantedTracer(findTraces(args, io), io);
  const { drive } = await import("../drive/drive.ts");
  return drive(
    {
      agent,
      sessionId,
      database: place,
      begin: (runtime) => startOrResume(runtime, prepared, sessionId),
      isBudgeted: options.budget !== undefined,
      runtime: { strictBounds: findStrictBounds(args, io).value, secrets },
      tracer,
      parks: parksOf(args),
      ...(await graceOf(args)),
      readsStdin: args.text("input") !== "-" && !args.has("secret-stdin"),
    },
    io,
  );
}

/** Says what a person should know of the folder that the session works in. */
async function noteFolder(
  { agent, source, isExternal, record, input, place, found }: PreparedRun,
  sessionId: string,
  io: Io,
): Promise<void> {
  const workspace = isExternal ? askedWorkspace(input) : record?.workspace;
  if (workspace === "worktree") {
    if (found !== undefined) return;
    const { noteUncommitted } = await import("../../agents/workspaces/uncommitted-work.ts");
    return noteUncommitted(io);
  }
  const hasOwnFolder = isExternal && workspace === "empty";
  const { worksInFolder } = await import("../../agents/workspaces/works-in-folder.ts");
  if (place === undefined || hasOwnFolder || !worksInFolder({ agent, source })) return;
  const { noteSharedFolder } = await import("../../agents/workspaces/shared-folder.ts");
  await noteSharedFolder({ sessionId, agent, source, record, place }, io);
}

async function startOrResume(
  runtime: Runtime,
  { agent, file, input, options, found }: PreparedRun,
  sessionId: string,
) {
  if (found !== undefined) return runtime.resume(sessionId);
  const handle = await runtime.start(agent, input, { sessionId, file, ...options });
  return handle.created ? handle : runtime.resume(sessionId);
}
