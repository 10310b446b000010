import { refuse } from "@holdfast/terminal/frame/arguments";
import { NAME_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { deleteKeys, listAll, setKeys, showOne } from "../../library/change-environments.ts";

export const env: Command = {
  name: "env",
  actions: {
    set: {
      does: "set keys of an environment",
      takes: [
        NAME_ARGUMENT,
        {
          name: "KEY[=VALUE]",
          is: "a key",
          repeats: true,
          ifMissing: "give them: env set staging API_URL=https://staging.example",
        },
      ],
      options: ["secret", "required"],
    },
    list: { does: "all environments" },
    show: {
      does: "its keys and values, and no value of a secret",
      takes: [NAME_ARGUMENT],
    },
    delete: {
      does: "delete an environment, or keys of it",
      takes: [
        { name: "NAME", is: "the name of the environment" },
        { name: "KEY", is: "a key", optional: true, repeats: true },
      ],
    },
  },
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
    const { action, positionals: rest } = args;
    if (args.has("url"))
      throw refuse(
        "a coordinator has no environments: they lie on the machine whose sessions use them",
        args.usage,
        {
          got: "--url",
          fix: "run the command on that machine, without --url",
        },
      );
    switch (action) {
      case "set":
        return setKeys(args, io);
      case "list":
        return listAll(io);
      case "show":
        return showOne(rest[0]!, io);
      default:
        return deleteKeys(rest, io);
    }
  },
};
