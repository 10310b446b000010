// `readFields`: reads the fields of an agent file by the table of its dialect, and reports on each of them.
//
//   - Each field of the file gets exactly one verdict or more, also an unknown one.
//   - An unknown field that may be a misspelt restriction refuses the file. Without this rule
//     `disalowedTools` would permit what its author forbids.

import { didYouMean } from "@holdfast/core";
import type { z } from "zod";
import type { AgentDraft } from "./agent-draft.ts";
import type { FieldReport, Verdict } from "./field-report.ts";

/** The verdict of a field's rule, with its text. */
export type Ruling = readonly [verdict: Verdict, text?: string];

export const HONOURED: Ruling = ["honoured"];
export const mapped = (text: string): Ruling => ["mapped", text];
export const ignored = (because: string): Ruling => ["ignored", because];
export const refused = (because: string): Ruling => ["refused", because];

/** The rule for one field. `read` may change the draft, and may add verdicts on parts of the field to the report. */
export interface FieldRule {
  readonly schema: z.ZodType;
  readonly read: (value: never, draft: AgentDraft, report: FieldReport) => Ruling;
}

export interface FieldTable {
  readonly rules: Readonly<Record<string, FieldRule>>;
  /** Fields that restrict the agent; `all` where any unknown field is refused. */
  readonly restricting: readonly string[] | "all";
  /** The end of the sentence "Holdfast does not know the field", such as "of Claude Code". */
  readonly owner: string;
}

/** A rule whose function sees the value that its schema has checked. */
export function field<Schema extends z.ZodType>(
  schema: Schema,
  read: (value: z.output<Schema>, draft: AgentDraft, report: FieldReport) => Ruling,
): FieldRule {
  return { schema, read };
}

export function readFields(
  values: Readonly<Record<string, unknown>>,
  { rules, restricting, owner }: FieldTable,
  draft: AgentDraft,
  report: FieldReport,
  parents: readonly string[] = [],
): void {
  // In the order of the table, so that the order of the file has no meaning.
  const order = [...new Set([...Object.keys(rules), ...Object.keys(values)])];
  for (const name of order.filter((one) => Object.hasOwn(values, one))) {
    const value = values[name];
    const path = [...parents, name];
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined) {
      report.add(path, ...rulingOfUnknown(name, Object.keys(rules), restricting, owner));
      continue;
    }
    const checked = rule.schema.safeParse(value);
    const ruling = checked.success
      ? rule.read(checked.data as never, draft, report)
      : refused(problemOf(checked.error, rule.schema));
    report.add(path, ...ruling);
  }
}

function rulingOfUnknown(
  name: string,
  known: readonly string[],
  restricting: FieldTable["restricting"],
  owner: string,
): Ruling {
  const unknown = `Holdfast knows no field "${name}" ${owner}`;
  if (restricting === "all") return refused(`${unknown}${didYouMean(name, known)}`);
  const guess = didYouMean(name, restricting);
  if (guess !== "") return refused(`${unknown}, and it may be a misspelt restriction${guess}`);
  return ignored(`${unknown}${didYouMean(name, known)}`);
}

/** The first problem with its place in the value, and the description of the field. */
function problemOf(error: z.ZodError, schema: z.ZodType): string {
  const [issue] = error.issues;
  const place = issue === undefined || issue.path.length === 0 ? "" : ` at ${issue.path.join(".")}`;
  const expected = schema.description === undefined ? "" : `; it is: ${schema.description}`;
  return `wrong value${place}: ${issue?.message ?? "it does not fit"}${expected}`;
}
