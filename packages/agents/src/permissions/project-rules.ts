// The permission rules that a user gave for a project by answers, in a file of the user's data folder.
//
//   - A project is known by its real path. Its rules never lie in it, so a cloned repository or an agent
//     cannot permit itself anything.
//   - Two processes that add a rule at the same moment may keep one of them. The person is then asked again.

import { dirname } from "node:path";
import { makePrivateFolder, readUserFile, replacePrivate } from "@holdfast/system";
import { z } from "zod";

import { realPath } from "../places/agent-places.ts";
import type { PermissionRule } from "../record/agent-record.ts";

export interface KeptRule extends PermissionRule {
  /** The session whose question was answered. */
  readonly session: string;
  /** The person who gave the answer, as the machine of the session knows this person. */
  readonly principal?: string | undefined;
  /** The time of the answer's rule, in milliseconds since 1970. */
  readonly at: number;
}

/** The rules of a project, the oldest first. @throws HoldfastError `config_invalid` for a file that cannot be used. */
export function readProjectRules(rulesFile: string, project: string): readonly KeptRule[] {
  const all = readAll(rulesFile);
  const path = realPath(project);
  return Object.hasOwn(all, path) ? (all[path] ?? []) : [];
}

/** Adds a rule. An equal one stays; one with the other decision is replaced. @throws HoldfastError `config_invalid` */
export function addProjectRule(rulesFile: string, project: string, rule: KeptRule): void {
  const known = readProjectRules(rulesFile, project);
  const isSame = (one: KeptRule): boolean => one.tool === rule.tool && one.pattern === rule.pattern;
  if (known.some((one) => isSame(one) && one.decision === rule.decision)) return;
  write(rulesFile, project, [...known.filter((one) => !isSame(one)), rule]);
}

/** Removes the rules at these places, counted from 0. @throws HoldfastError `config_invalid` */
export function removeProjectRules(rulesFile: string, project: string, places: ReadonlySet<number>): void {
  const known = readProjectRules(rulesFile, project);
  write(
    rulesFile,
    project,
    known.filter((_rule, place) => !places.has(place)),
  );
}

type Rules = Readonly<Record<string, readonly KeptRule[]>>;

function write(rulesFile: string, project: string, rules: readonly KeptRule[]): void {
  const { [realPath(project)]: _before, ...others } = readAll(rulesFile);
  const projects: Rules = rules.length === 0 ? others : { ...others, [realPath(project)]: rules };
  makePrivateFolder(dirname(rulesFile));
  replacePrivate(rulesFile, `${JSON.stringify({ projects }, null, 2)}\n`);
}

const keptRule = z.object({
  decision: z.enum(["allow", "deny"]),
  tool: z.string(),
  pattern: z.string().nullable(),
  session: z.string(),
  principal: z.string().optional(),
  at: z.number(),
});
const file = z.object({ projects: z.record(z.string(), z.array(keptRule)) });

function readAll(rulesFile: string): Rules {
  const found = readUserFile(rulesFile, {
    what: "permission rules",
    expected:
      '{ "projects": { "/path": [{ "decision", "tool", "pattern", "session", "principal", "at" }] } }',
    fix: "correct or remove the file; without it, people are asked again",
    schema: file,
  });
  return found?.projects ?? {};
}
