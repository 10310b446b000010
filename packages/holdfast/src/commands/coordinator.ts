import { MODE_OPTION, SUPERVISED_OPTION, type Command } from "@holdfast/terminal/frame/command";
import { runCoordinator } from "../run/coordinator-run.ts";
import { LOG_TIMES_OPTION } from "../run/log-times.ts";

export const coordinator: Command = {
  name: "coordinator",
  lacks: { db: "give --storage sqlite:PATH" },
  description:
    "Clients start, signal and watch sessions over its API (gRPC, Connect, REST and server-sent events on one port); `holdfast runner` " +
    "runs them. Every call needs a token: the first start writes an admin's token to a file that only this user may read, and names " +
    "the file. The coordinator can be stopped or killed at any moment: claimed sessions stay claimed, and runners continue when it is " +
    "back. One coordinator runs on a SQLite file, any number on one PostgreSQL. FILE is JSON; docs/coordinator.schema.json defines " +
    "its content. Exit codes: 3 the configuration or the address is wrong, 5 a key of environments is missing, 6 another process has the file, 10 storage, 130 stopped " +
    "by Ctrl-C.",
  options: {
    host: { help: "address to listen on (default: 127.0.0.1, this machine alone)", value: "HOST" },
    port: { help: "port to listen on (default: 8765; 0 for any that is free)", value: "PORT" },
    storage: {
      help: "sqlite:PATH, postgres://USER@HOST/DATABASE or memory: (default: a SQLite file in your data folder)",
      value: "URL",
    },
    config: { help: "read settings from this file", value: "FILE" },
    "environment-key": {
      help: "a file with a key that encrypts environments (`env set --url`). Of several, the first encrypts and all decrypt",
      value: "FILE",
      repeats: true,
    },
    insecure: { help: "listen on the network without TLS, because a proxy in front provides it" },
    "log-times": LOG_TIMES_OPTION,
    mode: MODE_OPTION,
    supervised: SUPERVISED_OPTION,
  },
  examples: [
    ["coordinator", "for this machine, on http://127.0.0.1:8765"],
    ["coordinator --storage sqlite:fleet.db --port 9000", "another file, another port"],
    ["coordinator --config coordinator.json", "with TLS and limits of your own"],
  ],

  async run(args, io) {
    return runCoordinator(args, io);
  },
};
