import type { Command } from "@holdfast/terminal/frame/command";
import { runUi } from "../run/ui-run.ts";

export const ui: Command = {
  name: "ui",
  description:
    "Serves a page on this machine over the database of the project, until Ctrl-C. The page shows what other processes do as it happens, " +
    "and their answers go through them. The printed address signs one browser in, once and within a minute. With --url, and while the local stack runs, it prints the " +
    "address of that coordinator's page, which asks for a token; --db shows a database all the same. Exit codes: 3 the address cannot be used, 130 stopped by Ctrl-C.",
  options: {
    port: { help: "port to listen on (default: any that is free)", value: "PORT" },
  },
  examples: [
    ["ui", "the sessions of this project, or the page of the local stack that runs"],
    ["ui --db other.db --port 8080", "another database, on a port of your choice"],
    ["ui --url https://fleet.example", "the page of a coordinator"],
  ],

  async run(args, io) {
    return runUi(args, io);
  },
};
