import { NAME_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { coordinatorEnvironments, isForCoordinator } from "../../library/coordinator-environments.ts";
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
      options: ["secret", "required", "project"],
    },
    list: { does: "all environments", options: ["project"] },
    show: {
      does: "its keys and values, and no value of a secret",
      takes: [NAME_ARGUMENT],
      options: ["project"],
    },
    delete: {
      does: "delete an environment, or keys of it",
      takes: [
        { name: "NAME", is: "the name of the environment" },
        { name: "KEY", is: "a key", optional: true, repeats: true },
      ],
      options: ["project"],
    },
    rotate: { does: "encrypt the environments of a coordinator with its first key" },
  },
  description:
    "An environment is a set of variables for the commands of agents (docs/environments.md). An agent file names environments and the variables " +
    "that it needs. The environment `base` goes before them, and `run --env-ref` and `run --env` after them. A key of --secret has no " +
    "value here: its value is the secret of the same name (`secret set`). A key of --required refuses a session without a value for it. " +
    "With --url the environments are those of your user at a coordinator, and with --project those of a project there. They are for agent files of the coordinator. The value " +
    "of a --secret is then asked for, or read from standard input. " +
    "Exit codes: 2 a name or value is wrong, or is not there, 3 the file of environments cannot be used, 5 the token or the key of the coordinator.",
  options: {
    secret: { help: "the keys are secrets; `secret set KEY` gives the value", excludes: ["required"] },
    project: {
      help: "the environments of this project at a coordinator, for sessions that demand project=NAME; only for admins",
      value: "NAME",
    },
    required: { help: "the keys need a value, which `run --env` or another environment gives" },
  },
  examples: [
    ["env set staging API_URL=https://staging.example", "for agents that name staging"],
    ["env set staging DEPLOY_TOKEN --secret", "its value: holdfast secret set DEPLOY_TOKEN"],
    ["env set staging RELEASE --required", "each run must say it: --env RELEASE=1.2.0"],
    [
      "env set staging DEPLOY_TOKEN --secret --url https://fleet.example",
      "at a coordinator; the value is asked for",
    ],
    [
      "env set staging API_URL=https://staging.example --project shop --url https://fleet.example",
      "for all sessions of a project",
    ],
    ["env show staging", "its keys and values, and no value of a secret"],
  ],

  async run(args, io) {
    if (isForCoordinator(args)) return coordinatorEnvironments(args, io);
    const { action, positionals: rest } = args;
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
