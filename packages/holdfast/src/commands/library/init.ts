import type { Command } from "@holdfast/terminal/frame/command";
import { initProject, TEMPLATES } from "../../agents/added/init-project.ts";

export const init: Command = {
  name: "init",
  takes: [],
  description:
    "Writes agents to begin with into this folder. A file that is there is never changed: where one has the path of a new file, nothing is written. " +
    "A new folder also gets the files of a project. `npm create holdfast@latest NAME` makes such a folder and installs Holdfast in it. Templates: " +
    `${Object.entries(TEMPLATES)
      .map(([name, { about }]) => `${name} is ${about}`)
      .join("; ")}.`,
  options: {
    template: { help: "which agents (default: agent)", value: Object.keys(TEMPLATES).join("|") },
  },
  examples: [
    ["init", "an agent in TypeScript with its test"],
    ["init --template agent-file", "an agent file with a skill and a script"],
  ],

  async run(args, io) {
    return initProject(args.text("template") ?? "agent", io);
  },
};
