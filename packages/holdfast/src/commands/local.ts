import { refuse, refuseAction, takeNothing } from "@holdfast/terminal/frame/arguments";
import {
  EXECUTOR_OPTIONS,
  GRACE_OPTION,
  SECRET_STDIN_OPTION,
  type Arguments,
  type Command,
  type Io,
  type Options,
} from "@holdfast/terminal/frame/command";
import { checkModeVariables } from "../place/mode.ts";
import { startStack } from "../stack/start-stack.ts";
import { restartStack, showStack, showStackLogs, stopStack } from "../stack/control-stack.ts";

const START_OPTIONS: Options = {
  agents: {
    help: "start: run the agents of these files, in code or in Markdown",
    value: "FILE",
    repeats: true,
    takesMore: true,
  },
  tasks: {
    help: "start: do the tasks of these files",
    value: "FILE",
    repeats: true,
    takesMore: true,
  },
  ...EXECUTOR_OPTIONS,
  port: { help: "start: the coordinator's port (default: 8765; 0 for any that is free)", value: "PORT" },
  project: {
    help: "start: the folder that agents work in (default: the project's)",
    value: "DIR",
    short: "p",
  },
  grace: { ...GRACE_OPTION, help: `start: ${GRACE_OPTION.help}` },
  "secret-stdin": SECRET_STDIN_OPTION,
  foreground: { help: "start: stay, and stop the stack with Ctrl-C" },
};

const LOGS_OPTIONS: Options = {
  follow: { help: "logs: stay, and show new lines", short: "f" },
  lines: { help: "logs: how many lines (default: 100)", value: "N", short: "n" },
  component: { help: "logs: only those of coordinator, runner or supervisor", value: "NAME", short: "c" },
};

/** The actions, each with the options that it takes. */
const ACTIONS: Readonly<Record<string, Options>> = {
  start: START_OPTIONS,
  stop: {},
  status: {},
  restart: {},
  logs: LOGS_OPTIONS,
};

export const local: Command = {
  name: "local",
  usage:
    "local start --agents FILE... [-x NAME | -e PATH] [--policy FILE] [--port PORT] [--project DIR] [--grace TIME] [--foreground] | local stop | local status | local restart | " +
    "local logs [-f] [-n N] [-c NAME]",
  description:
    "A supervisor keeps a coordinator and a runner running over a database in your data folder, and starts each again that ends. " +
    "`start` returns when all is ready; `up` is another name for it, and `down` for `stop`. Changed files of agents are loaded by a " +
    "new runner at once; running sessions stay with the old one until they end. `restart` starts both processes again, and no " +
    "running session loses an attempt by it, and both keep the options of `start`. `stop` keeps all sessions, and the next start continues them. docs/local.md explains " +
    "more. Exit codes: 3 a file of agents is wrong, 4 the stack is not running (status, restart), 6 it is running already (start), " +
    "7 the port is taken, 10 storage.",
  options: { ...START_OPTIONS, ...LOGS_OPTIONS },
  examples: [
    ["local start --agents agents.ts", "start it; `holdfast run agents.ts` then runs there"],
    ["local start -x test-executor", "with an executor, as `holdfast runner -x NAME` has it"],
    ["local status", "what runs, since when, and how often it was restarted"],
    ["local logs -f -c runner", "follow what the runner writes"],
    ["local stop", "stop it; sessions stay"],
  ],

  async run(args, io) {
    const [action, ...rest] = args.positionals;
    const options = action === undefined || !Object.hasOwn(ACTIONS, action) ? undefined : ACTIONS[action];
    if (options === undefined) throw refuseAction("local", action, Object.keys(ACTIONS), local.usage);
    takeNothing(rest, local.usage);
    checkOptions(args, action!, options);
    return runAction(action!, args, io);
  },
};

export const up: Command = {
  name: "up",
  usage:
    "up --agents FILE... [-x NAME | -e PATH] [--policy FILE] [--port PORT] [--project DIR] [--grace TIME] [--foreground]",
  options: START_OPTIONS,
  examples: [["up --agents agents.ts", "as `holdfast local start --agents agents.ts`"]],
  async run(args, io) {
    takeNothing(args.positionals, up.usage);
    return runAction("start", args, io);
  },
};

export const down: Command = {
  name: "down",
  usage: "down",
  options: {},
  examples: [["down", "as `holdfast local stop`"]],
  async run(args, io) {
    takeNothing(args.positionals, down.usage);
    return runAction("stop", args, io);
  },
};

function checkOptions(args: Arguments, action: string, allowed: Options): void {
  for (const option of ["db", "url", ...Object.keys(local.options)]) {
    if (!args.has(option) || Object.hasOwn(allowed, option)) continue;
    throw refuse(`local ${action} has no option --${option}`, local.usage, {
      got: `--${option}`,
      fix: "leave it out",
    });
  }
}

async function runAction(action: string, args: Arguments, io: Io): Promise<number> {
  if (action === "start") return startStack(args, io);
  checkModeVariables(io);
  switch (action) {
    case "stop":
      return stopStack(io);
    case "status":
      return showStack(io);
    case "restart":
      return restartStack(io);
    default:
      return showStackLogs(args, io);
  }
}
