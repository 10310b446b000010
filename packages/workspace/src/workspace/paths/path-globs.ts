// Globs of paths and of other texts, as permission rules write them (`globMatcher`, `pathFilter`).
//
//   path-globs-1. A match costs at most the length of the glob times that of the text, whatever stars the
//       glob has. All places of the glob that the text can lead to are kept beside each other, so no star is
//       tried again.
//   path-globs-2. A glob has `*` and `?` within a name, `**` for any folders, `[a-z]`, `[!a-z]` and `{a,b}`.
//       A backslash stands before a sign that means itself. Names that begin with a dot are names like
//       others. A glob with anything more has a problem (`globProblem`).

import { posix } from "node:path";

/** The characters with a meaning in globs. */
export const GLOB_SIGNS = /[*?[\]{}()!+@|\\]/;

/** A path as rules see it: without steps that lead nowhere, and without a slash at its end. */
export function normalizePath(path: string): string {
  return posix.normalize(path).replace(/(?<=.)\/$/, "");
}

/** A slash at the end stands for all below a folder. */
export function normalizeGlob(pattern: string): string {
  const relative = pattern.replace(/^(\.\/+)+/, "");
  if (relative.endsWith("/")) return `${relative}**`;
  return relative === "" || GLOB_SIGNS.test(relative) ? relative : normalizePath(relative);
}

/** Whether a path leads out of the folder that relative paths begin in. */
export function isOutside(path: string): boolean {
  return /^(\/|\.\.(\/|$))/.test(path);
}

/** @returns whether one of the patterns matches a path or a folder above it. A pattern that cannot be used matches all. */
export function pathFilter(patterns: readonly string[]): (path: string) => boolean {
  const matchers = patterns.map(matcherOf);
  const known = new Map<string, boolean>();
  const isMatch = (path: string): boolean => {
    const found = known.get(path);
    if (found !== undefined) return found;
    const above = posix.dirname(path);
    const isFound = matchers.some((matches) => matches(path)) || (above !== path && isMatch(above));
    known.set(path, isFound);
    return isFound;
  };
  return (path) => patterns.length > 0 && isMatch(normalizePath(path));
}

function matcherOf(pattern: string): (path: string) => boolean {
  const glob = normalizeGlob(pattern);
  return glob === "" || globProblem(glob) !== undefined ? () => true : globMatcher(glob);
}

const GLOB_CHARS_MAX = 500;
const ALTERNATIVES_MAX = 100;

/** @returns why a glob cannot be used. */
export function globProblem(glob: string): string | undefined {
  const read = readGlob(glob, false);
  return typeof read === "string" ? read : undefined;
}

/**
 * @param crossesFolders whether stars match slashes, for texts that are no paths.
 * @returns whether a text matches. A glob with a problem matches nothing.
 */
export function globMatcher(glob: string, crossesFolders = false): (text: string) => boolean {
  if (!GLOB_SIGNS.test(glob)) return (text) => text === glob;
  const read = readGlob(glob, crossesFolders);
  if (typeof read === "string") return () => false;
  return (text) => read.some((tokens) => matchesTokens(tokens, text));
}

/** A part of a glob: one sign that a test accepts, or any number of them. */
interface Token {
  readonly accepts: (char: string) => boolean;
  readonly isRepeated: boolean;
  /** It takes no sign: the token behind it follows, or the one so many places further. */
  readonly jumps?: number;
}

const ANY: Token = { accepts: () => true, isRepeated: true };
const SLASH: Token = { accepts: (char) => char === "/", isRepeated: false };
const JUMP: Token = { accepts: () => false, isRepeated: false, jumps: 3 };

/** The tokens of each alternative, or the problem of the glob. */
function readGlob(glob: string, crossesFolders: boolean): readonly (readonly Token[])[] | string {
  if (glob.length > GLOB_CHARS_MAX) return `it has more than ${GLOB_CHARS_MAX} characters`;
  if (glob.startsWith("!")) return "a glob of all others is not read; write a rule for the paths themselves";
  if (/[?*+@!]\(|\([^)]*\|/.test(glob)) return "groups in parentheses are not read; write {a,b}";
  const alternatives = alternativesOf(glob);
  if (typeof alternatives === "string") return alternatives;
  const read = alternatives.map((one) => tokensOf(one, crossesFolders));
  return read.find((one) => typeof one === "string") ?? (read as Token[][]);
}

/** The globs without braces that a glob stands for. */
function alternativesOf(glob: string): readonly string[] | string {
  let done: string[] = [];
  let open = [glob];
  while (open.length > 0) {
    const next: string[] = [];
    for (const one of open) {
      const braces = firstBraces(one);
      if (braces === undefined) done = [...done, one];
      else if (typeof braces === "string") return braces;
      else next.push(...braces.inner.map((inner) => `${braces.before}${inner}${braces.after}`));
    }
    if (done.length + next.length > ALTERNATIVES_MAX)
      return `it stands for more than ${ALTERNATIVES_MAX} globs`;
    open = next;
  }
  return done;
}

interface Braces {
  readonly before: string;
  readonly inner: readonly string[];
  readonly after: string;
}

function firstBraces(glob: string): Braces | string | undefined {
  let depth = 0;
  let start = -1;
  let commas: number[] = [];
  for (let at = 0; at < glob.length; at += 1) {
    const char = glob[at];
    if (char === "\\") at += 1;
    else if (char === "{") {
      if (depth === 0) start = at;
      depth += 1;
    } else if (char === "," && depth === 1) commas = [...commas, at];
    else if (char === "}" && depth > 0) {
      depth -= 1;
      if (depth > 0) continue;
      if (commas.length === 0) return "braces without a comma are not read; write {a,b}";
      const ends = [start, ...commas, at];
      const inner = ends.slice(1).map((end, index) => glob.slice((ends[index] ?? 0) + 1, end));
      return { before: glob.slice(0, start), inner, after: glob.slice(at + 1) };
    }
  }
  return depth > 0 ? "a brace has no end" : undefined;
}

function tokensOf(glob: string, crossesFolders: boolean): readonly Token[] | string {
  const inName = (char: string): boolean => crossesFolders || char !== "/";
  const tokens: Token[] = [];
  for (let at = 0; at < glob.length; at += 1) {
    const char = glob.charAt(at);
    const rest = glob.slice(at);
    const stars = /^\*+/.exec(rest)?.[0].length ?? 0;
    const beginsName = at === 0 || glob[at - 1] === "/";
    if (stars === 2 && beginsName && /^\*\*(\/|$)/.test(rest)) {
      // Before a name it is any folders or none. At the end it is also the folder before it, where its name
      // is written out.
      if (at + 2 < glob.length) tokens.push(JUMP, ANY, SLASH);
      else if (tokens.length === 0 || /[*?\]]\/$/.test(glob.slice(0, at))) tokens.push(ANY);
      else tokens.splice(-1, 1, JUMP, SLASH, ANY);
      at += 2;
    } else if (stars > 0) {
      const fillsName = beginsName && /^\*+(\/|$)/.test(rest);
      if (fillsName && !crossesFolders) tokens.push({ accepts: inName, isRepeated: false });
      tokens.push({ accepts: inName, isRepeated: true });
      at += stars - 1;
    } else if (char === "?") tokens.push({ accepts: inName, isRepeated: false });
    else if (char === "[") {
      const read = classAt(rest);
      if (typeof read === "string") return read;
      tokens.push({ accepts: (one) => inName(one) && read.accepts(one), isRepeated: false });
      at += read.length - 1;
    } else {
      if (char === "\\") at += 1;
      const wanted = char === "\\" ? glob.charAt(at) : char;
      if (wanted === "") return "a backslash at its end means nothing";
      tokens.push({ accepts: (one) => one === wanted, isRepeated: false });
    }
  }
  return tokens;
}

/** `[a-z]` at the beginning of a text. */
function classAt(text: string): { accepts: (char: string) => boolean; length: number } | string {
  const [whole, not, members = ""] = /^\[([!^]?)(\]?[^\]]*)\]/.exec(text) ?? [];
  if (whole === undefined || members === "") return "a bracket has no end";
  if (members.includes("[:") || members.includes("\\")) return `the bracket ${whole} is not read`;
  const ranges = [...members.matchAll(/([^])-([^])|([^])/g)].map(
    ([, from, to, one]) => [from ?? one ?? "", to ?? one ?? ""] as const,
  );
  if (ranges.some(([from, to]) => from > to)) return `the bracket ${whole} has no such range`;
  const has = (char: string): boolean => ranges.some(([from, to]) => from <= char && char <= to);
  return { accepts: (char) => has(char) !== (not !== ""), length: whole.length };
}

/** path-globs-1. */
function matchesTokens(tokens: readonly Token[], text: string): boolean {
  let places = new Set<number>();
  const enter = (at: number, into: Set<number>): void => {
    for (let next = at; !into.has(next); next += 1) {
      into.add(next);
      const token = tokens[next];
      if (token?.jumps !== undefined) enter(next + token.jumps, into);
      else if (token?.isRepeated !== true) return;
    }
  };
  enter(0, places);
  for (let at = 0; at < text.length; at += 1) {
    const after = new Set<number>();
    for (const place of places) {
      const token = tokens[place];
      if (token?.accepts(text.charAt(at)) === true) enter(token.isRepeated ? place : place + 1, after);
    }
    if (after.size === 0) return false;
    places = after;
  }
  return places.has(tokens.length);
}
