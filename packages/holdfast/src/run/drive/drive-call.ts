// `driveCall`: `drive` with the secrets of the agent and with the traces, the grace and the parking that a
// command asks for.

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { graceOf } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { findTraces, trustFileOf } from "@holdfast/place/project";
import { secretsFor } from "@holdfast/terminal/secrets/agent-secrets";
import { wantedTracer } from "@holdfast/place/settings/wanted-tracer";
import { drive, type DriveOptions } from "./drive.ts";
import { parksOf } from "./parks.ts";

export interface DriveCall extends Pick<
  DriveOptions,
  "agent" | "sessionId" | "database" | "begin" | "isBudgeted" | "showsPast" | "chat"
> {
  /** The secrets of the agent, if they were asked for already. */
  readonly secrets?: ReadonlyMap<string, string> | undefined;
}

/** @returns the exit code. */
export async function driveCall({ secrets, ...driven }: DriveCall, args: Arguments, io: Io): Promise<number> {
  const { agent } = driven;
  const isHere = agent !== undefined;
  const runtime = isHere ? { secrets: secrets ?? (await secretsFor({ agents: [agent] }, args, io)) } : {};
  const tracer = isHere ? await wantedTracer(findTraces(args, io), io) : undefined;
  const readsStdin = args.text("input") !== "-" && !args.has("secret-stdin");
  const shown = { readsStdin, isVerbose: args.has("verbose") };
  const code = await drive(
    { ...driven, runtime, tracer, parks: parksOf(args), ...graceOf(args), ...shown },
    io,
  );
  if (isHere) await noteWorktree(driven.sessionId, io);
  return code;
}

/** Says what a session has changed in its worktree, if it has one. */
async function noteWorktree(sessionId: string, io: Io): Promise<void> {
  if (!existsSync(join(dirname(trustFileOf(io)), "worktrees"))) return; // Most users have none.
  const { noteWork } = await import("../../agents/workspaces/project-worktrees.ts");
  await noteWork(sessionId, io).catch((error: unknown) => void io.complain(error));
}
