// Labels of promises, clauses and rules: `K2`, `ST7`, `claiming-2`.
//
//   - A bare label (letters and a number) is a promise of docs/internals/promises.md or a clause of a port,
//     and nothing else.
//   - A rule of one source has a label only where another file cites it. Other rules are sentences of a list.
//   - Such a label has the source's name as its prefix. Where two sources have that name, the name of a
//     folder above the source stands before it: `postgres-rows-1`.
//   - Each label is defined once, and each citation has a definition.
//
// The header of a source may restate a promise under its bare label when the promise names the source.

import { clausesIn, PROMISES, promisesIn } from "./documents.ts";
import { testsIn } from "./sentences.ts";
import type { Source, Tree, Violation } from "./tree.ts";

interface Definition {
  readonly label: string;
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

const BARE = /(?<![\w.$/`-])[A-Z]{1,2}\d{1,2}[a-z]?(?![\w`-])/g;
/** A line of a list in a comment that begins with a label defines it. */
const DEFINED = /^\s{2,}([A-Z]{1,2}\d{1,2}[a-z]?|[a-z][a-z0-9-]*-\d+[a-z]?)\.\s/;
const DEFINED_IN_BLOCK = new RegExp(`^\\s*\\*${DEFINED.source.slice(1)}`);

const PREFIXED = "[a-z][a-z0-9]*(?:-[a-z0-9]+)*-\\d+[a-z]?";
/**
 * Labels that a line begins with, or that stand alone in parentheses, are citations, even when no source has
 * their prefix any more. Elsewhere a word such as `sha-256` has the form of a label.
 */
const CITED = new RegExp(
  `^[\\s*]*(${PREFIXED}(?:, ${PREFIXED})*)[.:](?=\\s|$)|\\((${PREFIXED}(?:(?:, | and )${PREFIXED})*)\\)`,
  "g",
);

/** Words that have the form of a label: an engine, sets of control characters, a library. */
const NO_LABELS: ReadonlySet<string> = new Set(["V8", "C0", "C1", "RE2"]);
/** Workloads of the benchmark have names like labels. */
const WORKLOAD = /^W\d+$/;

export function labelUnique(tree: Tree): readonly Violation[] {
  const promises = promisesIn(tree);
  const clauses = tree.sources
    .filter(({ file }) => isPort(file))
    .flatMap((source) => clausesIn(source).map(({ clause, line }) => at(source.file, line, clause)));
  const local = tree.sources
    .flatMap(definitionsIn)
    .filter(({ label, file }) => !clauses.some((clause) => clause.label === label && clause.file === file));
  const shared = [...promises.map(({ label, line, text }) => at(PROMISES, line, label, text)), ...clauses];
  const enforcedIn = (label: string, file: string): boolean =>
    promises.some((promise) => promise.label === label && promise.text.includes(`\`${file}\``));

  const bare = local.filter(({ label, file }) => isBare(label) && !enforcedIn(label, file));
  const prefixed = local.filter(({ label }) => !isBare(label));
  const known = new Set([...shared, ...prefixed].map(({ label }) => label));
  const bareIn = new Set(bare.map(({ label, file }) => `${label} ${file}`));
  const prefixes = new Set(prefixed.map(({ label }) => prefixOf(label)));
  const citations = citationsIn(tree, prefixes);
  const unresolved = citations.filter(
    ({ label, file }) =>
      !known.has(label) && !bareIn.has(`${label} ${file}`) && !bareIn.has(`${label} ${testedBy(file)}`),
  );
  return [
    ...repeated([...shared, ...prefixed]).map((found) => offence(found, `${found.label} is defined twice`)),
    ...bare.map((found) =>
      offence(found, `${found.label} is no promise of this source: name it ${stemOf(found.file)}-N`),
    ),
    ...prefixed
      .filter(({ label, file }) => !isPrefix(prefixOf(label), file))
      .map((found) => offence(found, `${found.label} has not the name of its source as prefix`)),
    ...prefixed
      .filter(({ label, file }) => !citations.some((each) => each.label === label && each.file !== file))
      .map((found) => offence(found, `no other file cites ${found.label}: write the rule without a label`)),
    ...unresolved.map((found) => offence(found, `${found.label} is defined nowhere`)),
  ];
}

function definitionsIn(source: Source): Definition[] {
  return linesOfComments(source).flatMap(({ text, line, isBlock, isAlone }) => {
    const label = isAlone ? (isBlock ? DEFINED_IN_BLOCK : DEFINED).exec(text)?.[1] : undefined;
    return label === undefined ? [] : [at(source.file, line, label, text)];
  });
}

/** Labels in comments, documents and names of tests and mutants, where they are not defined. */
function citationsIn(tree: Tree, prefixes: ReadonlySet<string>): Definition[] {
  const names = [...prefixes].toSorted((a, b) => b.length - a.length).join("|");
  const prefixed =
    names === "" ? undefined : new RegExp(`(?<![\\w./-])(?:${names})-\\d+[a-z]?(?![\\w-])`, "g");
  const labelsIn = (text: string, file: string): string[] =>
    [
      ...new Set([
        ...[...text.matchAll(BARE), ...(prefixed === undefined ? [] : text.matchAll(prefixed))].map(
          ([label]) => label,
        ),
        ...[...text.matchAll(CITED)].flatMap(([, first, inner]) => (first ?? inner ?? "").split(/, | and /)),
      ]),
    ].filter((label) => !NO_LABELS.has(label) && !(file.startsWith("bench/") && WORKLOAD.test(label)));
  const inSources = tree.sources.flatMap((source) => [
    ...linesOfComments(source).flatMap(({ text, line }) =>
      labelsIn(text, source.file).map((label) => at(source.file, line, label, text)),
    ),
    ...namesIn(source).flatMap(({ name, line }) => {
      const labels = /^(?:[A-Za-z0-9-]+(?:, )?)+(?=: |$)/.exec(name)?.[0] ?? "";
      const behind = name.match(/\([a-z0-9, -]+\)/g) ?? [];
      return labelsIn(`${labels}: ${behind.join(" ")}`, source.file).map((label) =>
        at(source.file, line, label, name),
      );
    }),
  ]);
  const inDocuments = tree.files
    .filter((file) => /^(ARCHITECTURE|docs\/.*)\.md$/.test(file))
    .flatMap((file) =>
      (tree.read(file) ?? "")
        .split("\n")
        .flatMap((text, index) => labelsIn(text, file).map((label) => at(file, index + 1, label, text))),
    );
  return [...inSources, ...inDocuments];
}

/** Names of tests, and texts of the form `LABEL: sentence`, such as the names of mutants. */
function namesIn(source: Source): { readonly name: string; readonly line: number }[] {
  const names = testsIn(source).map(({ name, line }) => ({ name, line }));
  const tests = new Set(names.map(({ name }) => name));
  source.walk((node) => {
    const value = node.type === "Literal" ? node["value"] : undefined;
    if (typeof value === "string" && !tests.has(value) && /^[A-Za-z0-9, -]+: /.test(value)) {
      names.push({ name: value, line: source.lineAt(node.start) });
    }
  });
  return names;
}

function linesOfComments(source: Source) {
  return source.comments.flatMap(({ type, value, start }) => {
    const before = source.text.slice(source.text.lastIndexOf("\n", start - 1) + 1, start);
    const first = source.lineAt(start);
    return value.split("\n").map((text, index) => ({
      text,
      line: first + index,
      isBlock: type === "Block",
      isAlone: index > 0 || before.trim() === "",
    }));
  });
}

/** Every definition but the first of its label. */
function repeated(definitions: readonly Definition[]): Definition[] {
  const seen = new Set<string>();
  return definitions.filter(({ label }) => seen.size === seen.add(label).size);
}

function isBare(label: string): boolean {
  return /^[A-Z]/.test(label);
}

function isPort(file: string): boolean {
  return /^packages\/core\/src\/ports\/[^/]+\.ts$/.test(file);
}

function isPrefix(prefix: string, file: string): boolean {
  const stem = stemOf(file);
  return (
    prefix === stem ||
    file
      .split("/")
      .slice(0, -1)
      .some((folder) => prefix === `${folder}-${stem}`)
  );
}

function prefixOf(label: string): string {
  return label.replace(/-\d+[a-z]?$/, "");
}

/** The name of a source; that of an index is its folder's. */
function stemOf(file: string): string {
  return file
    .replace(/\/index\.\w+$/, "")
    .replace(/^.*\//, "")
    .replace(/\..*$/, "");
}

/** The source whose test this file is. */
function testedBy(file: string): string {
  return file.replace(/\.test\.ts$/, ".ts");
}

function at(file: string, line: number, label: string, text = ""): Definition {
  return { label, file, line, text };
}

function offence({ file, line, text }: Definition, what: string): Violation {
  return { file, line, what: `${what}: ${text.replace(/^[\s*]+/, "").slice(0, 100)}` };
}
