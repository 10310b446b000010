// `holdfast rules`: the permission rules that the user gave by answers.

import { readProjectRules, removeProjectRules, ruleText, type PermissionRule } from "@holdfast/agents";
import { NotFoundError, type Session, type StorageReader } from "@holdfast/core";
import { principalOf } from "@holdfast/proto/view";

import type { Io } from "@holdfast/terminal/frame/command";
import { plainLine, table } from "@holdfast/terminal/frame/plain-text";
import { questionLine } from "@holdfast/terminal/view/describe-session";
import { rulesFile } from "@holdfast/machine";
import { userOfMachine } from "@holdfast/place/answer-principals";
import { agentPlaces } from "./agent-places.ts";
import { loopStateOf } from "./workspaces/loop-state.ts";

const RULE_CHARS = 2_000;

export function listRules(io: Io): number {
  const places = agentPlaces(io);
  const kept = readProjectRules(rulesFile(places), places.project);
  const rows = kept.map(({ session, principal = "somebody", at, ...rule }, place) => [
    String(place + 1),
    lineOf(rule),
    `${new Date(at).toISOString().slice(0, 16).replace("T", " ")} UTC by ${plainLine(principal, 60)}, in answer to ${plainLine(session, 60)}`,
  ]);
  const text = rows.length === 0 ? `no rules are kept for ${places.project}` : table(rows).join("\n");
  io.show({ project: places.project, rules: kept }, text);
  return 0;
}

/**
 * The rules of one session: those of its project at its start, and those of answers since. At a coordinator
 * its owner and admins answer.
 */
export async function listSessionRules(
  session: Session,
  { reader, isElsewhere }: RulesPlace,
  io: Io,
): Promise<number> {
  const { sessionId, placement } = session;
  const { rules } = await loopStateOf(reader, session);
  const kept = Array.isArray(rules) ? rules.filter(isRule) : [];
  const principal = isElsewhere ? principalOf(placement?.owner, true) : userOfMachine();
  const head = `given to ${sessionId} by ${plainLine(principal, 60)}`;
  const text =
    kept.length === 0
      ? `the session ${sessionId} has no rules at its last checkpoint`
      : table(kept.map((rule) => [lineOf(rule), head])).join("\n");
  io.show({ session: sessionId, principal, rules: kept }, text);
  return 0;
}

export interface RulesPlace {
  readonly reader: StorageReader;
  readonly isElsewhere: boolean;
}

function isRule(value: unknown): value is PermissionRule {
  if (typeof value !== "object" || value === null) return false;
  const { decision, tool, pattern } = value as Readonly<Record<string, unknown>>;
  return (
    typeof decision === "string" &&
    typeof tool === "string" &&
    (pattern === null || typeof pattern === "string")
  );
}

function lineOf({ decision, tool, pattern }: PermissionRule): string {
  return `${decision} ${questionLine(ruleText({ tool, pattern }), RULE_CHARS)}`;
}

export function revokeRules(wanted: readonly string[] | "all", io: Io): number {
  const places = agentPlaces(io);
  const file = rulesFile(places);
  const kept = readProjectRules(file, places.project);
  const numbers = wanted === "all" ? kept.map((_rule, place) => place + 1) : wanted.map(Number);
  for (const [at, number] of numbers.entries())
    if (!Number.isInteger(number) || kept[number - 1] === undefined)
      throw new NotFoundError("not_found", `this project has no rule ${JSON.stringify(wanted[at])}`, {
        at: places.project,
        expected: kept.length === 0 ? "no rules are kept" : `a number from 1 to ${kept.length}`,
        fix: "`holdfast rules list` shows the numbers",
      });
  const chosen = new Set(numbers.map((number) => number - 1));
  removeProjectRules(file, places.project, chosen);
  io.show(
    { project: places.project, revoked: chosen.size },
    `${chosen.size} ${chosen.size === 1 ? "rule is" : "rules are"} revoked; sessions that run keep the rules they started with`,
  );
  return 0;
}
