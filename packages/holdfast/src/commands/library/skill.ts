import { refuseAction, takeNothing, takeOnly } from "../../frame/arguments.ts";
import type { Command } from "../../frame/command.ts";

export const skill: Command = {
  name: "skill",
  summary: "List, show and approve skills",
  usage: "skill list | skill show NAME | skill approve [NAME...]",
  description:
    "A skill is a folder with SKILL.md in .agents/skills or .claude/skills, of the project or of your home folder (docs/skills.md). Its version is " +
    "the hash of its files. A skill of a project is used with the content that you have approved: `agents trust` approves all of the project, and " +
    "`skill approve` those that have changed since. Exit codes: 3 the skill is refused, 2 there is no such skill, 12 the project is not trusted.",
  options: {},
  examples: [
    ["skill list", "all skills, their versions, and which of them can be used"],
    ["skill show pdf", "the fields, the files and the text of one"],
    ["skill approve pdf", "its present content, after you have read it"],
  ],

  async run(args, io) {
    const [action, ...rest] = args.positionals;
    switch (action) {
      case "list":
        takeNothing(rest, skill.usage);
        return (await import("../../agents/show-skills.ts")).listSkills(io);
      case "show":
        return (await import("../../agents/show-skills.ts")).showSkill(
          takeOnly(rest, "the name", skill.usage),
          io,
        );
      case "approve":
        return (await import("../../agents/show-skills.ts")).approve(rest, io);
      default:
        throw refuseAction("skill", action, ["list", "show", "approve"], skill.usage);
    }
  },
};
