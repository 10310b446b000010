import { refuse, refuseAction, takeNothing, takeOnly } from "@holdfast/terminal/frame/arguments";
import type { Command } from "@holdfast/terminal/frame/command";
import {
  deleteKeys,
  listAll,
  refuseSetOptions,
  setKeys,
  showOne,
} from "../../library/change-environments.ts";

export const env: Command = {
  name: "env",
  usage:
    "env set NAME KEY=VALUE... | env set NAME KEY... --secret|--required | env list | env show NAME | env delete NAME [KEY...]",
  description:
    "An environment is a set of variables for the commands of agents (docs/environments.md). An agent file names environments and the variables " +
    "that it needs. The environment `base` goes before them, and `run --env-ref` and `run --env` after them. A key of --secret has no " +
    "value here: its value is the secret of the same name (`secret set`). A key of --required refuses a session without a value for it. " +
    "Exit codes: 2 a name or value is wrong, or is not there, 3 the file of environments cannot be used.",
  options: {
    secret: { help: "the keys are secrets; `secret set KEY` gives the value", excludes: ["required"] },
    required: { help: "the keys need a value, which `run --env` or another environment gives" },
  },
  examples: [
    ["env set staging API_URL=https://staging.example", "for agents that name staging"],
    ["env set staging DEPLOY_TOKEN --secret", "its value: holdfast secret set DEPLOY_TOKEN"],
    ["env set staging RELEASE --required", "each run must say it: --env RELEASE=1.2.0"],
    ["env show staging", "its keys and values, and no value of a secret"],
  ],

  async run(args, io) {
    const [action, ...rest] = args.positionals;
    if (args.has("url"))
      throw refuse(
        "a coordinator has no environments: they lie on the machine whose sessions use them",
        env.usage,
        {
          got: "--url",
          fix: "run the command on that machine, without --url",
        },
      );
    if (action !== "set") refuseSetOptions(args, action, env.usage);
    switch (action) {
      case "set":
        return setKeys(rest, args, io, env.usage);
      case "list":
        takeNothing(rest, env.usage);
        return listAll(io);
      case "show":
        return showOne(takeOnly(rest, "the name", env.usage), io);
      case "delete":
        return deleteKeys(rest, io, env.usage);
      default:
        throw refuseAction("env", action, ["set", "list", "show", "delete"], env.usage);
    }
  },
};
