import type { Argument, Command } from "@holdfast/terminal/frame/command";
import { deleteRunner, drainRunner, listRunners, showRunner } from "@holdfast/place/calls/runner-calls";

const RUNNER: Argument = { name: "RUNNER", is: "the runner's name or id" };

export const runners: Command = {
  name: "runners",
  actions: {
    list: { does: "all runners, and how full each is" },
    show: { does: "its labels, agents and tasks", takes: [RUNNER] },
    drain: { does: "give it nothing new", takes: [RUNNER] },
    delete: { does: "forget it and revoke its token", takes: [RUNNER] },
  },
  description:
    "RUNNER is a runner's id, or its name if no other runner has the same name (`holdfast runner --name NAME`, or its host's name). " +
    "`drain` gives a runner nothing new. The runner releases waiting sessions at once, lets running sessions run until they end or " +
    "wait, however long that takes, and then ends. To stop sooner, stop the runner process itself; it then waits at most --grace. " +
    "`delete` forgets a runner and revokes its token. Other runners continue its sessions when their leases have expired, and the " +
    "runner needs another registration token to register again. The coordinator forgets a runner that has ended or is silent for ten " +
    "minutes; such a runner may come back, unless it is deleted by its id. Which coordinator: --url, HOLDFAST_URL, or " +
    "http://127.0.0.1:8765. Exit codes: 4 no such runner, 5 not an admin, 7 the coordinator cannot be reached.",
  options: {},
  examples: [
    ["runners list", "all runners, and how full each is"],
    ["runners show box-1", "its labels, agents and tasks"],
    ["runners drain box-1", "before its machine is taken away"],
    [
      "runners delete rnr_0199f3a2-6a51-7d3e-8e29-0a4d4e2f7b11",
      "its machine was stolen, or is not coming back",
    ],
  ],

  async run(args, io) {
    const { action, positionals: rest } = args;
    const [id = ""] = rest;
    switch (action) {
      case "list":
        return listRunners(args, io);
      case "show":
        return showRunner(id, args, io);
      case "drain":
        return drainRunner(id, args, io);
      default:
        return deleteRunner(id, args, io);
    }
  },
};
