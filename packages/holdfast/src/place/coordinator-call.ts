// One call of a coordinator by the command, with the token of the caller, and an error that helps when no
// coordinator answers. `allRunners` reads a list of several pages.

import type { Client } from "@connectrpc/connect";
import { defined, HoldfastError, UsageError } from "@holdfast/core";
import type { Runner, RunnerService } from "@holdfast/proto";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { asAsked, findCoordinator } from "./coordinator-access.ts";

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
