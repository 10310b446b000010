// One call of a coordinator by the command, with the token of the caller, and an error that helps when no
// coordinator answers. `allRunners` reads a list of several pages, `readRunOf` the run that a session has.

import type { Client } from "@connectrpc/connect";
import { defined, HoldfastError, toHoldfastError, UsageError } from "@holdfast/core";
import { RunService, type Runner, type RunnerService } from "@holdfast/proto";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { runJson, type RunJson } from "@holdfast/terminal/view/run-json";
import { asAsked, findCoordinator, type CoordinatorAccess } from "../coordinator-access.ts";

const PAGE = 500;

/** @throws HoldfastError `unavailable` when it does not answer, and what it refuses with. */
export async function askCoordinator<T>(
  args: Arguments,
  io: Io,
  ask: (connection: CoordinatorConnection) => Promise<T>,
): Promise<T> {
  if (args.has("db"))
    throw new UsageError("the command calls a coordinator, which has no --db", {
      got: "--db",
      fix: "leave --db out; name the coordinator with --url",
    });
  const access = findCoordinator(args, io);
  const { url, token } = access;
  let connection: CoordinatorConnection | undefined;
  try {
    const opened = (connection = new CoordinatorConnection({ url, token }));
    return await opened.ask(() => ask(opened));
  } catch (thrown) {
    const error = asAsked(thrown, access);
    if (error.code !== "unavailable" && error.code !== "storage_unavailable") throw error;
    throw new HoldfastError("unavailable", error.message, {
      at: url,
      ...defined({ got: error.got }),
      // For a coordinator that runs but is not trusted, the connection's own error says more.
      fix:
        error.fix?.includes("NODE_EXTRA_CA_CERTS") === true
          ? error.fix
          : "start it with `holdfast coordinator`, or say where it is with --url",
      cause: error,
    });
  } finally {
    connection?.close();
  }
}

/** All registered runners, for an admin. */
export async function allRunners(service: Client<typeof RunnerService>): Promise<readonly Runner[]> {
  const all: Runner[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await service.list({ limit: PAGE, ...defined({ cursor }) });
    all.push(...page.runners);
    cursor = page.nextCursor;
    if (cursor === undefined) return all;
  }
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
