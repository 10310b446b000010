import { refuse, refuseAction, refuseForeignOptions, takeNothing, takeOnly } from "../../frame/arguments.ts";
import type { Command } from "../../frame/command.ts";

/** The options of each action. */
const OPTIONS_OF: Readonly<Record<string, readonly string[]>> = {
  new: ["user"],
  push: [],
  list: [],
  show: [],
  run: [],
  history: [],
  rollback: [],
};

export const script: Command = {
  name: "script",
  summary: "Write, push, run and roll back scripts for agents",
  usage:
    "script new NAME [--user] | script push [NAME...] | script list | script show NAME | script run NAME [ARGUMENTS] | script history NAME | script rollback NAME [VERSION]",
  description:
    "A script is a folder with script.json and a file to run in .holdfast/scripts of the project or of your home folder (docs/scripts.md). An agent " +
    "file names it under `scripts`, and its model calls it with checked arguments. Agents use the version that you pushed last, whatever " +
    "happens to the folder. `agents trust` pushes all scripts of the project. `run` ends with the exit code of the script. Other exit codes: " +
    "2 the arguments are wrong or there is no such script, 3 the script is refused or not pushed, 12 the project is not trusted.",
  options: { user: { help: "write the script into your home folder, for all projects" } },
  examples: [
    ["script new word-count", "writes .holdfast/scripts/word-count/ to begin with"],
    ["script push word-count", "keep its present content as the version that agents use"],
    [`script run word-count '{"file": "notes.txt"}'`, "as an agent would call it here"],
    ["script history word-count", "its versions"],
    ["script rollback word-count", "use the version before the present one"],
  ],

  async run(args, io) {
    const [action, ...rest] = args.positionals;
    refuseForeignOptions(script, OPTIONS_OF, args);
    switch (action) {
      case "new":
        return (await import("../../scripts/change-scripts.ts")).newScript(
          takeOnly(rest, "the name", script.usage),
          args.has("user"),
          io,
        );
      case "push":
        return (await import("../../scripts/change-scripts.ts")).push(rest, io);
      case "list":
        takeNothing(rest, script.usage);
        return (await import("../../scripts/show-scripts.ts")).listScripts(io);
      case "show":
        return (await import("../../scripts/show-scripts.ts")).showScript(
          takeOnly(rest, "the name", script.usage),
          io,
        );
      case "run": {
        const [name, given, extra] = rest;
        if (extra !== undefined) throw refuse(`"${extra}" is one argument too many`, script.usage);
        takeOnly(rest.slice(0, 1), "the name", script.usage);
        return (await import("../../scripts/call-script.ts")).callScript(name ?? "", given, io);
      }
      case "history":
        return (await import("../../scripts/show-scripts.ts")).showVersions(
          takeOnly(rest, "the name", script.usage),
          io,
        );
      case "rollback": {
        const [name, version, extra] = rest;
        if (extra !== undefined) throw refuse(`"${extra}" is one argument too many`, script.usage);
        takeOnly(rest.slice(0, 1), "the name", script.usage);
        return (await import("../../scripts/change-scripts.ts")).rollback(name ?? "", version, io);
      }
      default:
        throw refuseAction("script", action, Object.keys(OPTIONS_OF), script.usage);
    }
  },
};
