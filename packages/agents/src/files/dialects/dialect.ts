// The parts that dialects share: the type of a dialect, its table of fields, and rules for fields that most
// formats have.

import { z } from "zod";
import { denyTools, type AgentDraft } from "../../format/agent-draft.ts";
import {
  field,
  HONOURED,
  ignored,
  mapped,
  refused,
  type FieldRule,
  type FieldTable,
  type Ruling,
} from "../../format/fields.ts";
import { referencesProblem } from "../../record/content-references.ts";
import { CHANGING_TOOLS } from "../../record/tool-names.ts";

/** One file format. */
export interface Dialect {
  readonly name: string;
  readonly table: FieldTable;
  /** The field that holds the system prompt; `null` for the text below the front matter. */
  readonly promptField: string | null;
  /** Whether a file may have no system prompt. */
  readonly mayLackPrompt?: true;
}

export const textOrTexts = z.union([z.string(), z.array(z.string())]);

export const nameRule = field(z.string().describe("the name of the agent"), (value, draft) => {
  const problem = nameProblem(value);
  if (problem !== undefined) return refused(problem);
  draft.name = value;
  return HONOURED;
});

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$/;
/** Names that no file of Windows may have. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)$/i;

/** @returns the reason why an agent cannot have this name. */
export function nameProblem(name: string): string | undefined {
  if (NAME.test(name) && !DEVICE.test(name)) return undefined;
  return `"${name.slice(0, 80)}" is no name of an agent: it has 1 to 60 letters (a to z), digits, "-" and "_", and begins with a letter or a digit`;
}

const OF_TOOL = /^(holdfast|claude|opencode|codex|gemini|copilot|folder):(.+)$/;

/**
 * The two parts of `TOOL:NAME`, which means the agent of this name in the files of one tool; `undefined` for
 * any other text.
 */
export function ofTool(text: string): { readonly tool: string; readonly name: string } | undefined {
  const [, tool, name] = OF_TOOL.exec(text) ?? [];
  return tool === undefined || name === undefined ? undefined : { tool, name };
}

const DESCRIPTION_CHARS_MAX = 10_000;

export const descriptionRule = field(
  z
    .string()
    .max(DESCRIPTION_CHARS_MAX)
    .describe("when to use the agent, for the model of a parent and for people"),
  (value, draft) => {
    draft.description = value.trim();
    return HONOURED;
  },
);

export const tagsRule = field(
  z
    .array(
      z
        .string()
        .regex(/^[\p{L}\p{N}][\p{L}\p{N}._/-]{0,49}$/u, "a tag has up to 50 letters, digits, . _ / and -"),
    )
    .max(50)
    .describe("words by which `holdfast agents list --tag TAG` chooses agents"),
  (value, draft) => {
    draft.tags = [...new Set(value)];
    return HONOURED;
  },
);

export const modelRule = field(
  z
    .string()
    .min(1)
    .describe("a model, as provider/model or an alias; inherit for the one that is configured"),
  (value, draft) => {
    if (value === "inherit") return mapped("the model that is configured");
    draft.model = value;
    return HONOURED;
  },
);

/** A rule for a number of turns. */
export const turnsRule = field(
  z.int().min(1).max(100_000).describe("the most turns of one run, a whole number above 0"),
  (value, draft) => {
    draft.turnsMax = value;
    return HONOURED;
  },
);

/** A field without a counterpart that restricts nothing. */
export function unused(because: string): FieldRule {
  return field(z.unknown(), () => ignored(because));
}

export const DISPLAY_ONLY = "it only says how another tool shows the agent";
export const MODEL_TUNING = "Holdfast uses the defaults of the model";

/** Denies all tools that change something or reach outside. @returns them in text. */
export function denyChanges(draft: AgentDraft): string {
  denyTools(draft, CHANGING_TOOLS);
  return `these tools are denied: ${CHANGING_TOOLS.join(", ")}`;
}

/** `skills`: the prompt lists these skills only, each in its current version or in the one that it names. */
export function listSkills(names: readonly string[], draft: AgentDraft): Ruling {
  const problem = referencesProblem(names);
  if (problem !== undefined) return refused(problem);
  draft.skills = names;
  return mapped("the prompt lists these skills, and the model reads them when it needs them");
}
