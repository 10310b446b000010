// `readCall`: the command line of `run`, checked before anything is loaded.

import { isSessionId, UsageError } from "@holdfast/core";
import type { StartOptions } from "@holdfast/runtime";
import { refuse, takeNothing } from "../../frame/arguments.ts";
import type { Arguments, Io } from "../../frame/command.ts";
import type { ByName } from "../run-by-name.ts";
import { refuseCombinations } from "./run-refusals.ts";

export interface RunCall {
  readonly args: Arguments;
  readonly usage: string;
  /** The agent of a coordinator's runners (`--agent`). */
  readonly name: string | undefined;
  /** The id of the session, if the user chose one. */
  readonly wanted: string | undefined;
  readonly options: ByName["options"];
}

/** @throws UsageError */
export async function readCall(args: Arguments, usage: string, io: Io): Promise<RunCall> {
  const name = args.text("agent");
  if (name !== undefined) takeNothing(args.positionals, usage);
  refuseCombinations({ args, usage });
  const wanted = args.text("session");
  if (wanted !== undefined && !isSessionId(wanted)) {
    throw new UsageError(`"${wanted}" cannot be the id of a session`, {
      at: "--session",
      expected: "1 to 100 letters, digits, dots, dashes and underscores, starting with a letter or a digit",
    });
  }
  const persistence = persistenceOf(args, usage);
  const options = { ...(await readLimits(args)), ...persistence, ...callersTrace(io) };
  return { args, usage, name, wanted, options };
}

function persistenceOf(args: Arguments, usage: string): { readonly persistence?: "full" | "minimal" } {
  const persistence = args.text("persistence");
  if (persistence === undefined) return {};
  if (persistence === "full" || persistence === "minimal") return { persistence };
  throw refuse("--persistence is neither full nor minimal", usage, {
    got: persistence,
    fix: "use --ephemeral for a session that need not survive its process",
  });
}

/** The limits of a session that is started. A session that is continued keeps its own. */
async function readLimits(args: Arguments): Promise<Pick<StartOptions, "budget" | "timeoutMs">> {
  if (!args.has("budget") && !args.has("ttl")) return {};
  return (await import("../../view/budget-text.ts")).readLimits(args);
}

/** The trace of the calling process, which passes it in the environment as it does to other commands. */
function callersTrace({ env }: Io): { readonly traceparent?: string } {
  const traceparent = env["TRACEPARENT"];
  return traceparent !== undefined && /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(traceparent)
    ? { traceparent }
    : {};
}
