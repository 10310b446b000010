// Decides whether a tool call runs, is asked for, or is refused. Pure.
//
//   permissions-1. A rule never permits more than it says. A line for a shell runs by rules for commands only
//       if these allow each simple command of it. A redirection to a file, a name that the line does not
//       show, or an error of the parser matches no such rule.
//   permissions-2. The commands of a line are decided one by one, also those behind wrappers (`timeout`,
//       `env`, `sh -c`), and the strictest decision counts. Where a line may run what nobody sees, an `ask`
//       or a `deny` with a pattern asks a person.
//   - The rules with a pattern decide before the rules without one. Among these a `deny` that matches wins
//     over an `ask`, which wins over an `allow`, whatever their order. The pattern `*` matches every call.
//   permissions-4. Without a subject no pattern can be compared. A `deny` or an `ask` with a pattern then
//       asks a person, and an `allow` with a pattern permits nothing.
//   permissions-5. The rules of the agent decide first. The rules that people gave by answers decide what
//       these would ask for, and can only forbid what these allow.
//   permissions-6. A pattern without a sign of globs matches exactly itself. The exact pattern of a call
//       (`exactPattern`) matches this call alone. The quotes of a command count for its words alone.
//   permissions-7. A pattern that cannot be used (`patternProblem`) permits nothing. In a `deny` or an `ask`
//       it counts as matching.
//   permissions-8. A path is decided as it was given and as the place that its links lead to, and the
//       stricter decision counts. A path that leads out of the folder matches no `allow` with a relative
//       pattern.
//   permissions-9. The results of a tool for whole folders leave out what a rule of the tool forbids or asks
//       for (`hiddenPaths`), with all below. Tools that show contents also hide what `read_file` may not
//       read.
//   - A `deny` or an `ask` for a path holds for every file tool that does the same. A rule for `read_file` is
//     one for the tools that list, search, compare and edit, too. A rule for a tool that writes is one for
//     the other. Such a rule of another tool can only forbid what the rules of the tool itself permit.
//   permissions-11. Such a rule also holds for the redirections of a line for a shell and for the files that
//       known commands name. Where a line does not show the path, it asks, unless the sandbox keeps the path
//       from commands (`maskOf`). An agent with such a `deny` runs commands freely only in such a sandbox
//       (`freeShellProblem`).
//
// A rule for commands is no boundary: a program that is not in the tables (`commands/programs.ts`) can start
// another. A sandbox is the boundary.

import type { AgentRecord, PermissionDecision, PermissionRule } from "../record/agent-record.ts";
import { matchesName } from "../record/tool-names.ts";
import {
  GLOB_SIGNS,
  globMatcher,
  globProblem,
  isOutside,
  normalizeGlob,
  normalizePath,
  ownSandbox,
  type PathMask,
} from "@holdfast/workspace";
import { lineReadings, type LineReadings, type ReadCommand } from "./commands/command-readings.ts";
import { changesFolder, comparePaths, pathRules } from "./commands/command-paths.ts";
import { commandPatternOf, compareCommand, exactCommand, type Comparison } from "./commands/command-rules.ts";
import type { WordValue } from "./commands/shell-line.ts";

/** The parts of a tool that a decision needs. */
export interface PermissionTool {
  readonly offered: { readonly name: string };
  /** The tool changes nothing. Calls of such tools are allowed by default. */
  readonly isReading: boolean;
  /** How a pattern of a permission rule is compared with the subject. */
  readonly subjectKind: "command" | "path" | "text";
  /** The sandbox keeps the paths that rules of the agent deny from the commands of the tool (`maskOf`). */
  readonly isMasked?: boolean;
}

export interface Decision {
  readonly decision: PermissionDecision;
  /** The rule that decided, `null` for the default. */
  readonly rule: PermissionRule | null;
}

const ORDER: readonly PermissionDecision[] = ["deny", "ask", "allow"];

/** The decision for one call. Without a rule, a tool that only reads is allowed and every other is asked. */
export function decide(
  rules: readonly PermissionRule[],
  tool: PermissionTool,
  subject: string | null,
): Decision {
  if (subject === null) {
    const decided = decideOne(rules, tool, null);
    const unclear = decided.decision === "allow" ? undecidable(rules, tool) : undefined;
    return unclear === undefined ? decided : { decision: "ask", rule: unclear };
  }
  if (tool.subjectKind !== "command") return decideOne(rules, tool, subject);
  const forPaths = tool.offered.name === "shell" ? pathRules(rules) : [];
  if (forPaths.length === 0 && !hasPattern(rules, tool)) return decideOne(rules, tool, subject);
  const line = lineReadings(subject);
  const decided = decideLine(rules, tool, line);
  return strictestOf([decided, ...decideFiles(forPaths, line, tool.isMasked === true)]) ?? decided;
}

/** permissions-11. */
function decideFiles(
  rules: readonly PermissionRule[],
  line: LineReadings,
  isMasked: boolean,
): readonly Decision[] {
  const hasMoved = line.commands.some(changesFolder);
  const whole: ReadCommand = { ...NO_COMMANDS, files: line.files, isHidden: line.isUnclear };
  return rules.flatMap((rule) =>
    [whole, ...line.commands].flatMap((command): readonly Decision[] => {
      const result = comparePaths(rule, command, hasMoved);
      const isKept = isMasked && rule.decision === "deny" && result === "may match";
      if (result === "differs" || isKept) return [];
      return [{ decision: result === "matches" ? rule.decision : "ask", rule }];
    }),
  );
}

/** permissions-2. */
function decideLine(
  rules: readonly PermissionRule[],
  tool: PermissionTool,
  { commands, files, isUnclear }: LineReadings,
): Decision {
  const isOpaque = isUnclear || files.length > 0;
  // permissions-1.
  const usable = isOpaque
    ? rules.filter(({ decision, pattern }) => decision !== "allow" || pattern === null || pattern === "*")
    : rules;
  const decisions = commands.flatMap((command) => decideCommand(usable, tool, command));
  const decided = strictestOf(decisions) ?? decideAmong(matchingOf(usable, tool, NO_COMMANDS), tool);
  const unclear = isUnclear && decided.decision === "allow" ? undecidable(rules, tool) : undefined;
  return unclear === undefined ? decided : { decision: "ask", rule: unclear };
}

/** A line without a command, or with none that decides. */
const NO_COMMANDS: ReadCommand = { readings: [], line: undefined, isHidden: false, files: [] };

function matchingOf(
  rules: readonly PermissionRule[],
  { offered }: PermissionTool,
  command: ReadCommand,
): readonly PermissionRule[] {
  return rules.filter(
    (rule) => matchesName(rule.tool, offered.name) && compareRule(rule, command) === "matches",
  );
}

/** @returns nothing for a command that decides nothing: it has no effect, or the line that it gives to a shell decides. */
function decideCommand(
  rules: readonly PermissionRule[],
  tool: PermissionTool,
  command: ReadCommand,
): readonly Decision[] {
  const compared = rules
    .filter((rule) => matchesName(rule.tool, tool.offered.name))
    .map((rule) => ({ rule, result: compareRule(rule, command) }));
  const decided = decideAmong(
    compared.flatMap(({ rule, result }) => (result === "matches" ? [rule] : [])),
    tool,
  );
  if (decided.decision === "deny" && decided.rule?.pattern !== null) return [decided];
  const unclear = compared.find(({ result }) => result === "may match")?.rule;
  if (unclear !== undefined) return [strictestOf([decided, { decision: "ask", rule: unclear }]) ?? decided];
  return decided.rule?.pattern == null && decidesNothing(command) ? [] : [decided];
}

function compareRule({ decision, pattern }: PermissionRule, command: ReadCommand): Comparison {
  return pattern === null || pattern === "*" ? "matches" : compareCommand(pattern, decision, command);
}

/** Commands that only say something to the shell. */
const WITHOUT_EFFECT: ReadonlySet<WordValue> = new Set([
  "true",
  "false",
  ":",
  "exit",
  "break",
  "continue",
  "test",
  "[",
]);

function decidesNothing({ readings, files, line, isHidden }: ReadCommand): boolean {
  const last = readings.at(-1);
  if (last === undefined || !last.isAllowable || files.length > 0 || isHidden) return false;
  return line !== undefined || last.words.length === 0 || WITHOUT_EFFECT.has(last.words[0] ?? null);
}

type ShellAgent = Pick<AgentRecord, "tools" | "deniedTools" | "permissions">;

/**
 * permissions-11. @returns the rule for a path that the commands of an agent could break, because all of them
 *     run without a question.
 */
export function freelyBroken({ tools, deniedTools, permissions }: ShellAgent): PermissionRule | undefined {
  const isShell = (name: string): boolean => matchesName(name, "shell");
  if (deniedTools.some(isShell) || tools?.some(isShell) === false) return undefined;
  const tool: PermissionTool = { isReading: false, subjectKind: "command", offered: { name: "shell" } };
  const isFree = decideOne(permissions, tool, "").decision === "allow";
  return isFree ? pathRules(permissions).find(({ decision }) => decision === "deny") : undefined;
}

/** permissions-11. @returns why an agent is refused in a sandbox. */
export function freeShellProblem(agent: ShellAgent, sandbox: string): string | undefined {
  const denial = freelyBroken(agent);
  if (denial === undefined || ownSandbox(sandbox)?.masksPaths === true) return undefined;
  return `its rules forbid ${denial.tool}(${denial.pattern}) and allow every command, which could do the same in the sandbox ${sandbox}; choose a sandbox that keeps the path from commands (virtual, bubblewrap or docker), name the commands that run, such as Bash(npm test:*), or let commands ask`;
}

/**
 * permissions-11. @returns what a sandbox keeps from the commands of an agent with these rules; nothing where
 *     no path is denied.
 */
export function maskOf(rules: readonly PermissionRule[]): PathMask | undefined {
  const denied = pathRules(rules).filter(({ decision }) => decision === "deny");
  const patternsOf = (isRead: boolean): readonly string[] => [
    ...new Set(
      denied.flatMap(({ tool, pattern }) => ((tool === "read_file") === isRead ? [pattern ?? "*"] : [])),
    ),
  ];
  return denied.length === 0 ? undefined : { unreadable: patternsOf(true), unwritable: patternsOf(false) };
}

/** The decision by the rules of the agent and by those that people gave (permissions-5). */
export function decideWithAnswers(
  own: readonly PermissionRule[],
  given: readonly PermissionRule[],
  tool: PermissionTool,
  subject: string | null,
): Decision {
  const first = decide(own, tool, subject);
  if (first.decision === "deny") return first;
  const second = decide(given, { ...tool, isMasked: false }, subject);
  const isUndecided = second.rule === null || (first.decision === "allow" && second.decision === "allow");
  return isUndecided ? first : second;
}

/** The strictest decision for the subjects of one call (permissions-8). */
export function decidePlaces(
  own: readonly PermissionRule[],
  given: readonly PermissionRule[],
  tool: PermissionTool,
  subjects: readonly (string | null)[],
): Decision {
  const decisions = subjects.map((subject) => decideWithAnswers(own, given, tool, subject));
  return strictestOf(decisions) ?? decideWithAnswers(own, given, tool, null);
}

const ALIKE: Readonly<Record<string, readonly string[]>> = {
  read_file: ["list_files", "search", "git_diff", "edit_file"],
  edit_file: ["write_file"],
  write_file: ["edit_file"],
};

/** A file tool and the others that do the same. */
export function toolsLike(tool: string): readonly string[] {
  return [tool, ...(Object.hasOwn(ALIKE, tool) ? (ALIKE[tool] ?? []) : [])];
}

/** Whether a rule is one for calls of this tool. */
function concerns({ decision, tool, pattern }: PermissionRule, { offered }: PermissionTool): boolean {
  if (matchesName(tool, offered.name)) return true;
  const isRestriction = decision !== "allow" && pattern !== null && pattern !== "*";
  return isRestriction && toolsLike(tool).includes(offered.name);
}

/** Whether a rule compares the subjects of this tool's calls. */
export function hasPattern(rules: readonly PermissionRule[], tool: PermissionTool): boolean {
  return rules.some((rule) => rule.pattern !== null && rule.pattern !== "*" && concerns(rule, tool));
}

/**
 * The patterns of paths that are left out of the results of this call (permissions-9). An `ask` that the call
 * itself matches was answered.
 */
export function hiddenPaths(
  rules: readonly PermissionRule[],
  tool: PermissionTool,
  subject: string,
): readonly string[] {
  const hiding = rules.filter((rule) => {
    if (rule.decision === "allow" || !concerns(rule, tool)) return false;
    return rule.decision === "deny" || rule.tool !== tool.offered.name || !matches(rule, tool, subject);
  });
  return [
    ...new Set(hiding.flatMap(({ pattern }) => (pattern === null || pattern === "*" ? [] : [pattern]))),
  ];
}

function strictestOf(decisions: readonly Decision[]): Decision | undefined {
  return decisions.toSorted((a, b) => ORDER.indexOf(a.decision) - ORDER.indexOf(b.decision))[0];
}

function decideOne(rules: readonly PermissionRule[], tool: PermissionTool, subject: string | null): Decision {
  const matching = rules.filter((rule) => matches(rule, tool, subject));
  const isOwn = (rule: PermissionRule): boolean => matchesName(rule.tool, tool.offered.name);
  const own = decideAmong(matching.filter(isOwn), tool);
  const ofOthers = matching
    .filter((rule) => !isOwn(rule))
    .map((rule): Decision => ({ decision: rule.decision, rule }));
  return strictestOf([...ofOthers, own]) ?? own;
}

function decideAmong(matching: readonly PermissionRule[], tool: PermissionTool): Decision {
  const special = matching.filter(({ pattern }) => pattern !== null);
  // A rule with a pattern goes before one without, and a `deny` before an `allow`.
  for (const decision of ORDER) {
    const rule = (special.length > 0 ? special : matching).find((one) => one.decision === decision);
    if (rule !== undefined) return { decision, rule };
  }
  return { decision: tool.isReading ? "allow" : "ask", rule: null };
}

/** permissions-4. @returns the restriction that cannot be compared with this call. */
function undecidable(rules: readonly PermissionRule[], tool: PermissionTool): PermissionRule | undefined {
  return rules.find(
    (rule) =>
      rule.decision !== "allow" && rule.pattern !== null && rule.pattern !== "*" && concerns(rule, tool),
  );
}

function matches(rule: PermissionRule, tool: PermissionTool, subject: string | null): boolean {
  if (!concerns(rule, tool)) return false;
  if (rule.pattern === null || rule.pattern === "*") return true;
  if (subject === null) return false;
  if (patternProblem(tool, rule.pattern) !== undefined) return rule.decision !== "allow"; // permissions-7.
  switch (tool.subjectKind) {
    case "command":
      return false; // `decideLine` compares the commands of a line.
    case "path":
      return isPathOf(rule, normalizeGlob(rule.pattern), normalizePath(subject));
    case "text":
      return globMatcher(rule.pattern, true)(subject);
  }
}

/** permissions-8. */
function isPathOf({ decision }: PermissionRule, glob: string, path: string): boolean {
  if (decision === "allow" && isOutside(path) && !isOutside(glob)) return false;
  return globMatcher(glob)(path);
}

/** @returns why the pattern cannot be compared with calls of the tool. */
export function patternProblem({ subjectKind }: PermissionTool, pattern: string): string | undefined {
  if (subjectKind === "command") return commandPatternOf(pattern) === undefined ? NO_COMMAND : undefined;
  const glob = subjectKind === "path" ? normalizeGlob(pattern) : pattern;
  return glob === "" ? NAMES_NOTHING : globProblem(glob);
}

const NAMES_NOTHING = "it names nothing";
const NO_COMMAND = "it is not one command of a shell, with or without :* at its end";

/**
 * The pattern that matches this main argument alone, `null` for a call without one.
 *
 * @returns nothing where no pattern can say that: for a line of several commands, and for an argument with
 *   signs that patterns use.
 */
export function exactPattern(tool: PermissionTool, subject: string | null): string | null | undefined {
  if (subject === null) return null;
  if (tool.subjectKind === "command") return exactCommand(subject);
  const exact = tool.subjectKind === "path" ? normalizePath(subject) : subject;
  return GLOB_SIGNS.test(exact) || exact === "" || exact === "/" ? undefined : exact;
}
