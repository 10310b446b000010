// `holdfast runs`: asks a coordinator what is to be done and who does it.

import { RunService, type Run } from "@holdfast/proto";
import type { Arguments, Io } from "./command.ts";
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
        run.agent,
        run.status,
        run.since === undefined ? "" : `${duration(Math.max(0, now - run.since))} ago`,
        run.holder ?? "",
        run.leaseUntil === undefined ? "" : `${duration(Math.max(0, run.leaseUntil - now))} left`,
        run.blocked ?? "",
      ].map((cell) => plainLine(cell, CELL_CHARS)),
    );
  io.show(shown.map(runJson), shown.length === 0 ? "" : table([head, ...rows]).join("\n"));
  if (shown.length === 0) io.note("no runs: nothing of this is to be done");
  if (isMore) io.note(io.notes.paint.dim(`there are more: --limit ${limit * 10}`));
  return 0;
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

function runJson(run: Run) {
  const { runId, sessionId, agent, agentVersion, status, demands, priority, owner, blocked, holder } = run;
  const { since, token, leaseUntil } = run;
  return {
    runId,
    sessionId,
    agent,
    agentVersion,
    status,
    demands,
    priority,
    ...(owner === undefined ? {} : { owner }),
    ...(since === undefined ? {} : { since: Number(since) }),
    ...(blocked === undefined ? {} : { blocked }),
    ...(holder === undefined ? {} : { holder }),
    ...(token === undefined ? {} : { token: Number(token) }),
    ...(leaseUntil === undefined ? {} : { leaseUntil: Number(leaseUntil) }),
  };
}
