// `holdfast push` and `pull`: a session moves between the database here and a coordinator. `moveSession`
// defines a move.

import { toHoldfastError } from "@holdfast/core";
import { moveSession } from "@holdfast/runtime";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { findCoordinator } from "@holdfast/place/coordinator-access";
import { findSession, withRemoteStorage, withStorage } from "@holdfast/place/find-session";
import { plainLine, quoted } from "@holdfast/terminal/frame/plain-text";
import { findLocalDatabase } from "@holdfast/place/project";

/** How the database here is named to a command that would otherwise ask the coordinator. */
function hereFor(args: Arguments, io: Io): string {
  const { path, origin } = findLocalDatabase(args, io);
  const isNamed = origin === "flag" || (io.env["HOLDFAST_URL"] ?? "") !== "";
  return isNamed ? `--db ${quoted(path)}` : "";
}

/** @returns the exit code. */
export async function moveBetween(
  way: "push" | "pull",
  id: string,
  args: Arguments,
  io: Io,
): Promise<number> {
  const database = findLocalDatabase(args, io);
  const coordinator = findCoordinator(args, io);
  return withRemoteStorage(coordinator, (there) =>
    withStorage(database, async (here) => {
      const [from, to] = way === "push" ? [here.storage, there.storage] : [there.storage, here.storage];
      const [fromName, toName] =
        way === "push" ? [database.path, coordinator.url] : [coordinator.url, database.path];
      const { sessionId } = await findSession(from.reader, id);
      try {
        await moveSession({ sessionId, from, to, toName });
      } catch (thrown) {
        const error = toHoldfastError(thrown);
        if (error.code === "storage_unavailable") {
          // The state of the database here is known. A coordinator may still carry out the request.
          const isUntouched =
            way === "push" && (await here.storage.reader.session(sessionId))?.move === undefined;
          io.note(
            isUntouched
              ? `session ${sessionId} was not moved: it is here, as before`
              : `the move may be incomplete; repeat ${io.call(`${way} ${sessionId}`)} to finish it`,
          );
        }
        throw error;
      }
      io.result({ sessionId, from: fromName, to: toName }, toName);
      io.note(`session ${sessionId} is in ${plainLine(toName, 200)} now`);
      if (way === "pull") io.note(`continue with: ${io.call(`resume ${sessionId}`, hereFor(args, io))}`);
      return 0;
    }),
  );
}
