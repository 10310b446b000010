import { refuse, takeNothing } from "../frame/arguments.ts";
import { TRACE_OPTION, type Command } from "../frame/command.ts";

export const runner: Command = {
  name: "runner",
  summary: "Run sessions of this machine for a coordinator",
  usage:
    "runner [-c URL] [-p DIR] [--name NAME] --agents FILE... [--tasks FILE...] [--label NAME=VALUE...] [--max-runs N] [-v]",
  description:
    "Registers at the coordinator, then waits for sessions of the agents that FILE exports and runs them, for ever: while the " +
    "coordinator is away it tries again. The first time it needs a registration token (`holdfast token create NAME --kind registration`): " +
    "in HOLDFAST_TOKEN, with --token-file FILE, or - for standard input; never as an argument, which others can see. What it gets for it " +
    "is its own token, kept in your data folder, for this coordinator and project. Ctrl-C takes no more, finishes what ends within the " +
    "grace and hands back the rest, which goes on elsewhere or when this runs again; so it is, too, when `holdfast runners drain` has told " +
    "it to finish first. Environment: HOLDFAST_URL or " +
    "AGENT_ORCHESTRATOR_API_URL, HOLDFAST_TOKEN, PROJECT_DIR, and in seconds POLL_TIMEOUT (at most 30) and HEARTBEAT_INTERVAL, how often " +
    "claims are renewed (at most a third of the coordinator's lease). Exit codes: 0 told to drain, 2 an option is wrong, 3 " +
    "a file is wrong, 5 the token is not good, 6 this runner is running already, 11 another protocol, 130 stopped by Ctrl-C.",
  options: {
    coordinator: {
      help: "the coordinator (default: HOLDFAST_URL, or http://127.0.0.1:8765)",
      value: "URL",
      short: "c",
    },
    project: {
      help: "the project's folder, which agents work in (default: this one)",
      value: "DIR",
      short: "p",
    },
    agents: {
      help: "run the agents that this file exports; may be given more than once",
      value: "FILE",
      repeats: true,
    },
    tasks: {
      help: "do the tasks that this file exports, for sessions of other runners, too; may be given more than once",
      value: "FILE",
      repeats: true,
    },
    label: {
      help: "what sessions may demand; may be given more than once. machine, hostname and runner it has anyway",
      value: "NAME=VALUE",
      repeats: true,
    },
    "max-runs": { help: "sessions held at once (default: 32)", value: "N" },
    name: {
      help: "what people call it (default: the host's name); tells runners of one project on one machine apart",
      value: "NAME",
    },
    grace: {
      help: "what is at work may take so long to finish at the end, and to end when it is aborted, such as 30s (default: 1s and 10s)",
      value: "DURATION",
    },
    "token-file": { help: "a file with a registration token, or - for standard input", value: "FILE|-" },
    "health-port": {
      help: "serve /healthz on this port of this machine (0 for any that is free)",
      value: "PORT",
    },
    insecure: { help: "send the token over plain HTTP to another machine, where the network is your own" },
    verbose: { help: "tell what becomes of each session", short: "v" },
    trace: TRACE_OPTION,
  },
  examples: [
    ["runner --agents agents.ts", "for the coordinator of this machine"],
    [
      "runner -c https://hf.example.org -p ~/shop --agents agents.ts --label gpu=yes",
      "for sessions that demand a GPU, too",
    ],
    ["runner --tasks tasks.ts --max-runs 4", "do tasks of others, four at once"],
  ],

  async run(args, io) {
    takeNothing(args.positionals, runner.usage);
    if (args.has("db"))
      throw refuse("a runner has no option --db", runner.usage, { got: "--db", fix: "leave it out" });
    return (await import("../run/runner-run.ts")).runRunner(args, io);
  },
};
