import { catalogueAction, isCatalogueAction, takeUpTo } from "../../library/catalogue-actions.ts";
import {
  refuseAction,
  refuseForeignOptions,
  takeNothing,
  takeOnly,
} from "@holdfast/terminal/frame/arguments";
import type { Command } from "@holdfast/terminal/frame/command";
import { approve, listSkills, showSkill, showSkillVersions, tagVersion } from "../../library/show-skills.ts";

/** The options of each action. */
const OPTIONS_OF: Readonly<Record<string, readonly string[]>> = {
  list: ["pushed"],
  show: ["pushed"],
  approve: [],
  push: ["tag"],
  history: ["pushed"],
  rollback: [],
  tag: ["pushed"],
  activate: [],
  deactivate: [],
};

export const skill: Command = {
  name: "skill",
  usage:
    "skill list [--pushed] | skill show NAME [--pushed] | skill approve [NAME...] | skill history NAME [--pushed] | skill tag NAME TAG [VERSION] [--pushed] | " +
    "skill push NAME... [--tag TAG] | skill rollback NAME [VERSION|TAG] | skill activate NAME | skill deactivate NAME",
  description:
    "A skill is a folder with SKILL.md in .agents/skills or .claude/skills, of the project or of your home folder (docs/skills.md). Its version is " +
    "the hash of its files. A skill of a project is used with the content that you have approved: `agents trust` approves all of the project, and " +
    "`skill approve` those that have changed since. Each approved content is a version, which an agent file can name as NAME@TAG or NAME@HASH. `push` stores a skill at a coordinator, by versions, for the agent files that are there " +
    "(docs/skills.md#at-a-coordinator). Exit codes: 3 the skill is refused, 2 there is no such skill, 12 the project is not trusted.",
  options: {
    pushed: { help: "the skills at the coordinator" },
    tag: { help: "the tag that the pushed versions get", value: "TAG" },
  },
  examples: [
    ["skill list", "all skills, their versions, and which of them can be used"],
    ["skill show pdf", "the fields, the files and the text of one"],
    ["skill approve pdf", "its present content, after you have read it"],
    ["skill tag pdf stable", "agent files name its approved content as pdf@stable"],
    ["skill push pdf --tag stable", "a new version at the coordinator, for its agent files"],
    ["skill rollback pdf", "the version before, at the coordinator"],
  ],

  async run(args, io) {
    const [action, ...rest] = args.positionals;
    refuseForeignOptions(skill, OPTIONS_OF, args);
    const isHere = (action === "history" || action === "tag") && !args.has("pushed") && !args.has("url");
    if (isCatalogueAction(action) && !isHere)
      return catalogueAction(["skill", skill.usage], action, rest, args, io);
    const calls = (): Promise<typeof import("../../library/catalogue-calls.ts")> =>
      import("../../library/catalogue-calls.ts");
    switch (action) {
      case "list":
        takeNothing(rest, skill.usage);
        if (args.has("pushed")) return (await calls()).listPushed("skill", args, io);
        return listSkills(io);
      case "show":
        if (args.has("pushed")) {
          const name = takeOnly(rest, "the name", skill.usage);
          return (await calls()).showPushed("skill", name, "SKILL.md", args, io);
        }
        return showSkill(takeOnly(rest, "the name", skill.usage), io);
      case "approve":
        return approve(rest, io);
      case "history":
        return showSkillVersions(takeOnly(rest, "the name", skill.usage), io);
      case "tag": {
        const [name, tag = "", version] = takeUpTo(rest, 2, 3, skill.usage);
        return tagVersion(name, tag, version, io);
      }
      case "push":
        return (await import("../../library/push-contents.ts")).pushSkills(rest, args, io);
      default:
        throw refuseAction("skill", action, Object.keys(OPTIONS_OF), skill.usage);
    }
  },
};
