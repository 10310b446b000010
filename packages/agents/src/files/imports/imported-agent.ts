// `readImported`: reads one agent of a file that may have several, by the tables of its format.

import { createHash } from "node:crypto";
import type { DialectName } from "../../places/agent-places.ts";
import { nameProblem } from "../dialects/dialect.ts";
import { newDraft } from "../../format/agent-draft.ts";
import { FieldReport } from "../../format/field-report.ts";
import { readFields, type FieldTable } from "../../format/fields.ts";
import type { ParsedFile } from "../../format/front-matter.ts";
import { checkAgent, type AgentFile } from "../load-agent-file.ts";

/** Fields of an agent or of its file, with the table that they are read by. */
interface Part {
  readonly values: Readonly<Record<string, unknown>>;
  readonly table: FieldTable;
  /** The path of the values in the file. */
  readonly at: readonly string[];
}

/** One agent of a file. */
export interface ImportedAgent {
  readonly name: string;
  /** In the order in which they are read. */
  readonly parts: readonly Part[];
  readonly at: readonly string[];
  /** The path of its system prompt; `undefined` where it may have none. */
  readonly promptField: string | undefined;
}

/** A file of another tool with agents. */
export interface ImportedFile {
  readonly dialect: DialectName;
  readonly agents: readonly ImportedAgent[];
  readonly lineOf: ParsedFile["lineOf"];
}

export function readImported(
  path: string,
  text: string,
  { dialect, lineOf }: Pick<ImportedFile, "dialect" | "lineOf">,
  { name, parts, at, promptField }: ImportedAgent,
): AgentFile {
  const draft = newDraft(name, "");
  const report = new FieldReport(lineOf);
  for (const part of parts) readFields(part.values, part.table, draft, report, part.at);
  const problem = at.length === 0 ? undefined : nameProblem(name);
  if (problem !== undefined) report.add([...at, "name"], "refused", problem);
  checkAgent(draft, report, { promptField, isDescribed: false });
  const { verdicts } = report;
  const isRefused = verdicts.some(({ verdict }) => verdict === "refused");
  const hash = createHash("sha256")
    .update(`${at.join(".")}\n`)
    .update(text)
    .digest("hex");
  const found = { path, dialect, scope: "path", within: null } as const;
  return {
    ...found,
    name: draft.name,
    record: isRefused ? null : { ...draft, source: { path, dialect, scope: "path", hash } },
    verdicts,
    problem: null,
  };
}
