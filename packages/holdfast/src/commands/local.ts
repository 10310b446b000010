import {
  EXECUTOR_OPTIONS,
  GRACE_OPTION,
  SECRET_STDIN_OPTION,
  type Arguments,
  type Command,
  type Io,
  type Options,
} from "@holdfast/terminal/frame/command";
import { checkModeVariables } from "@holdfast/place/mode";
import { startStack } from "../stack/start-stack.ts";
import { disableStack, enableStack } from "../stack/service/stack-service.ts";
import { restartStack, showStack, showStackLogs, stopStack } from "../stack/control-stack.ts";

const START_OPTIONS: Options = {
  agents: {
    help: "run these agents, named as `holdfast run` names them: files, agent files by their names, coding agents such as claude-code",
    value: "FILE|AGENT",
    repeats: true,
    takesMore: true,
  },
  tasks: {
    help: "do the tasks of these files",
    value: "FILE",
    repeats: true,
    takesMore: true,
  },
  ...EXECUTOR_OPTIONS,
  port: { help: "the coordinator's port (default: 8765; 0 for any that is free)", value: "PORT" },
  project: {
    help: "the folder that agents work in (default: the project's)",
    value: "DIR",
    short: "p",
  },
  grace: GRACE_OPTION,
  "secret-stdin": SECRET_STDIN_OPTION,
  foreground: { help: "stay, and stop the stack with Ctrl-C" },
};

const LOGS_OPTIONS: Options = {
  follow: { help: "stay, and show new lines", short: "f" },
  lines: { help: "how many lines (default: 100)", value: "N", short: "n" },
  component: {
    help: "only those of coordinator, runner or supervisor",
    value: "NAME",
    short: "c",
  },
};

const STACK_ONLY = { db: "leave it out", url: "leave it out" };

export const local: Command = {
  name: "local",
  actions: {
    start: { does: "start the stack, and return when it is ready", options: Object.keys(START_OPTIONS) },
    stop: { does: "stop it; sessions stay" },
    status: { does: "what runs, since when, and how often it was restarted" },
    restart: { does: "start its processes again, with their options" },
    enable: {
      does: "run it as a service of this user, from each login on",
      options: Object.keys(START_OPTIONS).filter((name) => !["foreground", "secret-stdin"].includes(name)),
    },
    disable: { does: "stop the service, and remove it; sessions stay" },
    logs: { does: "what its processes write", options: Object.keys(LOGS_OPTIONS) },
  },
  lacks: STACK_ONLY,
  description:
    "A supervisor keeps a coordinator and a runner running over a database in your data folder, and starts each again that ends. " +
    "`start` and `enable` return when all is ready; `up` is another name for it, and `down` for `stop`. Changed files of agents are loaded by a " +
    "new runner at once; a running session stays in the old one until its next checkpoint or wait. `restart` starts both processes again, and no " +
    "running session loses an attempt by it, and both keep the options of `start`. `stop` keeps all sessions, and the next start continues them. `enable` makes a service of it, and says before which keys of this terminal the service will not have. docs/local.md explains " +
    "more. Exit codes: 3 a file of agents is wrong, 4 the stack is not running (status, restart), 6 it is running already (start), " +
    "7 the port is taken, 10 storage.",
  options: { ...START_OPTIONS, ...LOGS_OPTIONS },
  examples: [
    ["local start --agents agents.ts", "start it; `holdfast run agents.ts` then runs there"],
    [
      "local start --agents claude-code",
      "`holdfast run claude-code` in this folder then works in the background",
    ],
    ["local start -x test-executor", "with an executor, as `holdfast runner -x NAME` has it"],
    ["local status", "what runs, since when, and how often it was restarted"],
    ["local logs -f -c runner", "follow what the runner writes"],
    ["local stop", "stop it; sessions stay"],
    ["local enable --agents agents.ts", "as a service, which systemd or launchd starts again"],
  ],

  async run(args, io) {
    return runAction(args.action, args, io);
  },
};

export const up: Command = {
  name: "up",
  lacks: STACK_ONLY,
  options: START_OPTIONS,
  examples: [["up --agents agents.ts", "as `holdfast local start --agents agents.ts`"]],
  async run(args, io) {
    return runAction("start", args, io);
  },
};

export const down: Command = {
  name: "down",
  lacks: STACK_ONLY,
  options: {},
  examples: [["down", "as `holdfast local stop`"]],
  async run(args, io) {
    return runAction("stop", args, io);
  },
};

async function runAction(action: string | undefined, args: Arguments, io: Io): Promise<number> {
  if (action === "start") return startStack(args, io);
  checkModeVariables(io);
  switch (action) {
    case "stop":
      return stopStack(io);
    case "status":
      return showStack(io);
    case "restart":
      return restartStack(io);
    case "enable":
      return enableStack(args, io);
    case "disable":
      return disableStack(io);
    default:
      return showStackLogs(args, io);
  }
}
