import { catalogueAction, isCatalogueAction, takeUpTo } from "../../library/catalogue-actions.ts";
import {
  refuse,
  refuseAction,
  refuseForeignOptions,
  takeNothing,
  takeOnly,
} from "@holdfast/terminal/frame/arguments";
import type { Arguments, Command, Io } from "@holdfast/terminal/frame/command";
import { newScript, push, rollback, tagVersion } from "../../library/change-scripts.ts";
import { listScripts, showScript, showVersions } from "../../library/show-scripts.ts";
import { callScript } from "../../library/call-script.ts";

/** The options of each action. */
const OPTIONS_OF: Readonly<Record<string, readonly string[]>> = {
  new: ["user"],
  push: ["catalogue", "tag"],
  list: ["catalogue"],
  show: ["catalogue"],
  run: [],
  history: ["catalogue"],
  rollback: ["catalogue"],
  tag: ["catalogue"],
  activate: ["catalogue"],
  deactivate: ["catalogue"],
};
const COORDINATORS_OWN = ["activate", "deactivate"];

export const script: Command = {
  name: "script",
  usage:
    "script new NAME [--user] | script push [NAME...] | script list | script show NAME | script run NAME [ARGUMENTS] | script history NAME | script rollback NAME [VERSION|TAG] | " +
    "script tag NAME TAG [VERSION] | script push NAME... --catalogue [--tag TAG] | script list|show|history|rollback|tag … --catalogue | script activate NAME | script deactivate NAME",
  description:
    "A script is a folder with script.json and a file to run in .holdfast/scripts of the project or of your home folder (docs/scripts.md). An agent " +
    "file names it under `scripts`, and its model calls it with checked arguments. Agents use the version that you pushed last, whatever " +
    "happens to the folder. `agents trust` pushes all scripts of the project. --catalogue means the scripts of a coordinator, for the agent files that " +
    "are there (docs/scripts.md#at-a-coordinator). `run` ends with the exit code of the script. Other exit codes: " +
    "2 the arguments are wrong or there is no such script, 3 the script is refused or not pushed, 12 the project is not trusted.",
  options: {
    user: { help: "write the script into your home folder, for all projects" },
    catalogue: { help: "at the coordinator instead of on this machine; --url means it, too" },
    tag: { help: "the tag that the versions at the coordinator get", value: "TAG" },
  },
  examples: [
    ["script new word-count", "writes .holdfast/scripts/word-count/ to begin with"],
    ["script push word-count", "keep its present content as the version that agents use"],
    [`script run word-count '{"file": "notes.txt"}'`, "as an agent would call it here"],
    ["script history word-count", "its versions"],
    ["script rollback word-count", "use the version before the present one"],
    ["script tag word-count stable", "agent files name this version as word-count@stable"],
    ["script push word-count --catalogue", "its present content as a version at the coordinator"],
  ],

  async run(args, io) {
    const [action, ...rest] = args.positionals;
    refuseForeignOptions(script, OPTIONS_OF, args);
    if (args.has("catalogue") || args.has("url") || COORDINATORS_OWN.includes(action ?? ""))
      return atCoordinator(action, rest, args, io);
    if (args.has("tag"))
      throw refuse("--tag is for --catalogue", script.usage, {
        fix: "give the tag after the push: `holdfast script tag NAME TAG`",
      });
    switch (action) {
      case "new":
        return newScript(takeOnly(rest, "the name", script.usage), args.has("user"), io);
      case "push":
        return push(rest, io);
      case "list":
        takeNothing(rest, script.usage);
        return listScripts(io);
      case "show":
        return showScript(takeOnly(rest, "the name", script.usage), io);
      case "run": {
        const [name, given, extra] = rest;
        if (extra !== undefined) throw refuse(`"${extra}" is one argument too many`, script.usage);
        takeOnly(rest.slice(0, 1), "the name", script.usage);
        return callScript(name ?? "", given, io);
      }
      case "history":
        return showVersions(takeOnly(rest, "the name", script.usage), io);
      case "rollback": {
        const [name, version] = takeUpTo(rest, 1, 2, script.usage);
        return rollback(name, version, io);
      }
      case "tag": {
        const [name, tag = "", version] = takeUpTo(rest, 2, 3, script.usage);
        return tagVersion(name, tag, version, io);
      }
      default:
        throw refuseAction("script", action, Object.keys(OPTIONS_OF), script.usage);
    }
  },
};

async function atCoordinator(
  action: string | undefined,
  rest: readonly string[],
  args: Arguments,
  io: Io,
): Promise<number> {
  if (isCatalogueAction(action)) return catalogueAction(["script", script.usage], action, rest, args, io);
  const calls = await import("../../library/catalogue-calls.ts");
  switch (action) {
    case "push":
      return (await import("../../library/push-contents.ts")).pushScripts(rest, args, io);
    case "list":
      takeNothing(rest, script.usage);
      return calls.listPushed("script", args, io);
    case "show":
      return calls.showPushed("script", takeOnly(rest, "the name", script.usage), "script.json", args, io);
    default:
      throw refuse(`script ${action ?? ""} is for this machine, and not for a coordinator`, script.usage, {
        fix: "leave --url and --catalogue out",
      });
  }
}
