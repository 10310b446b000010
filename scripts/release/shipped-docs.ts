// `writeDocs`: the documents that users have offline, in the package `holdfast`.
//
//   - They are all documents of `docs`, what these link to below `docs`, and the examples without their tests.
//   - A link to a file that is not shipped becomes its words, so no link leads nowhere.
//   - `llms.txt` lists them for coding agents.

import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

/** Links of Markdown to a file: the words, the path and the place in the file. */
const LINK = /!?\[([^\][]*(?:\[[^\]]*\][^\][]*)*)\]\((?![a-z]+:)([^\s()#]+)(#[^\s()]*)?\)/g;

/** At the top of the package. */
const OWN = ["README.md", "SKILL.md"];

/** @param to the folder of the package. */
export function writeDocs(root: string, to: string): void {
  const files = shippedFiles(root);
  const write = (path: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(to, path)), { recursive: true });
    writeFileSync(join(to, path), content);
  };
  for (const path of files) {
    const content = readFileSync(join(root, path));
    write(path, path.endsWith(".md") ? withoutDeadLinks(path, content.toString(), files) : content);
    chmodSync(join(to, path), statSync(join(root, path)).mode);
  }
  for (const path of OWN) write(path, withoutDeadLinks(path, ownText(root, path), files));
  const titled = (path: string): string => {
    const title = /^# (.+)$/m.exec(readFileSync(join(to, path), "utf8"))?.[1] ?? path;
    return `- [${title}](${path})`;
  };
  const listed = (kind: RegExp): string =>
    [...files]
      .filter((path) => kind.test(path))
      .map(titled)
      .join("\n");
  const about =
    "Holdfast runs AI agents that must not lose their work: an agent is an async function, and a crash changes nothing.";
  const begin = "Read SKILL.md first. `npx holdfast docs TOPIC` shows a document without a network.";
  const docs = `${titled("SKILL.md")}\n${listed(/^docs\/[^/]+\.md$/)}`;
  const examples = listed(/^examples\/[^/]+\/README\.md$/);
  write(
    "llms.txt",
    `# Holdfast\n\n> ${about}\n\n${begin}\n\n## Docs\n\n${docs}\n\n## Examples\n\n${examples}\n`,
  );
}

/** @param path of the document. @param files that are shipped, by their paths in the same folder. */
export function withoutDeadLinks(path: string, text: string, files: ReadonlySet<string>): string {
  return text.replaceAll(LINK, (link, words: string, to: string) =>
    isShipped(posix.join(dirname(path), to), files) ? link : words,
  );
}

/** The links of a document that lead nowhere among these files. */
export function deadLinks(path: string, text: string, files: ReadonlySet<string>): readonly string[] {
  return [...text.matchAll(LINK)]
    .map(([, , to = ""]) => to)
    .filter((to) => !isShipped(posix.join(dirname(path), to), files));
}

function isShipped(path: string, files: ReadonlySet<string>): boolean {
  const folder = `${path.replace(/\/$/, "")}/`;
  return files.has(path) || [...files].some((file) => file.startsWith(folder));
}

/** A text of the package's own folder, whose links go from there. */
function ownText(root: string, path: string): string {
  return readFileSync(join(root, "packages/holdfast", path), "utf8").replaceAll("](../../", "](");
}

/** Their paths in the repository. */
function shippedFiles(root: string): ReadonlySet<string> {
  const known = tracked(root);
  const documents = known.filter((path) => /^docs\/[^/]+\.md$/.test(path));
  const texts = [
    ...documents.map((path) => [path, readFileSync(join(root, path), "utf8")] as const),
    ...OWN.map((path) => [path, ownText(root, path)] as const),
  ];
  const linked = new Set(
    texts.flatMap(([path, text]) =>
      [...text.matchAll(LINK)].map(([, , to = ""]) => posix.join(dirname(path), to)),
    ),
  );
  return new Set(
    known.filter(
      (path) =>
        documents.includes(path) ||
        (path.startsWith("docs/") && linked.has(path)) ||
        (/^examples\/.+\//.test(path) && !/\.test\.ts$|(^|\/)\.gitignore$/.test(path)),
    ),
  );
}

/** The files of the repository. Examples leave others in their folders when they run. */
function tracked(root: string): readonly string[] {
  const args = ["ls-files", "--cached", "--others", "--exclude-standard", "--", "docs", "examples"];
  const { stdout, status, error } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw error ?? new Error(`git ls-files ended with ${status}`);
  return stdout
    .split("\n")
    .filter((path) => path !== "" && existsSync(join(root, path)))
    .toSorted();
}
