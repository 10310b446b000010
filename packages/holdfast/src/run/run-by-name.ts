// `holdfast run --agent NAME`: a session of an agent that a coordinator's runners have. It is started there, run by whichever of them fits,
// and followed from here; nothing of it happens in this process.

import { HoldfastError, mintId, UsageError } from "@holdfast/core";
import { checkBounds, type StartOptions } from "@holdfast/runtime";
import { createClient } from "../sdk/client.ts";
import type { Arguments, Io } from "../frame/command.ts";
import { URL_DEFAULT } from "../place/coordinator-access.ts";
import { drive } from "./drive/drive.ts";
import { readInput } from "../frame/input.ts";
import { readLabels } from "../frame/labels.ts";
import { noteStack } from "../place/find-session.ts";
import { findDatabase, findStrictBounds } from "../place/project.ts";
import { randomU32 } from "../frame/random.ts";
import { parksOf } from "./drive/parks.ts";

export interface ByName {
  /** The agent's. */
  readonly name: string;
  /** The id of the session, if the user chose one. */
  readonly wanted: string | undefined;
  /** The input, if it was read already. */
  readonly input?: unknown;
  readonly options: Pick<StartOptions, "budget" | "timeoutMs" | "traceparent"> & {
    readonly persistence?: "full" | "minimal";
  };
}

/** @returns the exit code. */
export async function runByName(
  { name, wanted, options, ...read }: ByName,
  args: Arguments,
  io: Io,
): Promise<number> {
  // Its form is known where it runs: a bound is asked of any agent.
  if (findStrictBounds(args, io).value) checkBounds({ name, turns: true, limitsTurns: false }, options, true);
  const found = findDatabase(args, io);
  const database = found.stack ?? found;
  const { coordinator } = database;
  if (found.stack !== undefined) noteStack(found.stack, io);
  if (coordinator === undefined)
    throw new UsageError("no coordinator is named for the agent's runners", {
      expected: "--url URL, or HOLDFAST_URL",
      fix: `name the coordinator (--url ${URL_DEFAULT} is the default of one on this machine), or start the local stack`,
    });
  const sessionId = wanted ?? mintId("ses", Date.now(), randomU32);
  const given = args.text("input");
  const input = "input" in read ? read.input : given === undefined ? undefined : await readInput(given, io);
  const demands = readLabels(args, "demand");
  const begin = async (): Promise<undefined> => {
    const { url, token } = coordinator;
    const client = createClient({ url, token });
    try {
      await client.sessions.start(name, input, { sessionId, demands, ...options });
    } catch (thrown) {
      if (!HoldfastError.is(thrown) || thrown.code !== "session_exists" || wanted === undefined) throw thrown;
      throw new HoldfastError(
        "session_exists",
        `session ${wanted} was started with another agent, input or options`,
        {
          fix: `choose another id; run ${io.call(`show ${wanted}`)} to see that session`,
          cause: thrown,
        },
      );
    } finally {
      client.close();
    }
  };
  return drive(
    {
      agent: undefined,
      sessionId,
      database,
      begin,
      tracer: undefined,
      parks: parksOf(args),
      readsStdin: given !== "-",
    },
    io,
  );
}
