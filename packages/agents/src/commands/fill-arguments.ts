// `filledIn`: the text of a command with the arguments that a person typed, by the placeholders of its tool.
// Pure.
//
//   - Placeholders are filled in once. A text inside of an argument is never one.
//   - `$1` is the first argument. Where a text has `$0`, that one is the first, as in newer files of Claude Code.
//   - A number or a name without an argument stays as it is, because `$5` may be a price.
//   - Arguments that the text has no place for follow it.

import { FileProblem } from "../format/front-matter.ts";

/** `skill` for a skill that a person uses. */
export type CommandTool = "skill" | "claude" | "opencode" | "codex" | "gemini" | "copilot";

/** @throws FileProblem for a named argument that is missing. */
export function filledIn(text: string, tool: CommandTool, given: string): string {
  const typed = given.trim();
  let isUsed = false;
  const use = (value: string): string => {
    isUsed = true;
    return value;
  };
  const filled = FILL[tool](text, typed, use);
  return isUsed || typed === "" ? filled : `${filled}\n\nARGUMENTS: ${typed}`;
}

type Fill = (text: string, typed: string, use: (value: string) => string) => string;

/** @param isNamed Codex: `$NAME` is the argument NAME=VALUE, and `$$` a dollar. */
const dollars =
  (isNamed: boolean): Fill =>
  (text, typed, use) => {
    const words = wordsOf(typed);
    const named = isNamed ? namedIn(typed) : new Map<string, string>();
    const first = /\$0(?!\d)/.test(text) ? 0 : 1;
    return text.replaceAll(DOLLAR, (whole, place?: string, number?: string, name?: string) => {
      if (whole === "$$") return isNamed ? "$" : whole;
      if (whole === "$ARGUMENTS") return use(typed);
      const word = name === undefined ? words[Number(place ?? Number(number) - first)] : named.get(name);
      return word === undefined ? whole : use(word);
    });
  };

const DOLLAR = /\$\$|\$ARGUMENTS\b(?:\[(\d{1,2})\])?|\$(\d{1,2})(?!\d|[.,]\d)|\$([A-Z][A-Z0-9_]*)\b/g;

/** Copilot: `${input:NAME}` is the argument NAME=VALUE, or all that was typed where there is one NAME. */
const byInput: Fill = (text, typed, use) => {
  // A hint ends before the next placeholder, so that a text of beginnings alone is read once.
  const placeholder = /\$\{input:([\w-]+)(?::(?:(?!\$\{input:)[^}])*)?\}/g;
  const names = new Set([...text.matchAll(placeholder)].map(([, name]) => name));
  const named = namedIn(typed);
  return text.replaceAll(placeholder, (_whole, name: string) => {
    const value = named.get(name) ?? (names.size === 1 && typed !== "" ? typed : undefined);
    if (value === undefined)
      throw new FileProblem(`it needs the argument ${name}`, `write ${name}=VALUE behind the command`);
    return use(value);
  });
};

const FILL: Readonly<Record<CommandTool, Fill>> = {
  skill: dollars(false),
  claude: dollars(false),
  opencode: dollars(false),
  codex: dollars(true),
  gemini: (text, typed, use) => text.replaceAll("{{args}}", () => use(typed)),
  copilot: byInput,
};

/** `NAME=VALUE` among the words. */
function namedIn(typed: string): ReadonlyMap<string, string> {
  return new Map(
    wordsOf(typed).flatMap((word) => {
      const [, name, value] = /^([A-Za-z_][\w-]*)=([^]*)$/.exec(word) ?? [];
      return name === undefined || value === undefined ? [] : [[name, value] as const];
    }),
  );
}

/** The words of a line, as a shell divides them: quotes keep spaces, and do not belong to the word. */
function wordsOf(typed: string): readonly string[] {
  const words = typed.match(/(?:"[^"]*"|'[^']*'|[^\s"']|["'](?![^]*["']))+/g) ?? [];
  return words.map((word) =>
    word.replaceAll(/"([^"]*)"|'([^']*)'/g, (_all, a?: string, b?: string) => a ?? b ?? ""),
  );
}
