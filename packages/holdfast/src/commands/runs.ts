import { defined, HoldfastError } from "@holdfast/core";
import { RunService, type Run } from "@holdfast/proto";
import { limitOf, refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Command, Io } from "@holdfast/terminal/frame/command";
import { duration, plainLine, table } from "@holdfast/terminal/frame/plain-text";
import { runJson } from "@holdfast/terminal/view/run-json";
import { findCoordinator } from "@holdfast/place/coordinator-access";
import { askCoordinator } from "@holdfast/place/coordinator-call";
import { findSession, withRemoteStorage } from "@holdfast/place/find-session";

const PAGE = 500;
const CELL_CHARS = 100;
/** How long one request waits for the end of a run; the most that the contract allows. */
const WAIT_MS = 30_000;
const STATUSES = ["queued", "claimed", "ended"];

export const runs: Command = {
  name: "runs",
  takes: [{ name: "RUN", is: "the run", optional: true }],
  description:
    "A run is one piece of work that advances a session: queued until a runner claims it, and ended when the session has ended or the " +
    "runner has released it. Queued runs show why no runner has claimed them; claimed runs show the runner and when its lease expires. " +
    "A crashed runner keeps its claim until then. Ended runs are listed with --status ended: the newest 50 of each session, each with " +
    "the status its session had when the run ended. With the id of a RUN, the command shows that run and how it ended; --wait waits " +
    "for its end. Other runs of the session are never shown in its place. Which coordinator: --url, HOLDFAST_URL, or " +
    "http://127.0.0.1:8765; users see the runs of their own sessions. " +
    "Exit codes: 2 an option is wrong, 4 there is no such run, 5 the token is not valid, 7 the coordinator cannot be reached.",
  options: {
    status: { help: "only runs that are queued, claimed or ended", value: "queued|claimed|ended" },
    session: { help: "only runs of this session", value: "ID" },
    agent: { help: "only runs of this agent", value: "NAME" },
    runner: { help: "only runs that the runner of this name or id has claimed", value: "RUNNER" },
    owner: { help: "only runs of this user's sessions", value: "USER" },
    wait: { help: "wait until the run has ended" },
    limit: { help: "how many runs (default: 100)", value: "N" },
  },
  examples: [
    ["runs", "all queued and claimed runs"],
    ["runs --status queued", "runs that no runner has claimed, and why"],
    ["runs --runner box-1", "runs of this runner"],
    ["runs --status ended --session desk", "ended runs of a session, newest first"],
    ["runs run_desk.7 --wait", "how that run ends"],
    ["runs --json --limit 1000", "one JSON list, for programs"],
  ],

  async run(args, io) {
    const [runId] = args.positionals;
    if (runId !== undefined) return showMeantRun(runId, args, io);
    if (args.has("wait"))
      throw refuse("--wait waits for one run", args.usage, { expected: "the id of a run" });
    const status = args.text("status");
    if (status !== undefined && !STATUSES.includes(status))
      throw refuse(`"${status}" is no status of a run`, args.usage, { expected: STATUSES.join(", ") });
    return listRuns(limitOf(args, { what: "runs", usual: 100 }), args, io);
  },
};

/** @returns the exit code. */
async function listRuns(limit: number, args: Arguments, io: Io): Promise<number> {
  const session = args.text("session");
  let [shown, isMore] = await readRuns(limit, session, args, io);
  if (session !== undefined && shown.length === 0) {
    const whole = await wholeId(session, args, io);
    if (whole !== session) [shown, isMore] = await readRuns(limit, whole, args, io);
  }
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

/** Show the run of this id, or of the session that a person names by a short id. */
async function showMeantRun(runId: string, args: Arguments, io: Io): Promise<number> {
  try {
    return await showRun(runId, args, io);
  } catch (error) {
    const [, id, token] = /^(?:run_)?(.+)\.(next|\d+)$/s.exec(runId) ?? [];
    if (id === undefined || !HoldfastError.is(error) || error.code !== "not_found") throw error;
    const whole = `run_${await wholeId(id, args, io)}.${token}`;
    if (whole === runId) throw error;
    return showRun(whole, args, io);
  }
}

/** The whole id of the session that a person means; the same id when there is none. */
async function wholeId(id: string, args: Arguments, io: Io): Promise<string> {
  try {
    const found = withRemoteStorage(findCoordinator(args, io), ({ storage }) =>
      findSession(storage.reader, id),
    );
    return (await found).sessionId;
  } catch (error) {
    if (HoldfastError.is(error) && error.code === "session_not_found") return id;
    throw error;
  }
}

/** Show one run and its result. @returns the exit code. @throws HoldfastError `not_found` */
async function showRun(runId: string, args: Arguments, io: Io): Promise<number> {
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

async function readRuns(
  limit: number,
  sessionId: string | undefined,
  args: Arguments,
  io: Io,
): Promise<readonly [runs: readonly Run[], isMore: boolean]> {
  const [status, agent] = [args.text("status"), args.text("agent")];
  const [runnerId, owner] = [args.text("runner"), args.text("owner")];
  const filter = defined({ status, sessionId, agent, runnerId, owner });
  return askCoordinator(args, io, async (connection) => {
    const service = connection.client(RunService);
    const found: Run[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await service.list({
        ...filter,
        limit: Math.min(PAGE, limit - found.length),
        ...defined({ cursor }),
      });
      found.push(...page.runs);
      cursor = page.nextCursor;
      if (cursor === undefined || found.length >= limit) return [found, cursor !== undefined];
    }
  });
}
