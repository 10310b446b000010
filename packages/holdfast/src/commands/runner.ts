import { refuse } from "@holdfast/terminal/frame/arguments";
import {
  EXECUTOR_OPTIONS,
  FOR_TRIALS_OPTION,
  GRACE_OPTION,
  MODE_OPTION,
  SECRET_STDIN_OPTION,
  SUPERVISED_OPTION,
  TRACE_OPTION,
  type Command,
  type Options,
} from "@holdfast/terminal/frame/command";
import { LOG_TIMES_OPTION } from "../run/log-times.ts";
import { runRunner } from "../run/runner-run.ts";
import { disableRunner, enableRunner, serviceOptions } from "../run/runner/runner-service.ts";

const OPTIONS: Options = {
  coordinator: {
    help: "the coordinator (default: HOLDFAST_URL, or http://127.0.0.1:8765); given more than once, coordinators of one PostgreSQL, of which the next is asked while one is away",
    value: "URL",
    short: "c",
    repeats: true,
  },
  project: {
    help: "the project's folder, which agents work in (default: this one)",
    value: "DIR",
    short: "p",
  },
  agents: {
    help: "run these agents, named as `holdfast run` names them: files, agent files by their names, coding agents such as claude-code",
    value: "FILE|AGENT",
    repeats: true,
    takesMore: true,
  },
  tasks: {
    help: "do the tasks of these files, also for sessions of other runners",
    value: "FILE",
    repeats: true,
    takesMore: true,
  },
  ...EXECUTOR_OPTIONS,
  "executor-list": { help: "list the executors of the project, and end", short: "l" },
  "check-executor": {
    help: "check an executor by its name or path against the protocol, with real turns, and end (exit code 1 when it fails)",
    value: "NAME|PATH",
  },
  label: {
    help: "a label that sessions may demand; may be given more than once. machine, hostname and runner are always set",
    value: "NAME=VALUE",
    repeats: true,
  },
  ipc: {
    help: "be held by the program that started it: requests on standard input, messages on standard output, the log on standard error",
    excludes: ["json", "supervised", "executor-list", "check-executor", "secret-stdin"],
  },
  "max-runs": { help: "sessions held at once (default: 32)", value: "N" },
  name: {
    help: "a name for people (default: the host's name); distinguishes runners of one project on one machine",
    value: "NAME",
  },
  grace: GRACE_OPTION,
  "token-file": { help: "a file with a registration token, or - for standard input", value: "FILE|-" },
  "health-port": {
    help: "serve /healthz on this port of this machine (0 for any that is free)",
    value: "PORT",
  },
  insecure: { help: "send the token over plain HTTP to another machine, on a network that you trust" },
  "log-times": { ...LOG_TIMES_OPTION, excludes: ["ipc"] },
  verbose: { help: "report what happens to each session", short: "v" },
  trace: TRACE_OPTION,
  "secret-stdin": SECRET_STDIN_OPTION,
  mode: MODE_OPTION,
  supervised: SUPERVISED_OPTION,
  "for-trials": FOR_TRIALS_OPTION,
};

export const runner: Command = {
  name: "runner",
  actions: {
    start: { does: "register, and run sessions until it is stopped", options: Object.keys(OPTIONS) },
    enable: {
      does: "run it as a service of this user, from each login on",
      options: serviceOptions(OPTIONS),
    },
    disable: { does: "stop the service, and remove it; sessions stay", options: ["name"] },
  },
  defaultAction: "start",
  description:
    "Registers at the coordinator, then waits for sessions of the agents that FILE exports and runs them until it is stopped. An " +
    "executor is a program that carries out sessions: -x names one of `executors/` or `profiles/` in the project, or an included program such as claude-code, and its agent has " +
    "the same name. Without agents, tasks and executor the runner offers the deterministic test-executor. While " +
    "the coordinator is away, the runner tries again. The first registration needs a registration token (`holdfast token create NAME " +
    "--kind registration`): in HOLDFAST_TOKEN, with --token-file FILE, or - for standard input; never as an argument, which others " +
    "can see. In exchange the runner receives its own token and keeps it in your data folder, for this coordinator and project. " +
    "After Ctrl-C the runner takes no more sessions, finishes what ends within the grace, and releases the rest. Other runners " +
    "continue the rest, or this runner when it is started again. Ctrl-C does the same after `holdfast runners drain`. With --ipc a program " +
    "holds the runner by its standard input and output, one JSON message a line (docs/ipc.md). Without -c and HOLDFAST_URL it then needs no " +
    "coordinator: sessions are in the project's database. `enable` makes a service of it, with the token in a file that only you may read; " +
    "runners with a --name are services of their own. Environment: " +
    "HOLDFAST_URL or AGENT_ORCHESTRATOR_API_URL, HOLDFAST_TOKEN, PROJECT_DIR, AGENT_EXECUTOR_PATH (in the project), and in seconds " +
    "POLL_TIMEOUT (at most 30) and HEARTBEAT_INTERVAL, how often claims are renewed (lowered to a third of the coordinator's lease). Exit codes: 0 drained, 2 an " +
    "option is wrong, 3 a file is wrong, 5 the token is not valid, 6 this runner is already running, 11 the coordinator has " +
    "an earlier version or another protocol, 130 stopped by Ctrl-C.",
  options: OPTIONS,
  examples: [
    ["runner --agents agents.ts", "for the coordinator of this machine"],
    [
      "runner -c https://hf.example.org -p ~/shop --agents agents.ts --label gpu=yes",
      "also for sessions that demand a GPU",
    ],
    [
      "runner -c https://c1.example.org -c https://c2.example.org --agents agents.ts",
      "for coordinators that share a PostgreSQL: the next is asked while one is away",
    ],
    ["runner -x test-executor", "sessions of an executor, here the deterministic one"],
    ["runner --ipc --agents agents.ts", "for an editor that starts it, over the database of the project"],
    [
      "runner enable -c https://hf.example.org --agents agents.ts --token-file box-1.token",
      "as a service, which systemd or launchd starts again",
    ],
    ["runner --tasks tasks.ts --max-runs 4", "do tasks of other runners' sessions, four at once"],
  ],

  async run(args, io) {
    if (args.action === "enable") return enableRunner(args, OPTIONS, io);
    if (args.action === "disable") return disableRunner(args, io);
    if (args.has("ipc")) return (await import("../ipc/ipc-run.ts")).runIpc(args, io);
    if (args.has("db"))
      throw refuse("a runner has no option --db", args.usage, {
        got: "--db",
        fix: "leave it out; with --ipc a runner needs no coordinator",
      });
    return runRunner(args, io);
  },
};
