// Asks a coordinator about runs: `holdfast runs`, the result of one run, and for `show` the run that a
// session has.

import { defined, toHoldfastError } from "@holdfast/core";
import { RunService, type Run } from "@holdfast/proto";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import type { CoordinatorAccess } from "../place/coordinator-access.ts";
import { askCoordinator } from "../place/coordinator-call.ts";
import { duration, plainLine, table } from "@holdfast/terminal/frame/plain-text";
import { runJson, type RunJson } from "@holdfast/terminal/view/run-json";

const PAGE = 500;
const CELL_CHARS = 100;
/** How long one request waits for the end of a run; the most that the contract allows. */
const WAIT_MS = 30_000;

/** @returns the exit code. */
export async function listRuns(limit: number, args: Arguments, io: Io): Promise<number> {
  const [shown, isMore] = await readRuns(limit, args, io);
  const now = Date.now();
  if (args.text("status") === "ended") return listEnded(shown, isMore, limit, io);
  const head = ["SESSION", "AGENT", "STATUS", "SINCE", "RUNNER", "LEASE", "WHY IT WAITS"];
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
  if (shown.length === 0) io.note("no runs are queued or claimed");
  if (isMore) io.note(io.notes.paint.dim(`there are more: --limit ${limit * 10}`));
  return 0;
}

function listEnded(shown: readonly Run[], isMore: boolean, limit: number, io: Io): number {
  const head = ["RUN", "AGENT", "OUTCOME", "TOOK", "ENDED", "RUNNER"];
  const rows = shown
    .map(runJson)
    .map(({ runId, agent, outcome = "", since, endedAt, holder = "" }) =>
      [
        runId,
        agent.name,
        outcome,
        since === undefined || endedAt === undefined ? "" : duration(Math.max(0, endedAt - since)),
        endedAt === undefined ? "" : `${duration(Math.max(0, Date.now() - endedAt))} ago`,
        holder,
      ].map((cell) => plainLine(cell, CELL_CHARS)),
    );
  io.show(shown.map(runJson), shown.length === 0 ? "" : table([head, ...rows]).join("\n"));
  if (shown.length === 0) io.note("no ended runs match");
  if (isMore) io.note(io.notes.paint.dim(`there are more: --limit ${limit * 10}`));
  return 0;
}

/** Show one run and its result. @returns the exit code. @throws HoldfastError `not_found` */
export async function showRun(runId: string, args: Arguments, io: Io): Promise<number> {
  const { run, ended, output, error } = await askCoordinator(args, io, async (connection) => {
    const service = connection.client(RunService);
    if (!args.has("wait")) return service.getResult({ runId, waitMs: 0 });
    for (let asked = runId; ;) {
      const answer = await service.getResult({ runId: asked, waitMs: WAIT_MS });
      if (answer.ended) return answer;
      asked = answer.run?.token === undefined ? asked : answer.run.runId; // A queued run has been claimed meanwhile.
    }
  });
  const shown = runJson(run!);
  const text = output === undefined ? undefined : new TextDecoder().decode(output);
  const result = {
    ...shown,
    ended,
    ...(text === undefined ? {} : { output: JSON.parse(text) as unknown }),
    ...(error === undefined ? {} : { error: { code: error.code, message: error.message } }),
  };
  const status = ended ? `ended: ${shown.outcome ?? ""}` : shown.status;
  const lines = [`${shown.runId}  ${status}`, ...(text === undefined ? [] : [text])];
  if (error !== undefined) lines.push(`${error.code}: ${error.message}`);
  io.show(result, lines.map((line) => plainLine(line, Infinity)).join("\n"));
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

/**
 * Say why no runner takes a session of a coordinator, if none fits it. @returns its run, as far as that can
 * be told. Never rejects.
 */
export async function sayUntaken(
  access: CoordinatorAccess | undefined,
  sessionId: string,
  io: Pick<Io, "note" | "notes">,
): Promise<RunJson | undefined> {
  const run = access && (await readRunOf(access, sessionId).catch(() => undefined));
  const { paint, symbols } = io.notes;
  if (run?.blockedUntil !== undefined)
    io.note(
      paint.yellow(`${symbols.warn} no runner has claimed it yet: ${plainLine(run.blocked ?? "", Infinity)}`),
    );
  return run;
}

async function readRuns(
  limit: number,
  args: Arguments,
  io: Io,
): Promise<readonly [runs: readonly Run[], isMore: boolean]> {
  const [status, sessionId, agent] = [args.text("status"), args.text("session"), args.text("agent")];
  const [runnerId, owner] = [args.text("runner"), args.text("owner")];
  const filter = defined({ status, sessionId, agent, runnerId, owner });
  return askCoordinator(args, io, async (connection) => {
    const service = connection.client(RunService);
    const runs: Run[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await service.list({
        ...filter,
        limit: Math.min(PAGE, limit - runs.length),
        ...defined({ cursor }),
      });
      runs.push(...page.runs);
      cursor = page.nextCursor;
      if (cursor === undefined || runs.length >= limit) return [runs, cursor !== undefined];
    }
  });
}
