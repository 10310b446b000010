import { catalogueAction, catalogueActions, isCatalogueAction } from "../../library/catalogue-actions.ts";
import { NAME_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { approve, listSkills, showSkill, showSkillVersions, tagVersion } from "../../library/show-skills.ts";

export const skill: Command = {
  name: "skill",
  actions: {
    list: { does: "all skills, their versions, and which of them can be used", options: ["catalogue"] },
    show: {
      does: "the fields, the files and the text of one",
      takes: [NAME_ARGUMENT],
      options: ["catalogue"],
    },
    approve: {
      does: "approve the present content, after you have read it",
      takes: [{ ...NAME_ARGUMENT, optional: true, repeats: true }],
    },
    push: {
      does: "store new versions at the coordinator",
      takes: [{ ...NAME_ARGUMENT, repeats: true }],
      options: ["tag"],
    },
    ...catalogueActions(["history", "tag"]),
  },
  description:
    "A skill is a folder with SKILL.md in .agents/skills or .claude/skills, of the project or of your home folder (docs/skills.md). Its version is " +
    "the hash of its files. A skill of a project is used with the content that you have approved: `agents trust` approves all of the project, and " +
    "`skill approve` those that have changed since. Each approved content is a version, which an agent file can name as NAME@TAG or NAME@HASH. `push` stores a skill at a coordinator, by versions, for the agent files that are there " +
    "(docs/skills.md#at-a-coordinator). Exit codes: 3 the skill is refused, 2 there is no such skill, 12 the project is not trusted.",
  options: {
    catalogue: { help: "the skills at the coordinator" },
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
    const { action, positionals: rest } = args;
    const isHere = (action === "history" || action === "tag") && !args.has("catalogue") && !args.has("url");
    if (isCatalogueAction(action) && !isHere) return catalogueAction("skill", action, args, io);
    const calls = (): Promise<typeof import("@holdfast/place/calls/catalogue-calls")> =>
      import("@holdfast/place/calls/catalogue-calls");
    switch (action) {
      case "list":
        if (args.has("catalogue")) return (await calls()).listPushed("skill", args, io);
        return listSkills(io);
      case "show":
        if (args.has("catalogue")) {
          const name = rest[0]!;
          return (await calls()).showPushed("skill", name, "SKILL.md", args, io);
        }
        return showSkill(rest[0]!, io);
      case "approve":
        return approve(rest, io);
      case "history":
        return showSkillVersions(rest[0]!, io);
      case "tag": {
        const [name = "", tag = "", version] = rest;
        return tagVersion(name, tag, version, io);
      }
      default:
        return (await import("../../library/push-contents.ts")).pushSkills(rest, args, io);
    }
  },
};
