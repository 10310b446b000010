// `highlight`: the kinds of the parts of code, for syntax colours. Loaded when code is first shown, each
// language when it is first needed.
//
//   - The result is text with the name of a kind, and the page's style sheet gives a kind its colour. The
//     page's policy forbids styles in elements, so nothing here makes HTML.
//   - Colours are only a help. An unknown language, too long a text and a failure give no kinds, and the text
//     is shown plain.

import { createHighlighterCore, type HighlighterCore } from "@shikijs/core";
import { createJavaScriptRegexEngine } from "@shikijs/engine-javascript";

/** The kinds with the scopes of TextMate grammars that they stand for. */
const KINDS = {
  comment: ["comment", "punctuation.definition.comment"],
  keyword: ["keyword", "storage", "entity.name.tag"],
  string: ["string", "markup.inline.raw"],
  constant: ["constant", "support.type.property-name", "entity.other.attribute-name"],
  function: ["entity.name.function", "support.function"],
  type: ["entity.name.type", "support.type", "support.class", "entity.name.section"],
} as const;

export type CodeKind = keyof typeof KINDS;

export interface CodePart {
  readonly text: string;
  readonly kind?: CodeKind;
}

const NAMES = Object.keys(KINDS) as readonly CodeKind[];
const THEME = "kinds";
const PLAIN = "#000000";

/** A colour that stands for a kind. No screen ever shows it. */
function colourOf(at: number): string {
  return `#0000${String(at + 1).padStart(2, "0")}`;
}

const LANGUAGES = {
  c: () => import("@shikijs/langs/c"),
  css: () => import("@shikijs/langs/css"),
  go: () => import("@shikijs/langs/go"),
  html: () => import("@shikijs/langs/html"),
  java: () => import("@shikijs/langs/java"),
  javascript: () => import("@shikijs/langs/javascript"),
  json: () => import("@shikijs/langs/json"),
  python: () => import("@shikijs/langs/python"),
  rust: () => import("@shikijs/langs/rust"),
  shellscript: () => import("@shikijs/langs/shellscript"),
  sql: () => import("@shikijs/langs/sql"),
  toml: () => import("@shikijs/langs/toml"),
  tsx: () => import("@shikijs/langs/tsx"),
  typescript: () => import("@shikijs/langs/typescript"),
  yaml: () => import("@shikijs/langs/yaml"),
} as const;

type Language = keyof typeof LANGUAGES;

/** Other names: ends of file names, and words behind the fence of Markdown. */
const ALIASES: Readonly<Record<string, Language>> = {
  h: "c",
  // The grammar of C++ is as large as all others together.
  cc: "c",
  cpp: "c",
  hpp: "c",
  htm: "html",
  svg: "html",
  xml: "html",
  js: "javascript",
  cjs: "javascript",
  mjs: "javascript",
  jsx: "tsx",
  jsonc: "json",
  jsonl: "json",
  py: "python",
  rs: "rust",
  bash: "shellscript",
  sh: "shellscript",
  shell: "shellscript",
  zsh: "shellscript",
  ts: "typescript",
  cts: "typescript",
  mts: "typescript",
  yml: "yaml",
};

const CHARS_MAX = 100_000;
const LINES_MAX = 2_000;
/** A longer line has no kinds. */
const LINE_CHARS_MAX = 2_000;
/** The rest of a line that takes longer keeps the kind that was found last. The first line compiles the grammar. */
const LINE_MS_MAX = 3_000;

let loading: Promise<HighlighterCore> | undefined;

/** @param name a language, or the end of a file's name. @returns the parts of each line; `undefined` for none. */
export async function highlight(
  name: string,
  lines: readonly string[],
): Promise<readonly (readonly CodePart[])[] | undefined> {
  const language = languageOf(name);
  const length = lines.reduce((sum, line) => sum + line.length, 0);
  if (language === undefined || length > CHARS_MAX || lines.length > LINES_MAX) return undefined;
  try {
    loading ??= createHighlighterCore({
      themes: [
        {
          name: THEME,
          settings: [
            { settings: { foreground: PLAIN, background: PLAIN } },
            ...NAMES.map((kind, at) => ({
              scope: [...KINDS[kind]],
              settings: { foreground: colourOf(at) },
            })),
          ],
        },
      ],
      langs: [],
      engine: createJavaScriptRegexEngine({ forgiving: true }),
    });
    const highlighter = await loading;
    await highlighter.loadLanguage(LANGUAGES[language]);
    const tokens = highlighter.codeToTokensBase(lines.join("\n"), {
      lang: language,
      theme: THEME,
      tokenizeMaxLineLength: LINE_CHARS_MAX,
      tokenizeTimeLimit: LINE_MS_MAX,
    });
    if (tokens.length !== lines.length) return undefined;
    return tokens.map((line) =>
      line.map(({ content, color }) => {
        const kind = NAMES.find((_, at) => colourOf(at) === color);
        return { text: content, ...(kind === undefined ? {} : { kind }) };
      }),
    );
  } catch {
    return undefined;
  }
}

function languageOf(name: string): Language | undefined {
  const lower = name.toLowerCase();
  if (Object.hasOwn(LANGUAGES, lower)) return lower as Language;
  return Object.hasOwn(ALIASES, lower) ? ALIASES[lower] : undefined;
}
