// The name and the fields of a skill, read as the tools do that skills are written for (`skillName`,
// `readSkillFields`).
//
//   - A skill has the name of its folder, whatever its front matter says. Approvals and rules know it by this
//     name, so that no text in a file can take the name of another skill.
//   - Only what a session cannot do without refuses a skill: a text, and a name that can be written.
//   - A field that restricts the skill counts in any spelling of its value.

import { basename } from "node:path";
import { z } from "zod";
import { DISPLAY_ONLY, unused } from "../files/dialects/dialect.ts";
import { newDraft } from "../format/agent-draft.ts";
import { FieldReport, type FieldVerdict } from "../format/field-report.ts";
import { field, HONOURED, ignored, mapped, readFields, refused, type FieldTable } from "../format/fields.ts";
import { readFrontMatter, type ParsedFile } from "../format/front-matter.ts";

/** The longest description that the prompt of a session has: it costs tokens in every request. */
const DESCRIPTION_CHARS_MAX = 1_536;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const plainText = z
  .union([z.string(), z.number(), z.boolean()])
  .transform((value) => String(value).trim())
  .catch("");

const FOR_PEOPLE = "it is for people";

const TABLE: FieldTable = {
  restricting: ["disable-model-invocation"],
  owner: "of a skill",
  rules: {
    name: field(z.unknown(), (value, draft) =>
      value === draft.name ? HONOURED : mapped(`${draft.name}, as the folder of the skill is named`),
    ),
    description: field(plainText, (value, draft) => {
      draft.description = value;
      return value === "" ? ignored("it is no text") : HONOURED;
    }),
    when_to_use: field(plainText, (value, draft) => {
      draft.description = `${draft.description} ${value}`.trim();
      return value === "" ? ignored("it is no text") : mapped("the description");
    }),
    license: unused(FOR_PEOPLE),
    compatibility: unused(FOR_PEOPLE),
    metadata: unused("it is for other programs"),
    "allowed-tools": unused("a skill gives no rights: the agent's own tools and approvals hold"),
    "argument-hint": unused(DISPLAY_ONLY),
    "user-invocable": field(z.unknown(), (value) =>
      isOff(value) && value !== undefined ? mapped("a conversation has no command of its name") : HONOURED,
    ),
    "disable-model-invocation": field(z.unknown(), (value) =>
      isOff(value) ? HONOURED : mapped("only a person may use it, by its name in a conversation"),
    ),
    model: unused("the agent's model reads it"),
    version: unused("the version is the hash of its content"),
    hooks: unused("Holdfast does not run hooks of a skill; write them under holdfast.hooks of an agent file"),
  },
};

export interface SkillFields {
  readonly description: string;
  /** `false` for a skill that only a person may use. */
  readonly isForModels: boolean;
  /** `false` for a skill that no person may use by its name. */
  readonly isForPeople: boolean;
  readonly verdicts: readonly FieldVerdict[];
}

/** The name of the skill in a folder. Letters that a name cannot have become hyphens. */
export function skillName(folder: string): string {
  const name = basename(folder);
  if (NAME.test(name)) return name;
  const parts =
    name
      .normalize("NFKD")
      .replaceAll(/\p{M}/gu, "")
      .match(/[A-Za-z0-9._]+/g) ?? [];
  const plain = parts
    .join("-")
    .replace(/^[._-]+/, "")
    .slice(0, 64)
    .replace(/[._-]+$/, "");
  return plain === "" ? name : plain;
}

/** @param text that of a `SKILL.md`. @throws FileProblem */
export function readSkillFields(name: string, text: string): SkillFields {
  const { values, lineOf, body } = readSkillText(text);
  const draft = newDraft(name, "");
  const report = new FieldReport(lineOf);
  readFields(values, TABLE, draft, report);
  if (!NAME.test(name))
    report.add(
      ["name"],
      "refused",
      "its folder has no letter from a to z and no digit: give it another name",
    );
  else if (!Object.hasOwn(values, "name"))
    report.add(["name"], "mapped", `${name}, as the folder of the skill is named`);
  const [verdict, said] = describe(draft.description, body);
  if (verdict !== "honoured") report.add(["description"], verdict, said);
  return {
    description: cut(draft.description === "" ? firstLines(body) : draft.description),
    isForModels: isOff(values["disable-model-invocation"]),
    isForPeople: values["user-invocable"] === undefined || !isOff(values["user-invocable"]),
    verdicts: report.verdicts,
  };
}

function describe(description: string, body: string) {
  if (description !== "")
    return description.length <= DESCRIPTION_CHARS_MAX
      ? HONOURED
      : mapped(`its first ${DESCRIPTION_CHARS_MAX} characters`);
  return body === ""
    ? refused("it is missing, and so is the text of the skill: say what the skill does and when to use it")
    : mapped("the first lines of its text, because there is none");
}

/** The parts of a `SKILL.md`, which may have no fields. @throws FileProblem */
export function readSkillText(text: string): ParsedFile {
  if (/^---[ \t]*(\n|$)/.test(text)) return readFrontMatter(text);
  return { values: {}, body: text.trim(), lineOf: () => null, repaired: [] };
}

function firstLines(body: string): string {
  const blocks = body.split(/\n\s*\n/).map((block) => block.trim());
  const first = blocks.find((block) => block !== "" && !/^#[^\n]*$/.test(block)) ?? blocks[0] ?? "";
  return first.replace(/^#+\s*/, "").replaceAll(/\s+/g, " ");
}

function cut(text: string): string {
  return text.slice(0, DESCRIPTION_CHARS_MAX).replace(/[\uD800-\uDBFF]$/, ""); // No half of a character.
}

function isOff(value: unknown): boolean {
  return value === undefined || value === null || value === false || value === "false";
}
