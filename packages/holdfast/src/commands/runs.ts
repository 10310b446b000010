import { refuse, takeNothing } from "../arguments.ts";
import type { Arguments, Command } from "../command.ts";

const STATUSES = ["queued", "claimed"];

export const runs: Command = {
  name: "runs",
  summary: "Show what is to be done at a coordinator, and who does it",
  usage:
    "runs [--status queued|claimed] [--session ID] [--agent NAME] [--runner RUNNER] [--owner USER] [--limit N]",
  description:
    "A run is one piece of work that advances a session: queued until a runner claims it, and over when that one has released it. A session " +
    "that is paused or has ended has none, and one that waits only for the short while its runner keeps it at hand. Of a queued one it is " +
    "told why nobody has taken it, of a claimed one who has it and until when, unless that is renewed: who is gone has it for as long. Which coordinator: --url, HOLDFAST_URL, or http://127.0.0.1:8765; a user sees those of own " +
    "sessions. Exit codes: 2 an option is wrong, 5 the token is not good, 7 the coordinator cannot be reached.",
  options: {
    status: { help: "only runs that are queued or claimed", value: "STATUS" },
    session: { help: "only that of this session", value: "ID" },
    agent: { help: "only of this agent", value: "NAME" },
    runner: { help: "only what the runner of this name or id has claimed", value: "RUNNER" },
    owner: { help: "only of this user's sessions", value: "USER" },
    limit: { help: "how many (default: 100)", value: "N" },
  },
  examples: [
    ["runs", "what there is to do"],
    ["runs --status queued", "what nobody has taken, and why"],
    ["runs --runner box-1", "what this runner does"],
    ["runs --json --limit 1000", "one JSON list, for programs"],
  ],

  async run(args, io) {
    takeNothing(args.positionals, runs.usage);
    const status = args.text("status");
    if (status !== undefined && !STATUSES.includes(status))
      throw refuse(`"${status}" is no status of a run`, runs.usage, { expected: STATUSES.join(", ") });
    return (await import("../run-list.ts")).listRuns(readLimit(args), args, io);
  },
};

function readLimit(args: Arguments): number {
  const text = args.text("limit") ?? "100";
  const limit = Number(text);
  if (/^\d+$/.test(text) && limit > 0 && limit <= 1_000_000) return limit;
  throw refuse("--limit is not a number of runs", runs.usage, {
    got: text,
    expected: "a whole number from 1 to 1000000",
  });
}
