// Decides whether a tool call runs, is asked for, or is refused. Pure.
//
//   permissions-1. A rule never permits more than it says. An `allow` for a command matches only a line that runs this command and nothing
//       else. A line with an operator of the shell (`;`, `|`, `&&`, `$(`, a redirection) matches no such rule.
//   permissions-2. The commands of a line are decided one by one, and the strictest decision counts.
//   permissions-3. The rules with a pattern decide before the rules without one. Among these a `deny` that matches wins over an `ask`, which
//       wins over an `allow`, whatever their order. The pattern `*` matches every call.
//   permissions-4. Without a subject no pattern can be compared. A `deny` or an `ask` with a pattern then asks a person, and an `allow` with a
//       pattern permits nothing.
//   permissions-5. The rules of the agent decide first. The rules that people gave by answers decide what these would ask for, and can only
//       forbid what these allow.
//   permissions-6. A pattern without a sign of globs matches exactly itself. The exact pattern of a call (`exactPattern`) matches this call alone.
//       White space inside of quotes is a part of a command.
//   permissions-7. A pattern that cannot be used (`patternProblem`) permits nothing. In a `deny` or an `ask` it counts as matching.
//   permissions-8. A path is decided as it was given and as the place that its links lead to, and the stricter decision counts. A path that leads
//       out of the folder matches no `allow` with a relative pattern.
//   permissions-9. The results of a tool for whole folders leave out what a rule of the tool forbids or asks for (`hiddenPaths`), with all below. Tools
//       that show contents also hide what `read_file` may not read.
//
// A rule for commands is a help and no boundary: `sh -c` and scripts can hide a command from it. A sandbox is the boundary.

import picomatch from "picomatch";

import type { PermissionDecision, PermissionRule } from "../../agent-files/agent-record.ts";
import { matchesName } from "../../agent-files/format/tool-names.ts";
import { GLOB_SIGNS, isOutside, normalizeGlob, normalizePath } from "../../tasks/path-globs.ts";
import type { Tool } from "../tools/tool.ts";

/** The parts of a tool that a decision needs. */
export interface PermissionTool extends Pick<Tool, "isReading" | "subjectKind"> {
  readonly offered: { readonly name: string };
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
  // permissions-1.
  const usable = OPERATORS.test(subject)
    ? rules.filter(({ decision, pattern }) => decision !== "allow" || pattern === null)
    : rules;
  const decisions = commandsOf(subject).map((command) => decideOne(usable, tool, command));
  // permissions-2.
  return strictestOf(decisions) ?? decideOne(usable, tool, subject);
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
  const second = decide(given, tool, subject);
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

/** Whether a rule compares the subjects of this tool's calls. */
export function hasPattern(rules: readonly PermissionRule[], { offered }: PermissionTool): boolean {
  return rules.some(
    ({ tool, pattern }) => pattern !== null && pattern !== "*" && matchesName(tool, offered.name),
  );
}

/**
 * The patterns of paths that are left out of the results of this call (permissions-9). An `ask` that the call itself matches was answered.
 */
export function hiddenPaths(
  rules: readonly PermissionRule[],
  tool: PermissionTool,
  subject: string,
): readonly string[] {
  const showsContents = ["search", "git_diff"].includes(tool.offered.name);
  const hiding = rules.filter((rule) => {
    if (rule.decision === "allow") return false;
    if (!matchesName(rule.tool, tool.offered.name))
      return showsContents && matchesName(rule.tool, "read_file");
    return rule.decision === "deny" || !matches(rule, tool, subject);
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
  const special = matching.filter(({ pattern }) => pattern !== null);
  // permissions-3.
  for (const decision of ORDER) {
    const rule = (special.length > 0 ? special : matching).find((one) => one.decision === decision);
    if (rule !== undefined) return { decision, rule };
  }
  return { decision: tool.isReading ? "allow" : "ask", rule: null };
}

/** permissions-4. @returns the restriction that cannot be compared with this call. */
function undecidable(rules: readonly PermissionRule[], tool: PermissionTool): PermissionRule | undefined {
  return rules.find(
    ({ decision, pattern, tool: name }) =>
      decision !== "allow" && pattern !== null && pattern !== "*" && matchesName(name, tool.offered.name),
  );
}

function matches(rule: PermissionRule, tool: PermissionTool, subject: string | null): boolean {
  if (!matchesName(rule.tool, tool.offered.name)) return false;
  if (rule.pattern === null || rule.pattern === "*") return true;
  if (subject === null) return false;
  if (patternProblem(tool, rule.pattern) !== undefined) return rule.decision !== "allow"; // permissions-7.
  switch (tool.subjectKind) {
    case "command":
      return isCommand(rule.pattern, subject);
    case "path":
      return isPathOf(rule, normalizeGlob(rule.pattern), normalizePath(subject));
    case "text":
      return isGlobOf(rule.pattern, subject, { bash: true });
  }
}

/** permissions-8. */
function isPathOf({ decision }: PermissionRule, glob: string, path: string): boolean {
  if (decision === "allow" && isOutside(path) && !isOutside(glob)) return false;
  return isGlobOf(glob, path, {});
}

/** permissions-6. */
function isGlobOf(pattern: string, subject: string, options: picomatch.PicomatchOptions): boolean {
  return GLOB_SIGNS.test(pattern)
    ? picomatch.isMatch(subject, pattern, { ...options, dot: true })
    : pattern === subject;
}

/** @returns why the pattern cannot be compared with calls of the tool. */
export function patternProblem({ subjectKind }: PermissionTool, pattern: string): string | undefined {
  if (subjectKind === "command")
    return wordsOf(pattern.replace(/:\*$/, "")) === "" ? NAMES_NOTHING : undefined;
  const glob = subjectKind === "path" ? normalizeGlob(pattern) : pattern;
  if (glob === "") return NAMES_NOTHING;
  try {
    if (GLOB_SIGNS.test(glob)) picomatch.makeRe(glob, { dot: true, debug: true });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const NAMES_NOTHING = "it names nothing";

/**
 * The pattern that matches this main argument alone, `null` for a call without one.
 *
 * @returns nothing where no pattern can say that: for a line of several commands, and for an argument with signs that patterns use.
 */
export function exactPattern(tool: PermissionTool, subject: string | null): string | null | undefined {
  if (subject === null) return null;
  if (tool.subjectKind === "command") {
    const words = wordsOf(subject);
    return OPERATORS.test(subject) || words === "" || /:\*$|^\*$/.test(words) ? undefined : words;
  }
  const exact = tool.subjectKind === "path" ? normalizePath(subject) : subject;
  return GLOB_SIGNS.test(exact) || exact === "" || exact === "/" ? undefined : exact;
}

/** The characters that make a line of a shell more than the words of one command. */
const OPERATORS = /[;&|<>`\n\r(){}]|\$\(/;

function commandsOf(line: string): readonly string[] {
  return line.split(/[;&|<>`\n\r(){}]+|\$\(/).filter((command) => wordsOf(command) !== "");
}

/** `git diff:*` is `git diff` with any arguments; without `:*` the whole line must be equal. */
function isCommand(pattern: string, command: string): boolean {
  const words = wordsOf(command);
  if (!pattern.endsWith(":*")) return words === pattern;
  const prefix = pattern.slice(0, -2);
  return words === prefix || words.startsWith(`${prefix} `);
}

/** A line with one space between its words. Other white space than blanks and tabs is a part of a word for a shell. */
function wordsOf(line: string): string {
  return line
    .replace(QUOTED_OR_SPACE, (part) => (/^[ \t\n]/.test(part) ? " " : part))
    .replace(/^ | (?<!\\ )$/g, "");
}

/** Text in quotes, a character behind a backslash, or white space between words. */
const QUOTED_OR_SPACE = /"(?:\\[^]|[^"\\])*"|'[^']*'|\\[^]|[ \t\n]+/g;
