import { catalogueAction, catalogueActions, isCatalogueAction } from "../../library/catalogue-actions.ts";
import { refuse } from "@holdfast/terminal/frame/arguments";
import { NAME_ARGUMENT, type Arguments, type Command, type Io } from "@holdfast/terminal/frame/command";
import { newScript, push, rollback, tagVersion } from "../../library/change-scripts.ts";
import { listScripts, showScript, showVersions } from "../../library/show-scripts.ts";
import { callScript } from "../../library/call-script.ts";

const COORDINATORS_OWN = ["activate", "deactivate"];

export const script: Command = {
  name: "script",
  actions: {
    new: {
      does: "write a script to begin with",
      takes: [NAME_ARGUMENT],
      options: ["user"],
    },
    push: {
      does: "keep the present content as the version that agents use",
      takes: [{ ...NAME_ARGUMENT, optional: true, repeats: true }],
      options: ["catalogue", "tag"],
    },
    list: { does: "all scripts", options: ["catalogue"] },
    show: {
      does: "one script: its arguments and files",
      takes: [NAME_ARGUMENT],
      options: ["catalogue"],
    },
    run: {
      does: "call it as an agent would",
      takes: [
        NAME_ARGUMENT,
        {
          name: "ARGUMENTS",
          is: "its arguments as JSON",
          optional: true,
          ifMore: "put the JSON in single quotes",
        },
      ],
    },
    ...catalogueActions(["history", "rollback", "tag"]),
  },
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
    const { action, positionals: rest } = args;
    if (args.has("catalogue") || args.has("url") || COORDINATORS_OWN.includes(action ?? ""))
      return atCoordinator(args, io);
    if (args.has("tag"))
      throw refuse("--tag is for --catalogue", args.usage, {
        fix: "give the tag after the push: `holdfast script tag NAME TAG`",
      });
    switch (action) {
      case "new":
        return newScript(rest[0]!, args.has("user"), io);
      case "push":
        return push(rest, io);
      case "list":
        return listScripts(io);
      case "show":
        return showScript(rest[0]!, io);
      case "run": {
        const [name = "", given] = rest;
        return callScript(name, given, io);
      }
      case "history":
        return showVersions(rest[0]!, io);
      case "rollback": {
        const [name = "", version] = rest;
        return rollback(name, version, io);
      }
      default: {
        const [name = "", tag = "", version] = rest;
        return tagVersion(name, tag, version, io);
      }
    }
  },
};

async function atCoordinator(args: Arguments, io: Io): Promise<number> {
  const { action, positionals: rest } = args;
  if (isCatalogueAction(action)) return catalogueAction("script", action, args, io);
  const calls = await import("@holdfast/place/calls/catalogue-calls");
  switch (action) {
    case "push":
      return (await import("../../library/push-contents.ts")).pushScripts(rest, args, io);
    case "list":
      return calls.listPushed("script", args, io);
    case "show":
      return calls.showPushed("script", rest[0]!, "script.json", args, io);
    default:
      throw refuse(`script ${action ?? ""} is for this machine, and not for a coordinator`, args.usage, {
        fix: "leave --url and --catalogue out",
      });
  }
}
