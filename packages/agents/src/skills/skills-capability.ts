// `skillsCapability`: the skills of an agent, as a list in the system prompt and the tool `read_skill`.
//
//   - The prompt has name, description and folder of each skill. The model reads the text when it needs it.
//   - A session keeps the hashes of its start, and reads these contents whatever happens to the files. They
//     are kept in the user's data folder; on another machine, equal files of that machine serve as well.
//   - The files of a skill are written into the workspace when the skill is read, below a folder that is
//     named by their hash. Sessions with different versions thus share a workspace, and a skill that nobody
//     reads leaves nothing there (decision 32). The folder then has exactly these files (written-content-1).
//   - Only files of the content can be read by `read_skill`: a path is looked up and never opened.

import { isUtf8 } from "node:buffer";
import { defined, didYouMean, HoldfastError } from "@holdfast/core";
import { defineTask } from "@holdfast/runtime";
import { z } from "zod";

import type { Workspace } from "@holdfast/workspace";

import { placesOf, realPath, type AgentPlaces } from "../places/agent-places.ts";
import { SKILL_FILE } from "../places/skill-folders.ts";
import type { AgentRecord } from "../record/agent-record.ts";
import { FileProblem } from "../format/front-matter.ts";
import {
  contentsOfSkills,
  contentOfSkill,
  findSkills,
  skillInVersion,
  versionsOfSkill,
  type Skill,
} from "./find-skills.ts";
import { readSkillText } from "./skill-fields.ts";
import { splitReference } from "../record/content-references.ts";
import type { Capability } from "../model-loop/capability.ts";
import { matchesName } from "../record/tool-names.ts";
import { defineTool, type Tool } from "../model-loop/tools/tool.ts";
import { type FolderContent } from "../contents/folder-content.ts";
import { writeContent } from "../contents/written-content.ts";
import { pickWorkspace, workspaceField, type WorkspaceSource } from "../tasks/workspace-source.ts";

// oxlint-disable-next-line typescript/consistent-type-definitions -- an interface is no JSON value.
type SkillFact = { readonly name: string; readonly description: string; readonly hash: string };

/** The most skills of one session: each costs tokens in every request. An agent that names none gets the first. */
const SESSION_SKILLS_MAX = 100;
const READ_SKILL = "read_skill";
/** The folder of a workspace that skills are written below. */
const FOLDER = ".agent-orchestrator/skills";

/**
 * The skills that sessions of an agent get now.
 *
 * @throws HoldfastError `agent_invalid` for a skill of the agent that cannot be used, and for too many
 *   skills. `file_not_found` for a version that is not there.
 */
export function skillsOf(
  { name: agent, skills: wanted, source, tools, deniedTools }: AgentRecord,
  found: readonly Skill[],
  places: AgentPlaces,
): readonly Skill[] {
  if (wanted?.length === 0) return [];
  const isDenied = deniedTools.some((pattern) => matchesName(pattern, READ_SKILL));
  const isOffered =
    !isDenied && (tools === null || tools.some((pattern) => matchesName(pattern, READ_SKILL)));
  if (!isOffered && wanted === null) return [];
  if (isDenied)
    throw new HoldfastError(
      "agent_invalid",
      `agent "${agent}" names skills, and denies the tool that reads them`,
      {
        at: source.path,
        fix: `take ${READ_SKILL} out of the denied tools, or the skills out of the file`,
      },
    );
  const at = source.path;
  const chosen =
    wanted === null
      ? usableSkills(found).slice(0, SESSION_SKILLS_MAX)
      : [...new Set(wanted)].map((reference) => {
          const { name, version } = splitReference(reference);
          if (version === undefined) return chosenSkill(name, found, agent, at);
          return skillInVersion(versionedSkill(name, found, agent, at), version, places);
        });
  const forPeople = chosen.find(({ isForModels }) => !isForModels);
  if (forPeople !== undefined)
    throw new HoldfastError(
      "agent_invalid",
      `agent "${agent}" asks for the skill "${forPeople.name}", which only a person may use`,
      {
        at: forPeople.path,
        fix: "take it out of `skills` of the agent, or `disable-model-invocation` out of the skill",
      },
    );
  if (chosen.length <= SESSION_SKILLS_MAX) return chosen;
  throw new HoldfastError(
    "agent_invalid",
    `agent "${agent}" has ${chosen.length} skills, and ${SESSION_SKILLS_MAX} is the limit`,
    { at, fix: "name the skills that it needs under `skills`" },
  );
}

/**
 * A text that names the skills which an agent without `skills` is not offered. It says how to choose. @param namedMax the most names.
 */
export function skillsLeftOut(found: readonly Skill[], namedMax = Infinity): readonly string[] {
  const names = usableSkills(found)
    .slice(SESSION_SKILLS_MAX)
    .map(({ name }) => name);
  if (names.length === 0) return [];
  const more = names.length - namedMax;
  const rest = more > 0 ? ` and ${more} more, which \`holdfast agents check\` names` : "";
  return [
    `a session has ${SESSION_SKILLS_MAX} skills at most, so an agent that names none is not offered ${names.slice(0, namedMax).join(", ")}${rest}; ` +
      "name those that it needs under `skills` of its file",
  ];
}

/** find-skills-5. */
function usableSkills(found: readonly Skill[]): readonly Skill[] {
  return found.filter(
    ({ status, scope, isForModels }) => status === "loaded" && scope !== "coordinator" && isForModels,
  );
}

/** The agent with the tool that its skills need: a file that names skills asks for it, also beside a list of other tools. */
export function withSkillTool(agent: AgentRecord): AgentRecord {
  const { tools, skills } = agent;
  if (tools === null || skills === null || skills.length === 0) return agent;
  if (tools.some((pattern) => matchesName(pattern, READ_SKILL))) return agent;
  return { ...agent, tools: [...tools, READ_SKILL] };
}

/** A skill of this machine whose versions can be used, whatever became of its folder's content. */
function versionedSkill(name: string, found: readonly Skill[], agent: string, at: string): Skill {
  const own = found.filter((skill) => skill.name === name && skill.scope !== "coordinator");
  const usable = own.find(({ status }) => status === "loaded") ?? own[0];
  if (usable !== undefined && usable.status !== "untrusted") return usable;
  return chosenSkill(name, own, agent, at); // Throws.
}

function chosenSkill(name: string, found: readonly Skill[], agent: string, at: string): Skill {
  const all = found.filter((skill) => skill.name === name);
  const pushed = all.find(({ scope, status }) => scope === "coordinator" && status !== "denied");
  const named = pushed === undefined ? all : [pushed];
  const [first] = named;
  const usable = named.find(({ status }) => status === "loaded");
  if (usable !== undefined) return usable;
  const names = found.filter(({ status }) => status === "loaded").map((skill) => skill.name);
  if (first === undefined)
    throw new HoldfastError(
      "agent_invalid",
      `agent "${agent}" asks for the skill "${name}", which is not there${didYouMean(name, names)}`,
      {
        at,
        expected:
          names.length === 0 ? "a folder with SKILL.md in .agents/skills" : `one of ${names.join(", ")}`,
        fix: "correct `skills` of the agent; `holdfast skill list` shows all skills",
      },
    );
  const [why, fix] = WHY_NOT[first.status];
  throw new HoldfastError("agent_invalid", `agent "${agent}" asks for the skill "${name}", ${why}`, {
    at: first.path,
    fix: fix.replace("NAME", name),
  });
}

const WHY_NOT: Readonly<Record<Skill["status"], readonly [why: string, fix: string]>> = {
  loaded: ["which is there", "run it again"],
  hidden: ["which another skill of its name hides", "rename one of them"],
  refused: ["which is refused", "run `holdfast skill show NAME` to see the reason"],
  untrusted: [
    "which is in a project that you have not trusted",
    "read the skill, and then run `holdfast agents trust`",
  ],
  unapproved: [
    "and you have not approved its present content",
    "read the skill, and then run `holdfast skill approve NAME`",
  ],
  inactive: ["which is inactive at the coordinator", "run `holdfast skill activate NAME`"],
  denied: [
    "which the policy of this machine does not take",
    "the owner of the machine may change its policy",
  ],
};

const readSkillInput = z.strictObject({
  name: z.string().min(1),
  hash: z.string(),
  file: z.string().min(1).optional(),
  ...workspaceField,
});

interface SkillsCapabilityOptions {
  /** Where skills are looked for, and whose user trusts them. */
  readonly places: AgentPlaces;
  /** Opens the workspace of a session, which the files of a skill are written into. */
  readonly workspace: WorkspaceSource;
}

/** Skills of agents that run here. The contents are kept in the folder of the file of trusted folders. */
export function skillsCapability({
  places,
  workspace,
}: SkillsCapabilityOptions): Capability<readonly SkillFact[]> {
  const store = contentsOfSkills(places);

  const versionsOf = (skill: Skill): readonly string[] =>
    versionsOfSkill(skill, places).versions.flatMap(({ hash }) => {
      const kept = store.read(hash);
      return kept === undefined ? [] : [bodyOf(kept).file];
    });

  const contentOf = ({ name, hash }: Pick<SkillFact, "name" | "hash">): FolderContent => {
    const kept = store.read(hash) ?? places.pushed?.skills.content(hash);
    if (kept !== undefined) return kept;
    const equal = findSkills(places).find((skill) => skill.hash === hash && skill.status !== "untrusted");
    const content = equal === undefined ? undefined : contentOfSkill(equal);
    if (content !== undefined) return content;
    throw new HoldfastError(
      "file_not_found",
      `the content of the skill ${name} that this session began with (${hash.slice(0, 12)}) is not on this machine`,
    );
  };

  const readSkill = defineTask<z.output<typeof readSkillInput>, { readonly text: string }>({
    name: READ_SKILL,
    description: "Read a skill, or a file of it",
    input: readSkillInput,
    retry: { nonRetryable: ["file_not_found", "invalid_input", "policy_denied", "limit_exceeded", "usage"] },
    guardRepeats: true,
    run: async ({ name, hash, file, workspace: root }) => {
      const content = contentOf({ name, hash });
      if (file !== undefined) return { text: fileText(content, file, name) };
      const folder = folderOf({ name, hash });
      const written = content.files.map(({ path, bytes }) => ({ path, bytes, mode: 0o644 }));
      await writeContent(await pickWorkspace(workspace, root), FOLDER, nameIn({ name, hash }), written);
      return { text: skillText(content, folder) };
    },
  });

  return {
    name: "skills",
    tasks: [readSkill],
    prepare: async ({ agent, workspace: { root } }) => {
      const skills = skillsOf(agent, findSkills(placesOf(agent, places)), places);
      for (const skill of skills) {
        const content = contentOfSkill(skill);
        if (content === undefined)
          throw new HoldfastError(
            "agent_invalid",
            `the skill ${skill.name} was changed while the session started`,
          );
        store.keep(content);
        const path = `skills/${skill.name}.md`;
        const { file } = bodyOf(content);
        if (agent.workspace === "empty") await (await pickWorkspace(workspace, root)).writeFile(path, file);
        else if (isSandboxRoot(root, places))
          await putFile(await pickWorkspace(workspace, root), path, file, versionsOf(skill));
      }
      const facts = skills.map(({ name, description, hash }) => ({ name, description, hash: hash ?? "" }));
      return facts.length === 0 ? null : facts;
    },
    move: async (facts, { agent, workspace: { root } }) => {
      if (agent.workspace !== "empty") return facts;
      const opened = await pickWorkspace(workspace, root);
      // The snapshot of a turn that wrote nothing has no file. A file that is there may be the agent's.
      const { files } = await opened.listFiles();
      for (const fact of facts) {
        const path = `skills/${fact.name}.md`;
        if (!files.includes(path)) await opened.writeFile(path, bodyOf(contentOf(fact)).file);
      }
      return facts;
    },
    offer: (facts) => ({
      instructions: promptPart(facts),
      tools: [readSkillTool(facts, (ctx, input) => ctx.scheduleTask(readSkill, input))],
    }),
  };
}

/** Writes the file of a skill, unless a file of that name is somebody else's. @param versions the texts that are ours. */
async function putFile(
  opened: Workspace,
  path: string,
  file: string,
  versions: readonly string[],
): Promise<void> {
  const present = await opened.readFile(path).catch((error: unknown) => {
    if (HoldfastError.is(error) && error.code === "file_not_found") return undefined;
    throw error;
  });
  if (present === undefined || versions.includes(present.text)) await opened.writeFile(path, file);
}

/** Whether a workspace is the folder that the user has named for sandboxes, which is no repository of theirs. */
function isSandboxRoot(root: string, { env }: AgentPlaces): boolean {
  const named = env["SANDBOX_ROOT_DIR"];
  return named !== undefined && named !== "" && realPath(named) === realPath(root);
}

type Schedule = (
  ctx: Parameters<ReturnType<Tool["prepare"]>["schedule"]>[0],
  input: z.output<typeof readSkillInput>,
) => Promise<{ readonly text: string }>;

function readSkillTool(facts: readonly SkillFact[], schedule: Schedule): Tool {
  return defineTool({
    name: READ_SKILL,
    description:
      "Read the instructions of a skill, or one of its files. Its files are written into the workspace.",
    input: z.strictObject({
      name: z.string().describe("The name of the skill"),
      file: z
        .string()
        .min(1)
        .optional()
        .describe("A file of the skill, by its path in the folder of the skill"),
    }),
    isReading: true,
    subject: ({ name }) => name,
    run: async (ctx, { name, file, workspace }) => {
      const skill = facts.find((fact) => fact.name === name);
      if (skill === undefined) {
        const names = facts.map((fact) => fact.name);
        return `There is no skill "${name.slice(0, 100)}"${didYouMean(name, names) || "."} The skills are: ${names.join(", ")}.`;
      }
      const input = { name, hash: skill.hash, workspace, ...defined({ file }) };
      return (await schedule(ctx, input)).text;
    },
  });
}

function promptPart(facts: readonly SkillFact[]): string {
  const list = facts.map(
    (skill) =>
      `- ${skill.name}: ${skill.description.replaceAll(/\s+/g, " ")} (${folderOf(skill)}/${SKILL_FILE})`,
  );
  return (
    "Skills are instructions for special tasks. When a task matches the description of one, call read_skill with its name before you begin. " +
    `Its files are in the named folder after that call.\n${list.join("\n")}`
  );
}

function folderOf({ name, hash }: Pick<SkillFact, "name" | "hash">): string {
  return `${FOLDER}/${nameIn({ name, hash })}`;
}

function nameIn({ name, hash }: Pick<SkillFact, "name" | "hash">): string {
  return `${name}-${hash.slice(0, 12)}`;
}

function skillText(content: FolderContent, folder: string): string {
  const others = content.files.map(({ path }) => path).filter((path) => path !== SKILL_FILE);
  const list =
    others.length === 0
      ? []
      : ["", `Files of the skill, in ${folder}:`, ...others.map((path) => `- ${path}`)];
  return [bodyOf(content).body, ...list].join("\n");
}

function bodyOf({ files }: FolderContent): { readonly file: string; readonly body: string } {
  const bytes = files.find(({ path }) => path === SKILL_FILE)?.bytes ?? Buffer.alloc(0);
  const file = new TextDecoder().decode(bytes).replaceAll("\r\n", "\n");
  try {
    return { file, body: readSkillText(file).body };
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return { file, body: file };
  }
}

function fileText({ files }: FolderContent, wanted: string, name: string): string {
  const path = wanted.replace(/^(\.\/)+/, "");
  const file = files.find((one) => one.path === path);
  if (file === undefined) {
    const paths = files.map((one) => one.path);
    throw new HoldfastError(
      "file_not_found",
      `the skill ${name} has no file ${JSON.stringify(wanted.slice(0, 200))}${didYouMean(path, paths) || "."} Its files are: ${paths.join(", ")}`,
    );
  }
  if (file.bytes.includes(0) || !isUtf8(file.bytes))
    return `${path} is no text; it has ${file.bytes.length} bytes`;
  return file.bytes.length === 0 ? `${path} is empty` : file.bytes.toString("utf8");
}
