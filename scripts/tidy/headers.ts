// `headerName`: the rule about the name with which a source's header begins.

import type { Source, Tree, Violation } from "./tree.ts";

/** The names before the first word of a header's first line. */
const FIRST_NAMES = /^((?:`[A-Za-z_$][\w$]*`(?:, | and )?)+)/;

/**
 * A header that begins with names in backticks names what its source contains: a renamed function would leave
 * its old name there.
 */
export function headerName(tree: Tree): readonly Violation[] {
  return tree.sources.flatMap((source) => {
    const [header] = source.comments;
    if (header === undefined || source.text.slice(0, header.start).trim() !== "") return [];
    const begin = FIRST_NAMES.exec(header.value.trim())?.[1] ?? "";
    const code = codeOf(source);
    return [...begin.matchAll(/`([^`]+)`/g)]
      .map(([, name = ""]) => name)
      .filter((name) => !new RegExp(`(?<![\\w$])${name.replaceAll("$", "\\$")}(?![\\w$])`).test(code))
      .map((name) => ({
        file: source.file,
        line: 1,
        what: `the header begins with \`${name}\`, and nothing in the source has this name`,
      }));
  });
}

function codeOf({ text, comments }: Source): string {
  let code = "";
  let from = 0;
  for (const { start, end } of comments) {
    code += text.slice(from, start);
    from = end;
  }
  return code + text.slice(from);
}
