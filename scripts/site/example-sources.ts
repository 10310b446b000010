// `withExampleSources`: the page of an example, with its programs below its text.

import { readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";

const SHOWN = /\.(ts|mjs|py|md|json|ya?ml|sh)$/;
const NOT_SHOWN = /\.test\.ts$|\/fixture\/|README\.md$/;

export function withExampleSources(
  root: string,
  page: string,
  text: string,
  files: readonly string[],
): string {
  const folder = `${dirname(page)}/`;
  const sources = files
    .filter((file) => file.startsWith(folder) && SHOWN.test(file) && !NOT_SHOWN.test(file))
    .map((file) => {
      const code = readFileSync(join(root, file), "utf8").trimEnd();
      // A fence of four, because agent files contain fences.
      return `### ${file.slice(folder.length)}\n\n\`\`\`\`${extname(file).slice(1)}\n${code}\n\`\`\`\`\n`;
    });
  return sources.length === 0 ? text : `${text.trimEnd()}\n\n## Its files\n\n${sources.join("\n")}`;
}
