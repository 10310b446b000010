import { refuse, takeNothing } from "../frame/arguments.ts";
import type { Command } from "../frame/command.ts";

export const coordinator: Command = {
  name: "coordinator",
  summary: "Hold sessions for a fleet of runners",
  usage: "coordinator [--host HOST] [--port PORT] [--storage URL] [--config FILE] [--insecure]",
  description:
    "Sessions are started, signalled and watched over its API (gRPC, Connect, REST and server-sent events on one port) and run by " +
    "`holdfast runner`. Every call needs a token: the first start makes an admin's, in a file that only this user reads, and says " +
    "where. It can be stopped or killed at any moment: what is claimed stays claimed, and runners go on when it is back. One on a " +
    "SQLite file, any number on one PostgreSQL. FILE is JSON: docs/coordinator.schema.json says what may stand in it. Exit codes: " +
    "3 the configuration or the address is wrong, 6 another process has the file, 10 storage, 130 stopped by Ctrl-C.",
  options: {
    host: { help: "address to listen on (default: 127.0.0.1, this machine alone)", value: "HOST" },
    port: { help: "port to listen on (default: 8765; 0 for any that is free)", value: "PORT" },
    storage: {
      help: "sqlite:PATH, postgres://USER@HOST/DATABASE or memory: (default: a SQLite file in your data folder)",
      value: "URL",
    },
    config: { help: "read settings from this file", value: "FILE" },
    insecure: { help: "listen on the network without TLS, because something in front has it" },
  },
  examples: [
    ["coordinator", "for this machine, on http://127.0.0.1:8765"],
    ["coordinator --storage sqlite:fleet.db --port 9000", "another file, another port"],
    ["coordinator --config coordinator.json", "with TLS and limits of your own"],
  ],

  async run(args, io) {
    takeNothing(args.positionals, coordinator.usage);
    if (args.has("db"))
      throw refuse("a coordinator has no option --db", coordinator.usage, {
        got: "--db",
        fix: "--storage sqlite:PATH",
      });
    return (await import("../run/coordinator-run.ts")).runCoordinator(args, io);
  },
};
