import { refuseAction, takeNothing, takeOnly } from "../frame/arguments.ts";
import type { Command } from "../frame/command.ts";

export const runners: Command = {
  name: "runners",
  summary: "Show, drain and delete the runners of a coordinator",
  usage: "runners list | runners show RUNNER | runners drain RUNNER | runners delete RUNNER",
  description:
    "RUNNER is a runner's id, or its name where no other one has it: what `holdfast runner --name` said, or its host's. " +
    "`drain` gives a runner nothing new: what waits is handed back at once, what is at work may go on until it has ended or waits, " +
    "however long that takes, and then the runner ends. Who is in a hurry stops the runner's process: then its --grace counts. `delete` forgets it and revokes its " +
    "token: what it held goes on elsewhere when its lease has passed, and registering again takes another registration token. One that is " +
    "silent for ten minutes, or has ended, is forgotten by itself and may come back: deleted by its id it may not. Which coordinator: --url, HOLDFAST_URL, or " +
    "http://127.0.0.1:8765. Exit codes: 4 no such runner, 5 not an admin, 7 the coordinator cannot be reached.",
  options: {},
  examples: [
    ["runners list", "which there are, and how full each is"],
    ["runners show box-1", "its labels, agents and tasks"],
    ["runners drain box-1", "before its machine is taken away"],
    [
      "runners delete rnr_0199f3a2-6a51-7d3e-8e29-0a4d4e2f7b11",
      "its machine was stolen, or is not coming back",
    ],
  ],

  async run(args, io) {
    const [action, ...rest] = args.positionals;
    const id = () => takeOnly(rest, "the runner's name or id", runners.usage);
    switch (action) {
      case "list":
        takeNothing(rest, runners.usage);
        return (await import("../ask/runner-calls.ts")).listRunners(args, io);
      case "show":
        return (await import("../ask/runner-calls.ts")).showRunner(id(), args, io);
      case "drain":
        return (await import("../ask/runner-calls.ts")).drainRunner(id(), args, io);
      case "delete":
        return (await import("../ask/runner-calls.ts")).deleteRunner(id(), args, io);
      default:
        throw refuseAction("runners", action, ["list", "show", "drain", "delete"], runners.usage);
    }
  },
};
