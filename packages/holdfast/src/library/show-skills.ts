// `holdfast skill list`, `show`, `approve`, `history` and `tag` on this machine.

import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import {
  approvedContent,
  approveSkills,
  findSkills,
  isTrusted,
  readFolderContent,
  SKILL_FILE,
  tagSkill,
  versionsOfSkill,
  type Skill,
} from "@holdfast/agents";
import { didYouMean, HoldfastError, NotFoundError } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { count, cutTo, plain, plainLine, table } from "@holdfast/terminal/frame/plain-text";
import { agentPlaces, shownPath } from "../agents/agent-places.ts";
import { otherText } from "../agents/check-agents.ts";
import { changesText, hiddenTextLines, noteHiddenText } from "../agents/content-notes.ts";
import { checkTag, HASH_CHARS, showTag, showVersionsOf } from "./content-versions.ts";

export function listSkills(io: Io): number {
  const skills = findSkills(agentPlaces(io));
  const rows = skills.map(({ name, status, hash, path, description, problem, verdicts }) => [
    plainLine(name, 64),
    status,
    hash?.slice(0, HASH_CHARS) ?? "-",
    shownPath(path, io),
    plainLine(
      description || problem || (verdicts.find(({ verdict }) => verdict === "refused")?.text ?? ""),
      60,
    ),
  ]);
  const lines = table([["NAME", "STATUS", "VERSION", "FILE", ""], ...rows]);
  io.show(
    skills.map(({ verdicts: _verdicts, ...skill }) => skill),
    rows.length === 0
      ? "no skills: a skill is a folder with SKILL.md in .agents/skills"
      : lines.map((line) => cutTo(line, io.results.columns, io.results.symbols.cut)).join("\n"),
  );
  const unapproved = skills.filter(({ status }) => status === "unapproved").length;
  if (unapproved > 0)
    io.note(
      `${io.notes.symbols.warn} the content of ${count(unapproved, "skill")} is not approved: read it, and then run \`${io.call("skill approve")}\``,
    );
  return 0;
}

export function showSkill(name: string, io: Io): number {
  const skill = findSkill(name, findSkills(agentPlaces(io)));
  const { hash, path, status, verdicts, ...rest } = skill;
  const content = hash === null ? undefined : readFolderContent(dirname(path));
  const files = content?.files.map((file) => file.path) ?? [];
  const warnings = hiddenTextLines(content?.files ?? []);
  const approved = status === "unapproved" ? approvedContent(agentPlaces(io), skill) : undefined;
  const changes = content === undefined || approved === undefined ? null : changesText(approved, content);
  const text = hash === null ? "" : plain(readFileSync(path, "utf8"));
  io.show(
    { ...rest, path, status, hash, files, changes, warnings, fields: verdicts },
    [
      otherText(skill, `${plainLine(skill.name, 64)} (skill)`, io),
      // The warnings of SKILL.md stand among its fields.
      ...warnings.filter((line) => !line.startsWith(SKILL_FILE)).map((line) => `  warning: ${line}`),
      ...(changes === null ? [] : [`  since you approved it: ${changes}`]),
      ...(hash === null ? [] : [`  version: ${hash}`, `  files: ${files.join(", ")}`, "", text.trimEnd()]),
    ].join("\n"),
  );
  return status === "refused" ? 3 : 0;
}

export function approve(names: readonly string[], io: Io): number {
  const places = agentPlaces(io);
  const { project, trustFile } = places;
  if (!isTrusted(trustFile, project))
    throw new HoldfastError(
      "policy_denied",
      "you have not trusted this project, so that none of its skills is used",
      {
        at: project,
        fix: "run `holdfast agents trust`, which also approves its skills",
      },
    );
  const skills = findSkills(places).filter(({ scope }) => scope === "project");
  for (const name of names) {
    const { status, path } = findSkill(name, skills);
    if (status === "refused")
      throw new HoldfastError("agent_invalid", `the skill ${name} is refused and cannot be approved`, {
        at: path,
        fix: `run \`holdfast skill show ${name}\` to see the reason`,
      });
  }
  const before = new Map(skills.map((skill) => [skill.path, approvedContent(places, skill)]));
  const approved = approveSkills(places, names.length === 0 ? undefined : names).map(
    ({ name, hash, path }) => {
      const content = readFolderContent(dirname(path));
      noteHiddenText(`the skill ${name}`, content.files, io);
      const old = before.get(path);
      return { name, hash, changes: old === undefined ? null : changesText(old, content) };
    },
  );
  io.show(
    approved,
    approved.length === 0
      ? "the project has no skill to approve"
      : approved
          .map(({ name, hash, changes }) => {
            const since = changes === null ? "" : changes === "" ? ", as before" : `: ${changes}`;
            return `${name} is approved with version ${hash?.slice(0, HASH_CHARS)}${since}`;
          })
          .join("\n"),
  );
  return 0;
}

export function showSkillVersions(name: string, io: Io): number {
  const places = agentPlaces(io);
  const versions = versionsOfSkill(findSkill(name, findSkills(places)), places);
  return showVersionsOf(name, versions, { column: "APPROVED", makes: `skill approve ${name}` }, io);
}

export function tagVersion(name: string, tag: string, version: string | undefined, io: Io): number {
  checkTag(tag);
  const places = agentPlaces(io);
  const skill = findSkill(name, findSkills(places));
  return showTag(name, tag, tagSkill(skill, { tag, version, now: Date.now() }, places), io);
}

/** The skill of this name that is used, or else the first one. */
export function findSkill(name: string, skills: readonly Skill[]): Skill {
  const named = skills.filter((skill) => skill.name === name);
  const found = named.find(({ status }) => status === "loaded") ?? named[0];
  if (found !== undefined) return found;
  const names = skills.map((skill) => skill.name);
  throw new NotFoundError(
    "file_not_found",
    `there is no skill ${plainLine(name, 64)}${didYouMean(name, names)}`,
    {
      expected:
        names.length === 0 ? "a folder with SKILL.md in .agents/skills" : [...new Set(names)].join(", "),
      fix: "run `holdfast skill list` to see all skills",
    },
  );
}
