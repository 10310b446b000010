// The public API as text: `publicNames` reads what the entries of the package `holdfast` export, each with
// its declaration. `reports` writes them down, `withoutComment` and `neverNamed` find those that a user
// cannot understand or does not meet.
//
// It reads declarations as their authors wrote them, without the types that a compiler infers.

import { dirname, join } from "node:path/posix";
import { child, nameOf, type Node, type Source, type Tree } from "./tidy/tree.ts";

const PACKAGE = "packages/holdfast";

/** Files for users: examples, and documents that are not about the repository itself. The reference has every name. */
export const READ_BY_USERS = /^(README\.md|docs\/(?!api-reference\.)[^/]+\.md|examples\/.*\.(ts|md))$/;

/** A name that users import. */
export interface PublicName {
  /** The entry as users write it, such as `holdfast/agents`. */
  readonly entry: string;
  readonly name: string;
  readonly isType: boolean;
  /** In one line, without comments and bodies. */
  readonly declaration: string;
  /** Overloads of a function are several, and so are a type and the type that it is a form of. */
  readonly declared: readonly Declared[];
  readonly isDocumented: boolean;
}

/** A declaration and its source. */
export interface Declared {
  readonly source: Source;
  readonly node: Node;
}

interface Export {
  readonly name: string;
  readonly local: string;
  readonly isType: boolean;
  readonly from: string | undefined;
}

export function publicNames(tree: Tree): readonly PublicName[] {
  const finder = new DeclarationFinder(tree);
  return Object.entries(exportsOf(tree, PACKAGE)).flatMap(([path, file]) => {
    const entry = join("holdfast", path);
    const source = finder.source(file);
    return [...exportedBy(source), ...declaredExports(source)]
      .map(({ name, isType }) => describe(entry, name, isType, finder.find(file, name)))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  });
}

/** The text of the report of each entry, by its file. */
export function reports(names: readonly PublicName[]): ReadonlyMap<string, string> {
  const entries = Map.groupBy(names, ({ entry }) => entry);
  return new Map(
    [...entries].map(([entry, ofEntry]) => {
      const head = `${entry}: ${ofEntry.length} names. \`npm run api-report\` writes this file from the sources.`;
      const file = `docs/api-report/${entry.replaceAll("/", "-")}.txt`;
      return [file, `${[head, "", ...ofEntry.map(({ declaration }) => declaration)].join("\n")}\n`];
    }),
  );
}

/** The names whose declaration has no doc comment. */
export function withoutComment(names: readonly PublicName[]): readonly string[] {
  return names.filter(({ isDocumented }) => !isDocumented).map(({ name }) => name);
}

/**
 * The names that no document and no example has, and that are in the declaration of no name which one has.
 */
export function neverNamed(names: readonly PublicName[], tree: Tree): readonly string[] {
  const declarations = new Map(names.map(({ name, declaration }) => [name, declaration]));
  const toRead = tree.files.filter((file) => READ_BY_USERS.test(file)).map((file) => codeOf(file, tree));
  const met = new Set<string>();
  for (let text = toRead.pop(); text !== undefined; text = toRead.pop()) {
    for (const [word] of text.matchAll(/\b[A-Za-z]\w*/g)) {
      const declaration = declarations.get(word);
      if (declaration === undefined || met.has(word)) continue;
      met.add(word);
      toRead.push(declaration);
    }
  }
  return [...declarations.keys()].filter((name) => !met.has(name));
}

/** The code of an example, or the blocks and words that a document marks as code. */
function codeOf(file: string, tree: Tree): string {
  const text = tree.read(file) ?? "";
  return file.endsWith(".md") ? (text.match(/```[^]*?```|`[^`\n]+`/g) ?? []).join("\n") : text;
}

function describe(entry: string, name: string, isType: boolean, declared: readonly Declared[]): PublicName {
  const declaration = declared.map(declarationText).join(" ");
  const isOnlyType = isType || declared.every(({ node }) => /^TS(Interface|TypeAlias)/.test(node.type));
  return {
    entry,
    name,
    isType: isOnlyType,
    // A class that is exported as a type cannot be made by users.
    declaration: isOnlyType ? declaration.replace(/^((?:abstract )?class )/, "type of $1") : declaration,
    declared,
    isDocumented: declared.some((each) => docCommentOf(each) !== undefined),
  };
}

/** Follows exports from source to source, also into other packages, until it meets the declaration. */
class DeclarationFinder {
  readonly #sources: ReadonlyMap<string, Source>;
  readonly #packages: ReadonlyMap<string, string>;

  constructor(tree: Tree) {
    this.#sources = new Map(tree.sources.map((source) => [source.file, source]));
    this.#packages = entriesOfPackages(tree);
  }

  source(file: string): Source {
    const source = this.#sources.get(file);
    if (source === undefined) throw new Error(`${file} is exported, and is no source`);
    return source;
  }

  find(file: string, name: string): readonly Declared[] {
    const source = this.source(file);
    const nodes = topLevel(source).filter((node) => declaredNames(node).includes(name));
    if (nodes.length > 0)
      return nodes.flatMap((node) => [{ source, node }, ...this.#behindAlias(source, node)]);
    const known = [...exportedBy(source), ...importedBy(source)].find((each) => each.name === name);
    if (known === undefined) throw new Error(`${file} has no ${name}`);
    if (known.from === undefined) return this.find(file, known.local);
    return this.find(this.#resolve(file, known.from), known.local);
  }

  /**
   * The declaration of another package's type of which this one is a form, such as the context of the core.
   */
  #behindAlias(source: Source, node: Node): readonly Declared[] {
    if (node.type !== "TSTypeAliasDeclaration") return [];
    const aliased = nameOf(child(child(node, "typeAnnotation")!, "typeName"));
    const known = importedBy(source).find(({ name, local }) => name === aliased && name !== local);
    return known === undefined ? [] : this.find(this.#resolve(source.file, known.from!), known.local);
  }

  #resolve(file: string, specifier: string): string {
    if (specifier.startsWith(".")) return join(dirname(file), specifier);
    const target = this.#packages.get(specifier);
    if (target === undefined)
      throw new Error(`${file} exports from ${specifier}, which is none of our packages`);
    return target;
  }
}

/** The sources behind the entries of all packages, by the names under which others import them. */
function entriesOfPackages(tree: Tree): ReadonlyMap<string, string> {
  const entries = new Map<string, string>();
  for (const file of tree.files) {
    if (!/^packages\/[^/]+\/package\.json$/.test(file)) continue;
    const { name } = JSON.parse(tree.read(file) ?? "{}") as { readonly name: string };
    for (const [path, source] of Object.entries(exportsOf(tree, dirname(file))))
      entries.set(join(name, path), source);
  }
  return entries;
}

function exportsOf(tree: Tree, folder: string): Readonly<Record<string, string>> {
  const manifest = JSON.parse(tree.read(`${folder}/package.json`) ?? "{}") as {
    readonly exports?: Readonly<Record<string, string>>;
  };
  return Object.fromEntries(
    Object.entries(manifest.exports ?? {}).map(([path, source]) => [path, join(folder, source)]),
  );
}

/** The statements of a source, without the `export` before them. */
function topLevel(source: Source): readonly Node[] {
  const nodes: Node[] = [];
  source.walk((node, parent) => {
    if (parent?.type === "Program") nodes.push(child(node, "declaration") ?? node);
  });
  return nodes;
}

function declaredNames(node: Node): readonly string[] {
  if (node.type === "VariableDeclaration")
    return (node["declarations"] as readonly Node[]).flatMap((each) => nameOf(child(each, "id")) ?? []);
  const isDeclaration =
    /^(FunctionDeclaration|TSDeclareFunction|ClassDeclaration|TS(Interface|TypeAlias)Declaration)$/;
  return isDeclaration.test(node.type) ? [nameOf(child(node, "id")) ?? ""] : [];
}

/** The names of `export { … }`, with or without a source. */
function exportedBy(source: Source): readonly Export[] {
  return specifiersOf(source, "ExportNamedDeclaration", "exportKind", "exported", "local");
}

function importedBy(source: Source): readonly Export[] {
  return specifiersOf(source, "ImportDeclaration", "importKind", "local", "imported");
}

function specifiersOf(
  source: Source,
  type: string,
  kind: string,
  as: string,
  local: string,
): readonly Export[] {
  const found: Export[] = [];
  source.walk((node) => {
    if (node.type !== type) return;
    const from = child(node, "source")?.["value"] as string | undefined;
    for (const each of (node["specifiers"] ?? []) as readonly Node[]) {
      const name = nameOf(child(each, as)) ?? "";
      const isType = node[kind] === "type" || each[kind] === "type";
      found.push({ name, local: nameOf(child(each, local)) ?? name, isType, from });
    }
  });
  return found;
}

/** The names of `export function …` and the like. */
function declaredExports(source: Source): readonly Pick<Export, "name" | "isType">[] {
  const found: Pick<Export, "name" | "isType">[] = [];
  source.walk((node, parent) => {
    if (parent?.type !== "ExportNamedDeclaration") return;
    for (const name of declaredNames(node)) found.push({ name, isType: false });
  });
  return found;
}

/** A declaration in one line, without its comments and bodies. */
export function declarationText({ source, node }: Declared): string {
  const upTo = (end: Node | undefined): string => plain(source, node.start, end?.start ?? node.end);
  if (node.type === "FunctionDeclaration") return upTo(child(node, "body"));
  if (node.type === "VariableDeclaration") return variableText(source, node);
  if (node.type !== "ClassDeclaration") return upTo(undefined);
  const body = child(node, "body")!;
  const members = publicMembers(body["body"] as readonly Node[]).map((each) => memberText(source, each));
  return `${upTo(body)} { ${members.join("; ")} }`;
}

/** The members that users can name. A method with overloads is its overloads, without the implementation. */
export function publicMembers(members: readonly Node[]): readonly Node[] {
  const overloaded = new Set(members.filter(isOverload).map((each) => nameOf(child(each, "key"))));
  return members.filter(
    (each) => isPublicMember(each) && (isOverload(each) || !overloaded.has(nameOf(child(each, "key")) ?? "")),
  );
}

function isOverload(node: Node): boolean {
  return child(node, "value")?.type === "TSEmptyBodyFunctionExpression";
}

function isPublicMember(node: Node): boolean {
  const isPrivate = child(node, "key")?.type === "PrivateIdentifier" || node["accessibility"] === "private";
  return !isPrivate && node.type !== "StaticBlock";
}

/** A member of a class or an interface in one line, without its comments and its body. */
export function memberText(source: Source, node: Node): string {
  const value = child(node, "value");
  const end = isOverload(node)
    ? node.end
    : (child(node, "typeAnnotation")?.end ??
      (value && child(value, "body"))?.start ??
      value?.start ??
      node.end);
  return plain(source, node.start, end).replace(/( =|;)$/, "");
}

/**
 * A value without a written type is shown by its beginning, up to the body of a function or the content of
 * an object.
 */
function variableText(source: Source, node: Node): string {
  const [declared] = node["declarations"] as readonly Node[];
  const type = child(child(declared!, "id")!, "typeAnnotation");
  const init = child(declared!, "init");
  const made = init === undefined ? undefined : child(init, "body")?.start;
  const text = plain(source, node.start, type?.end ?? made ?? node.end).replace(/;$/, "");
  return type === undefined && made === undefined
    ? text.replace(/(= (?:new )?[\w.]+\(|= [{[]).*$/s, "$1…")
    : text;
}

/** A piece of a source in one line, without its comments. */
function plain(source: Source, start: number, end: number): string {
  let text = "";
  let at = start;
  for (const comment of source.comments.filter((each) => each.start >= start && each.end <= end)) {
    text += source.text.slice(at, comment.start);
    at = comment.end;
  }
  return (text + source.text.slice(at, end)).replaceAll(/\s+/g, " ").trim();
}

/** The text of the doc comment above a declaration or a member of one, as it stands between its marks. */
export function docCommentOf({ source, node }: Declared): string | undefined {
  return source.comments.findLast(
    ({ type, value, start, end }) =>
      type === "Block" &&
      value.startsWith("*") &&
      start < node.start &&
      /^\s*(\/\/.*\s+)*(export\s+)?$/.test(source.text.slice(end, node.start)),
  )?.value;
}
