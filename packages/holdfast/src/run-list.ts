// Asks a coordinator what is to be done and who does it: `holdfast runs`, and for `show` the run of one session.

import { toHoldfastError } from "@holdfast/core";
import { RunService, type Run } from "@holdfast/proto";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import type { Arguments, Io } from "./command.ts";
import type { CoordinatorAccess } from "./coordinator-access.ts";
import { askCoordinator } from "./coordinator-call.ts";
import { duration, plainLine, table } from "./plain-text.ts";

const PAGE = 500;
const CELL_CHARS = 100;

/** @returns the exit code. */
export async function listRuns(limit: number, args: Arguments, io: Io): Promise<number> {
  const [shown, isMore] = await readRuns(limit, args, io);
  const now = Date.now();
  const head = ["SESSION", "AGENT", "STATUS", "SINCE", "RUNNER", "LEASE", "WHY NOT TAKEN"];
  const rows = shown
    .map(runJson)
    .map((run) =>
      [
        run.sessionId,
        run.agent.name,
        run.status,
        run.since === undefined ? "" : `${duration(Math.max(0, now - run.since))} ago`,
        run.runnerName ?? run.holder ?? "",
        run.leaseUntil === undefined ? "" : `${duration(Math.max(0, run.leaseUntil - now))} left`,
        run.blocked ?? "",
      ].map((cell) => plainLine(cell, CELL_CHARS)),
    );
  io.show(shown.map(runJson), shown.length === 0 ? "" : table([head, ...rows]).join("\n"));
  if (shown.length === 0) io.note("no runs: nothing of this is to be done");
  if (isMore) io.note(io.notes.paint.dim(`there are more: --limit ${limit * 10}`));
  return 0;
}

/** The run a session has, if it has one, and as far as the caller may see runs: an agent at work may not. */
export async function readRunOf(access: CoordinatorAccess, sessionId: string): Promise<RunJson | undefined> {
  const connection = new CoordinatorConnection({ ...access });
  try {
    const { runs } = await connection.ask(() => connection.client(RunService).list({ sessionId, limit: 1 }));
    return runs.map(runJson)[0];
  } catch (thrown) {
    const error = toHoldfastError(thrown);
    if (error.code === "insufficient_scope") return undefined;
    throw error;
  } finally {
    connection.close();
  }
}

/** Say why no runner takes a session of a coordinator, if none fits it. @returns its run, as far as that can be told. Never rejects. */
export async function sayUntaken(
  access: CoordinatorAccess | undefined,
  sessionId: string,
  io: Pick<Io, "note" | "notes">,
): Promise<RunJson | undefined> {
  const run = access && (await readRunOf(access, sessionId).catch(() => undefined));
  const { paint, symbols } = io.notes;
  if (run?.blockedUntil !== undefined)
    io.note(paint.yellow(`${symbols.warn} nobody takes it yet: ${plainLine(run.blocked ?? "", Infinity)}`));
  return run;
}

async function readRuns(
  limit: number,
  args: Arguments,
  io: Io,
): Promise<readonly [runs: readonly Run[], isMore: boolean]> {
  const [status, sessionId, agent] = [args.text("status"), args.text("session"), args.text("agent")];
  const [runnerId, owner] = [args.text("runner"), args.text("owner")];
  const filter = {
    ...(status === undefined ? {} : { status }),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(agent === undefined ? {} : { agent }),
    ...(runnerId === undefined ? {} : { runnerId }),
    ...(owner === undefined ? {} : { owner }),
  };
  return askCoordinator(args, io, async (connection) => {
    const service = connection.client(RunService);
    const runs: Run[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await service.list({
        ...filter,
        limit: Math.min(PAGE, limit - runs.length),
        ...(cursor === undefined ? {} : { cursor }),
      });
      runs.push(...page.runs);
      cursor = page.nextCursor;
      if (cursor === undefined || runs.length >= limit) return [runs, cursor !== undefined];
    }
  });
}

export type RunJson = ReturnType<typeof runJson>;

/** A run for programs; its agent as a session's is told. */
function runJson(run: Run) {
  const { runId, sessionId, agent, agentVersion, status, demands, priority, owner, blocked, holder } = run;
  const { since, token, leaseUntil, runnerName, blockedUntil } = run;
  return {
    runId,
    sessionId,
    agent: { name: agent, version: agentVersion },
    status,
    demands,
    priority,
    ...(owner === undefined ? {} : { owner }),
    ...(since === undefined ? {} : { since: Number(since) }),
    ...(blocked === undefined ? {} : { blocked }),
    ...(blockedUntil === undefined ? {} : { blockedUntil: Number(blockedUntil) }),
    ...(holder === undefined ? {} : { holder }),
    ...(runnerName === undefined ? {} : { runnerName }),
    ...(token === undefined ? {} : { token: Number(token) }),
    ...(leaseUntil === undefined ? {} : { leaseUntil: Number(leaseUntil) }),
  };
}
