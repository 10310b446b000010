// Rules that hold documents and code together: contract clauses, promises, links, decisions, the change log,
// the command's help.

import { existsSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { numberedAnchors } from "../site/anchors.ts";
import { testsIn } from "./sentences.ts";
import { child, nameOf, type Source, type Tree, type Violation } from "./tree.ts";

/** The document that defines the promises, each by one item of a list. */
export const PROMISES = "docs/internals/promises.md";

const CLAUSE = /^\s*\*\s+([A-Z]{1,4}\d+[a-z]?)\.\s/;
const PATH_IN_BACKTICKS = /`((?:packages|scripts|bench|examples|histories|docs)\/[\w./@-]+)`/g;
const DECISION_FILE = /^docs\/decisions\/((\d{4})-[^/]+\.md)$/;
const DECISION_ROW = /^- \[(.*)\]\(([^()]+)\)/;
const CLAUSES_OF_A_TEST = /^([A-Z]{1,4}\d+[a-z]?(?:, [A-Z]{1,4}\d+[a-z]?)*): /;

/** A clause in a port's doc comment is the name of a conformance test, and such a test proves a clause. */
export function clausesHaveTests(tree: Tree): readonly Violation[] {
  const clauses = new Map<string, { file: string; line: number }>();
  for (const source of tree.sources.filter(({ file }) =>
    /^packages\/core\/src\/ports\/[^/]+\.ts$/.test(file),
  )) {
    for (const { clause, line } of clausesIn(source)) clauses.set(clause, { file: source.file, line });
  }
  const unproven = new Set(clauses.keys());
  const violations: Violation[] = [];
  for (const source of tree.sources.filter(({ file }) =>
    /^packages\/testkit\/src\/.*conformance.*\.ts$/.test(file),
  )) {
    for (const { name, line } of testsIn(source).filter(({ kind }) => kind === "test")) {
      const named = CLAUSES_OF_A_TEST.exec(name)?.[1]?.split(", ") ?? [];
      const unknown = named.filter((clause) => !clauses.has(clause));
      for (const clause of named) unproven.delete(clause);
      if (named.length === 0) {
        violations.push({ file: source.file, line, what: `"${name}" names no clause, as in "ST1: …"` });
      } else if (unknown.length > 0) {
        violations.push({ file: source.file, line, what: `no port has a clause ${unknown.join(", ")}` });
      }
    }
  }
  for (const clause of unproven) {
    violations.push({ ...clauses.get(clause)!, what: `no conformance test is named "${clause}: …"` });
  }
  return violations;
}

/** Each promise names the sources that enforce it and tests that prove it: files that exist. */
export function promisesPointAtFiles(tree: Tree): readonly Violation[] {
  return promisesIn(tree).flatMap(({ label, line, text }) => {
    const missing = pathsIn(text).filter((path) => !tree.files.includes(path));
    const tests = pathsIn(text.split(" - tests: ")[1] ?? "");
    if (tests.length > 0 && missing.length === 0) return [];
    const what =
      missing.length > 0
        ? `${label} names ${missing.join(", ")}, which is not there`
        : `${label} names no test`;
    return [{ file: PROMISES, line, what }];
  });
}

/** The promises by their items, each with the lines below that name its sources and tests. */
export function promisesIn(
  tree: Tree,
): { readonly label: string; readonly line: number; readonly text: string }[] {
  const lines = (tree.read(PROMISES) ?? "").split("\n");
  return lines.flatMap((first, index) => {
    const label = /^- \*\*([A-Z]{1,2}\d+[a-z]?)\.\*\* /.exec(first)?.[1];
    if (label === undefined) return [];
    const below = lines.slice(index + 1);
    const end = below.findIndex((line) => !line.startsWith("  "));
    const text = [first, ...below.slice(0, end < 0 ? undefined : end)].join("\n");
    return [{ label, line: index + 1, text }];
  });
}

function pathsIn(text: string): readonly string[] {
  return text.match(/[\w.@-]+(?:\/[\w.@*-]+)+\.\w+/g) ?? [];
}

/**
 * A link of a document leads to a file or folder that is there, and to a heading of it. A path in backticks
 * is there, too, except in decisions and in the change log, which say how things were. NAME in a path stands
 * for the name of a new file.
 */
export function documentLinks(tree: Tree): readonly Violation[] {
  return tree.files.filter(isDocument).flatMap((file) => {
    const isHistory = /^docs\/decisions\/\d|^CHANGELOG\.md$/.test(file);
    return linesOfProse(tree.read(file) ?? "").flatMap((text, index) => {
      const links = [...text.replaceAll(/`[^`]*`/g, "").matchAll(/\]\(([^()\s]+)\)/g)]
        .map(([, target]) => target!)
        .filter((target) => !/^[a-z]+:/.test(target) && !leadsSomewhere(tree, file, target));
      const paths = [...text.matchAll(PATH_IN_BACKTICKS)]
        .map(([, path]) => path!)
        .filter((path) => !isHistory && !/\bNAME\b/.test(path) && !existsSync(join(tree.root, path)));
      return [...links, ...paths].map((missing) => ({
        file,
        line: index + 1,
        what: `names ${missing}, which is not there`,
      }));
    });
  });
}

/** The index of the decisions has each document once, by the number and the title that stand in the document. */
export function decisionIndex(tree: Tree): readonly Violation[] {
  const index = "docs/decisions/README.md";
  const rows = (tree.read(index) ?? "").split("\n").map((row) => DECISION_ROW.exec(row));
  return tree.files
    .filter((file) => DECISION_FILE.test(file))
    .flatMap((file) => {
      const [, name, number] = DECISION_FILE.exec(file)!;
      const [title = ""] = (tree.read(file) ?? "").split("\n");
      if (!title.startsWith(`# ${Number(number)}. `))
        return [{ file, line: 1, what: `the heading is "${title}" and not "# ${Number(number)}. TITLE"` }];
      const shown = rows.filter((row) => row?.[2] === name).map((row) => row?.[1]);
      if (shown.length === 1 && shown[0] === title.slice(2)) return [];
      const what = shown.length === 1 ? `calls ${name} "${shown[0]}"` : `has ${name} ${shown.length} times`;
      return [{ file: index, what: `${what}: it needs one line "- [${title.slice(2)}](${name})"` }];
    });
}

/** The unreleased changes stand on top, so that nobody forgets them at the release. */
export function changelogShape(tree: Tree): readonly Violation[] {
  const file = "CHANGELOG.md";
  const text = tree.read(file);
  const first = text?.split("\n").find((line) => line.startsWith("## "));
  if (text === undefined || first === "## Unreleased") return [];
  return [
    {
      file,
      what: `the first section is ${first === undefined ? "missing" : `"${first}"`}, not "## Unreleased"`,
    },
  ];
}

/** Help that shows how a command is called is written with the command. */
export function commandsHaveHelp(tree: Tree): readonly Violation[] {
  return tree.sources
    .filter(
      ({ file, isTest }) =>
        /^packages\/holdfast\/src\/commands\/(?!index\.ts)[^/]+\.ts$/.test(file) && !isTest,
    )
    .flatMap((source) => {
      const keys = new Set<string>();
      source.walk((node) => {
        if (node.type === "Property") keys.add(nameOf(child(node, "key")) ?? "");
      });
      return keys.has("examples") ? [] : [{ file: source.file, what: "the command has no examples" }];
    });
}

export function clausesIn(source: Source): { clause: string; line: number }[] {
  return source.comments
    .filter(({ type, value }) => type === "Block" && value.startsWith("*"))
    .flatMap(({ value, start }) =>
      value.split("\n").flatMap((text, index) => {
        const clause = CLAUSE.exec(text)?.[1];
        return clause === undefined ? [] : [{ clause, line: source.lineAt(start) + index }];
      }),
    );
}

/** Documents of this repository for its readers. Histories and fixtures are inputs of tests. */
function isDocument(file: string): boolean {
  return file.endsWith(".md") && !/(^|\/)(fixtures?|histories)\//.test(file);
}

/** The lines of a document, with those of its code blocks empty. */
function linesOfProse(text: string): readonly string[] {
  return text.replaceAll(/^```.*?^```/gms, (block) => block.replaceAll(/[^\n]/g, "")).split("\n");
}

function leadsSomewhere(tree: Tree, file: string, target: string): boolean {
  const [path = "", anchor] = target.split("#");
  const to = path === "" ? file : join(dirname(file), path);
  if (anchor === undefined || !to.endsWith(".md")) return existsSync(join(tree.root, to));
  const headings = (tree.read(to) ?? "").matchAll(/^#+ (.+)$/gm);
  return numberedAnchors([...headings].map(([, heading]) => heading!)).includes(anchor);
}
