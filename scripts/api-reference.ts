// `apiReference`: the page docs/api-reference.md, with each public name, its declaration and its doc
// comments.
//
// The texts are those of the sources. The header of an entry introduces its names, and a doc comment explains
// a name, a field or a method. The page has a heading for each name, so other documents can link to it.

import { declarationText, docCommentOf, publicMembers, memberText } from "./public-api.ts";
import type { Declared, PublicName } from "./public-api.ts";
import { anchorOf, numberedAnchors } from "./site/anchors.ts";
import { child, type Node, type Tree } from "./tidy/tree.ts";

export const REFERENCE = "docs/api-reference.md";

const HEAD = `# API reference

This page has every public name, by the entry from which programs import it. \`npm run api-report\` writes it from the sources.
[The API](api.md) explains how the names work together.

Times are milliseconds, and a moment is epoch milliseconds, unless a name says otherwise. Fields are read-only. A name with \`?\` may be left out.
`;

/** The groups of an entry, each with a test of the names that belong to it. */
const GROUPS: readonly (readonly [string, (name: PublicName) => boolean])[] = [
  ["Functions and values", ({ isType, declaration }) => !isType && !isClass(declaration)],
  ["Classes", ({ isType, declaration }) => !isType && isClass(declaration)],
  ["Types", ({ isType }) => isType],
];

/** An item of a list, a clause of a port such as `ST7. …`, or a word with its meaning behind several spaces. */
const ITEM = /^\s*(?:- |\d+\. |[A-Z]{1,4}\d+[a-z]?\.\s+|[a-z][a-z0-9-]*-\d+[a-z]?\.\s*|(\w+) {2,}(?=\S))/;

/** Citations of promises and rules, which are for the readers of the sources. */
const LABELS = / \((?:(?:[A-Z]{1,2}\d+[a-z]?|[a-z][a-z0-9-]*-\d+[a-z]?)(?:, )?)+\)/g;

const LABEL_ALONE = /\s*\/\*\* [a-z][a-z0-9-]*-\d+[a-z]?\. \*\//g;

/** A longer declaration is shown in the lines of its source. */
const LINE_MAX = 100;

/** The text of the page. */
export function apiReference(names: readonly PublicName[], tree: Tree): string {
  const entries = [...Map.groupBy(names, ({ entry }) => entry)];
  const anchors = anchorsOf(
    entries.flatMap(([, ofEntry]) => groupsOf(ofEntry).flatMap(([, group]) => group)),
  );
  const toc = entries.map(
    ([entry, ofEntry]) => `- [\`${entry}\`](#${anchorOf(entry)}): ${ofEntry.length} names`,
  );
  const sections = entries.map(([entry, ofEntry]) => sectionOf(entry, ofEntry, anchors, tree));
  return [HEAD, `${toc.join("\n")}\n`, ...sections].join("\n");
}

function sectionOf(
  entry: string,
  names: readonly PublicName[],
  anchors: ReadonlyMap<string, string>,
  tree: Tree,
): string {
  const groups = groupsOf(names);
  const index = groups.map(
    ([title, ofGroup]) => `${title}: ${ofGroup.map(({ name }) => linkTo(name, anchors)).join(", ")}.\n`,
  );
  const described = groups.flatMap(([, ofGroup]) => ofGroup.map((name) => textOf(name, anchors)));
  return [`## ${entry}\n`, `${headerOf(entry, tree)}\n`, ...index, ...described].join("\n");
}

function groupsOf(names: readonly PublicName[]): readonly (readonly [string, readonly PublicName[]])[] {
  return GROUPS.map(([title, belongs]) => [title, names.filter(belongs)] as const).filter(
    ([, ofGroup]) => ofGroup.length > 0,
  );
}

/** The header of the source of an entry, which says what the entry is for. */
function headerOf(entry: string, tree: Tree): string {
  const file = entry === "holdfast" ? "index" : entry.replace("holdfast/", "entries/");
  const source = tree.sources.find((each) => each.file === `packages/holdfast/src/${file}.ts`);
  return paragraphs(source?.comments.map(({ value }) => value.trim()).join("\n") ?? "").join("\n\n");
}

function textOf(
  { name, isType, declaration, declared }: PublicName,
  anchors: ReadonlyMap<string, string>,
): string {
  const [first] = declared;
  const isForm = first?.node.type === "TSTypeAliasDeclaration";
  const shown = isForm ? [first] : declared;
  const docs = declared.map(docCommentOf).filter((doc) => doc !== undefined);
  const used = [...new Set(declaration.match(/\b[A-Z]\w+/g))].filter(
    (word) => word !== name && anchors.has(word),
  );
  const others = used.map((word) => linkTo(word, anchors));
  return [
    `### ${name}\n`,
    `\`\`\`ts\n${shown.map((each) => shownDeclaration(each, isType)).join("\n")}\n\`\`\`\n`,
    ...docs.slice(0, 1).map((doc) => `${paragraphs(doc).join("\n\n")}\n`),
    ...declared.map((each) => tableOf(each, isType)).filter((table) => table !== ""),
    ...(others.length === 0 ? [] : [`See ${others.join(", ")}.\n`]),
  ].join("\n");
}

/** The head of a class or an interface whose members have a table, and the whole of anything else. */
function shownDeclaration(declared: Declared, isType: boolean): string {
  const { source, node } = declared;
  const body = bodyOf(node);
  if (body === undefined) return shownValue(declared);
  const head = source.text.slice(node.start, body.start).replaceAll(/\s+/g, " ").trim();
  const shownHead = isType ? head.replace(/^(abstract )?class /, "interface ") : head;
  const members = visibleMembers(declared, isType);
  if (members.length === 0 || members.some((member) => docCommentOf(member) !== undefined)) return shownHead;
  return `${shownHead} {\n${members.map((member) => `  ${shownMember(member)};\n`).join("")}}`;
}

/** A function, a value or an alias: in one line, or as its source has it where that is too long. */
function shownValue(declared: Declared): string {
  const { source, node } = declared;
  const line = declarationText(declared);
  const end = child(node, "body")?.start ?? node.end;
  const isWhole =
    node.type === "TSTypeAliasDeclaration" || (node.type !== "VariableDeclaration" && line.length > LINE_MAX);
  const text = isWhole ? source.text.slice(node.start, end).trim() : line;
  return withoutModifiers(text).replaceAll(LABELS, "").replaceAll(LABEL_ALONE, "");
}

/** The members of a class or an interface, each with its doc comment. Where no member has one, there is no table. */
function tableOf(declared: Declared, isType: boolean): string {
  const members = visibleMembers(declared, isType);
  if (!members.some((member) => docCommentOf(member) !== undefined)) return "";
  const rows = members.flatMap((member) => rowsOf(member, ""));
  return `| member | meaning |\n|---|---|\n${rows.join("\n")}\n`;
}

/** Members that tell a user something. A class that implements an interface has the members of the interface. */
function visibleMembers({ source, node }: Declared, isType: boolean): readonly Declared[] {
  const implemented = ((node["implements"] ?? []) as readonly Node[]).length > 0;
  return publicMembers(membersIn(bodyOf(node)))
    .filter((member) => !isHidden(member, isType))
    .map((member) => ({ source, node: member }))
    .filter((member) => {
      const doc = docCommentOf(member);
      return doc === undefined ? !implemented : !doc.includes("@internal");
    });
}

function bodyOf(node: Node): Node | undefined {
  return /^(ClassDeclaration|TSInterfaceDeclaration)$/.test(node.type) ? child(node, "body") : undefined;
}

/** The row of a member, and the rows of the members of its own type where these have doc comments. */
function rowsOf(member: Declared, prefix: string): string[] {
  const inner = membersIn(literalOf(member.node)).map((node) => ({ source: member.source, node }));
  const isNested = inner.some((each) => docCommentOf(each) !== undefined);
  const text = shownMember(member);
  const name = prefix + (isNested ? text.slice(0, text.indexOf(":")) : text);
  const row = `| \`${cell(name)}\` | ${cell(sentencesOf(docCommentOf(member)))} |`;
  return [row, ...(isNested ? inner.flatMap((each) => rowsOf(each, `${name.replace("?", "")}.`)) : [])];
}

function shownMember({ source, node }: Declared): string {
  return withoutModifiers(memberText(source, node)).replace(/[;,]$/, "");
}

function membersIn(body: Node | undefined): readonly Node[] {
  const members = body?.["body"] ?? body?.["members"];
  return Array.isArray(members) ? (members as readonly Node[]) : [];
}

/** The object type that a field is declared with. */
function literalOf(member: Node): Node | undefined {
  const type = child(member, "typeAnnotation");
  const inner = type === undefined ? undefined : child(type, "typeAnnotation");
  return member.type === "TSPropertySignature" && inner?.type === "TSTypeLiteral" ? inner : undefined;
}

/** Members that say nothing to a user: marks with symbols, names of errors, and how a type is made. */
function isHidden(member: Node, isType: boolean): boolean {
  const isUntyped = child(member, "typeAnnotation") === undefined && member.type === "PropertyDefinition";
  return (
    member["computed"] === true ||
    (member["override"] === true && isUntyped) ||
    (isType && member["kind"] === "constructor")
  );
}

function withoutModifiers(text: string): string {
  return text.replaceAll(/\b(?:readonly|declare|override|async|static) (?=[\w[#])(?!\w+\[\])/g, "");
}

/** A comment in one line, for a cell of a table. */
function sentencesOf(comment: string | undefined): string {
  return paragraphs(comment ?? "")
    .map((each) => each.replace(/^- /, "").replaceAll(/\s*\n(?:- )?/g, " "))
    .join(" ");
}

/** The paragraphs of a comment. Each item of a list and each tag begins a line of its own. */
function paragraphs(comment: string): readonly string[] {
  const found: string[][] = [[]];
  for (const line of comment.split("\n").map((each) => each.replace(/^\s*\*+ ?/, ""))) {
    const item = ITEM.exec(line);
    if (line.trim() === "") found.push([]);
    else if (item === null) found.at(-1)!.push(line.trim());
    else
      found
        .at(-1)!
        .push(`\n- ${item[1] === undefined ? "" : `\`${item[1]}\`: `}${line.slice(item[0].length).trim()}`);
  }
  return found
    .map((each) => withoutTags(each.join(" ")).replaceAll(LABELS, "").replaceAll(" \n", "\n").trim())
    .filter((each) => each !== "");
}

function withoutTags(text: string): string {
  return text
    .replaceAll(/ ?@param (\w+) /g, "\n- `$1`: ")
    .replaceAll(/ ?@returns /g, "\n- Returns ")
    .replaceAll(/ ?@throws (\w+) (`\w+`)(?=[ .,]|$)/g, "\n- Throws `$1` ($2)")
    .replaceAll(/ ?@throws ([A-Z]\w+)/g, "\n- Throws `$1`")
    .replaceAll(/ ?@throws /g, "\n- Throws ");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

function linkTo(name: string, anchors: ReadonlyMap<string, string>): string {
  return `[${name}](#${anchors.get(name)})`;
}

/**
 * The anchor of each heading, in the order of the page. A name that differs from an earlier name only in case
 * has a number.
 */
function anchorsOf(names: readonly PublicName[]): ReadonlyMap<string, string> {
  const anchors = numberedAnchors(names.map(({ name }) => name));
  return new Map(names.map(({ name }, index) => [name, anchors[index]!]));
}

function isClass(declaration: string): boolean {
  return /^(abstract )?class /.test(declaration);
}
