// `unknownNames`: the names in the texts of the sources that nothing has. A person who follows an advice
// types them.
//
//   - Each kind of name has one table that defines it. Options stand in the commands, fields in the schema of
//     their file, and pages in `docs`. A name that stands in no table is reported with its place and its
//     text.
//   - The words around a name choose its table where they say it ("`maxTurns` in the agent's file"). A name
//     without such words may stand in any table of names in code.

import type { Syntax } from "../packages/terminal/src/frame/command.ts";
import { takesArguments, wordsOf } from "./advised-commands.ts";
import { knownOptions } from "../packages/terminal/src/frame/help.ts";
import { printedTexts, speakingSources } from "./printed-texts.ts";
import { child, nameOf, type Node, type Source, type Tree } from "./tidy/tree.ts";

/** All names that exist, each kind in the table that defines it. */
export interface Known {
  /** The options of every command, without the dashes. */
  readonly options: ReadonlySet<string>;
  /** Each command by its name, with all the options that it takes. */
  readonly commands: ReadonlyMap<string, Syntax>;
  readonly variables: ReadonlySet<string>;
  readonly errorCodes: ReadonlySet<string>;
  readonly exitCodes: ReadonlySet<string>;
  /** Paths from `docs`, and `PAGE.md#HEADING` for each heading. */
  readonly pages: ReadonlySet<string>;
  /** The oldest versions of Node that the packages allow. */
  readonly nodes: ReadonlySet<string>;
  readonly npmScripts: ReadonlySet<string>;
  readonly sandboxes: ReadonlySet<string>;
  /** Paths of a project or of the home folder in which Holdfast reads or writes. */
  readonly places: ReadonlySet<string>;
  /** With a star for each part in braces. */
  readonly restPaths: ReadonlySet<string>;
  /** Fields of files and members of objects, by what they belong to; `holdfast.budget` for a field in a field. */
  readonly fields: Readonly<Record<Owner, ReadonlySet<string>>>;
  /** Functions that are exported, and for each the fields of the objects that it takes. */
  readonly functions: ReadonlyMap<string, ReadonlySet<string>>;
  /** Every name that code defines: properties, methods, functions, and single words in quotes. */
  readonly code: ReadonlySet<string>;
}

export type Owner =
  | "agent file"
  | "coordinator"
  | "context"
  | "configuration"
  | "policy"
  | "profile"
  | "runtime"
  | "script"
  | "server";

export interface UnknownName {
  readonly kind: string;
  readonly name: string;
}

type Finder = (text: string, known: Known) => Iterable<string>;

/** By kind, the names in a text that its table does not have. */
const FINDERS: Readonly<Record<string, Finder>> = {
  option: (text, { options }) =>
    unlessIn(options, matches(ownParts(text), /(?<![\w-])--([a-z][a-z-]*)(?![\w-]|…)/g)),
  command: unknownCommands,
  variable: (text, { variables }) =>
    unlessIn(
      variables,
      matches(text, /(?<![\w"…-])\$?\{?((?!E_)[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9])(?![\w"…])/g),
    ),
  "error code": (text, { errorCodes }) => unlessIn(errorCodes, matches(text, /\b(E_[A-Z_]+)\b/g)),
  "exit code": (text, { exitCodes }) => unlessIn(exitCodes, matches(text, /\bexit code (\d+)/g)),
  page: (text, { pages }) => unlessIn(pages, matches(text, /\bdocs\/([\w/-]+\.(?:md|json)(?:#[\w-]+)?)/g)),
  "version of Node": (text, { nodes }) =>
    unlessIn(nodes, /\bNode \d/.test(text) ? matches(text, /(?<![\d.])(\d\d\.\d+(?:\.\d+)?)(?![\d.])/g) : []),
  "npm script": (text, { npmScripts }) => unlessIn(npmScripts, matches(text, /\bnpm run ([a-z][\w:-]*)/g)),
  sandbox: (text, { sandboxes }) =>
    unlessIn(
      sandboxes,
      matches(
        text,
        /(?:`sandbox: |\{ sandbox: |--sandbox |use the sandbox |HOLDFAST_SANDBOX=|"sandbox": ")([a-z]\w*)(?!\w|…)/g,
      ),
    ),
  place: (text, { places }) =>
    [
      ...matches(text, /(?<![\w…/])(~?\/?\.(?:holdfast|claude|agents|codex|gemini|opencode)\/[\w./-]+)/g),
    ].filter((path) => !isPlace(path.replace(/^~\//, "").replace(/\/$/, ""), places)),
  "REST path": (text, { restPaths }) =>
    unlessIn(
      restPaths,
      [...matches(text, /(?:\b(?:GET|POST|PUT|PATCH|DELETE) |`)(\/[a-z][\w/{}.…-]*)/g)].map((path) =>
        path.replaceAll(/\{\w+\}|…/g, "*"),
      ),
    ),
  "field or member": unknownFields,
  function: unknownFunctions,
  "name in code": (text, { code }) =>
    unlessIn(code, [
      ...matches(text, /(?<![\w./$…-])([a-z]+(?:[A-Z][a-z0-9]*)+)(?![\w…])/g),
      ...matches(text, /(?<![\w./$…-])([a-z]+(?:_[a-z]+)+)(?![\w…]|\.\w)/g),
      ...matches(text, /`([a-z]+)`/g),
    ]),
};

/** @param isAdvice whether it is an advice also where it is but a word and an option. */
export function unknownNames(text: string, known: Known, isAdvice = false): readonly UnknownName[] {
  if (PROGRAM.test(text) || !(isAdvice || PROSE.test(text))) return [];
  return Object.entries(FINDERS).flatMap(([kind, find]) =>
    [...new Set(find(text, known))].map((name) => ({ kind, name })),
  );
}

export function unknownNamesOf(tree: Tree, known: Known): readonly string[] {
  return speakingSources(tree)
    .flatMap(printedTexts)
    .filter(({ parent }) => parent?.type !== "MemberExpression") // A list that is taken apart.
    .flatMap(({ at, text, parent }) =>
      unknownNames(text, known, parent?.type === "Property" && nameOf(child(parent, "key")) === "fix").map(
        ({ kind, name }) => `${at}: no ${kind} "${name}": ${text.slice(0, 200)}`,
      ),
    );
}

/** Queries and programs in a text are read by no person. */
const PROGRAM =
  /\b(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|(CREATE|DROP|ALTER) (TABLE|INDEX|UNIQUE)|PRAGMA|ON CONFLICT|ORDER BY)\b|^(SET|CASE|exec|diff|run --detach) |\(UPDATE \w|clock_timestamp|^lane, |^\^|\brequire\(|^\s*import |\n\s*(done|fi)\b|\|\| exit \d|\becho x\b/;

/** Two words beside each other, or words and something in backticks. */
const PROSE = /(?<![\w./$-])[A-Za-z'`)]+[,;:.]? [`a-z(]/;

/** Without the command lines of other programs, whose options are theirs. */
function ownParts(text: string): string {
  return text.replaceAll(/`(?:git|npm|docker|cd|codex|opencode|NAME) [^`]*`/g, "");
}

/** A command in backticks that leaves `holdfast` out. The whole lines are checked by `advice.test.ts`. */
function* unknownCommands(text: string, { commands }: Known): Iterable<string> {
  for (const line of matches(text, /`([a-z]+ [a-z-][^`]*)`/g)) {
    const [name = "", ...rest] = wordsOf(line);
    const command = commands.get(name);
    const given = rest.slice(0, rest.findIndex((word) => word.startsWith("-")) >>> 0);
    if (command === undefined) continue;
    const options = knownOptions(command);
    const foreign = rest.some((word) => /^--[a-z]/.test(word) && !Object.hasOwn(options, word.slice(2)));
    if (foreign || !takesArguments(command, given)) yield line;
  }
}

/** Words after a name in backticks that say what has it. */
const OWNERS: readonly (readonly [RegExp, Owner])[] = [
  [/^ (?:in|of|from|out of) (?:a copy of )?(?:the|an|its) agent(?:'s| |$|[;,.:])/, "agent file"],
  [/^ in its file\b/, "agent file"],
  [/^ (?:in|of) (?:the|a|its) profile\b/, "profile"],
  [/^ in script\.json\b/, "script"],
  [/^ in its configuration\b/, "coordinator"],
  [/^ of (?:the|a) server\b/, "server"],
  [/^ (?:in|of) the policy\b/, "policy"],
];

const PREFIXES: Readonly<Record<string, Owner>> = {
  ctx: "context",
  runtime: "runtime",
  limits: "coordinator",
  mcp: "coordinator",
  holdfast: "agent file",
};

function* unknownFields(text: string, { fields }: Known): Iterable<string> {
  for (const found of text.matchAll(/`([a-z]\w*)(?:: \w+)?`/g)) {
    const [before, rest] = [text.slice(0, found.index), text.slice(found.index + found[0].length)];
    const owner = /\b[Aa]gent file with $/.test(before)
      ? "agent file"
      : OWNERS.find(([words]) => words.test(rest))?.[1];
    if (owner !== undefined && !fields[owner].has(found[1]!)) yield `${found[1]} of ${owner}`;
  }
  for (const [, prefix, path] of text.matchAll(
    /(?<![\w./@{…-])(\w+)\.([a-z]\w*(?:\.[a-z]\w*)*)(?![\w…/]|\.\w)/g,
  )) {
    const owner = PREFIXES[prefix!];
    if (owner === undefined) continue;
    const name = owner === "context" || owner === "runtime" ? path!.split(".")[0]! : `${prefix}.${path}`;
    if (/^(db|json|md|ts|v1|dev)\b/.test(path!)) continue;
    if (!fields[owner].has(name)) yield `${prefix}.${path}`;
  }
}

/** `createRuntime({ agents })`: the function, and what its objects may have. */
function* unknownFunctions(text: string, { functions, code }: Known): Iterable<string> {
  for (const [, name, given = ""] of text.matchAll(/(?<![\w.…-])([a-z]+[A-Z]\w*)\((?:\{ ([^}]*)\}?)?/g)) {
    const taken = functions.get(name!);
    if (taken === undefined) yield name!;
    for (const field of keysIn(given)) if (taken?.has(field) !== true) yield `${name}({ ${field} })`;
  }
  for (const [, given] of text.matchAll(/(?<!\()\{ ([a-zA-Z]\w*(?:, \w+)*(?:: [^{}]*)?) \}/g))
    for (const field of keysIn(given!)) if (!code.has(field)) yield `{ ${field} }`;
}

function keysIn(object: string): readonly string[] {
  return [...object.matchAll(/(?:^|, )([a-zA-Z]\w*)(?=,|:|$| $)/g)].map(([, key]) => key!);
}

function* matches(text: string, pattern: RegExp): Iterable<string> {
  for (const [, name] of text.matchAll(pattern)) yield name!;
}

function unlessIn(table: ReadonlySet<string>, names: Iterable<string>): readonly string[] {
  return [...names].filter((name) => !table.has(name));
}

/** A path that is known, or lies in one that is. */
function isPlace(path: string, places: ReadonlySet<string>): boolean {
  return path.split("/").some((_, i, steps) => i > 0 && places.has(steps.slice(0, i + 1).join("/")));
}

/** The members of a class, with its fields. */
export function membersOf(sources: readonly Source[], name: string): ReadonlySet<string> {
  const members = new Set<string>();
  for (const source of sources)
    source.walk((node) => {
      if (node.type !== "ClassDeclaration" || nameOf(child(node, "id")) !== name) return;
      for (const member of (child(node, "body")?.["body"] ?? []) as readonly Node[]) {
        const key = nameOf(child(member, "key"));
        if (key !== undefined && child(member, "key")?.type === "Identifier") members.add(key);
      }
    });
  return members;
}

/** Every name that code defines. */
export function namesInCode(sources: readonly Source[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const source of sources)
    source.walk((node) => {
      // A parameter: `migrate(state, fromVersion)`.
      if (node.type === "Identifier" && child(node, "typeAnnotation") !== undefined) names.add(nameOf(node)!);
      const key = DEFINING.test(node.type) ? (child(node, "key") ?? child(node, "id")) : undefined;
      const name = nameOf(key) ?? key?.["value"] ?? (node.type === "Literal" ? node["value"] : undefined);
      if (typeof name === "string" && /^[a-z]\w*$/i.test(name)) names.add(name);
    });
  return names;
}

const DEFINING =
  /^(TS(Property|Method)Signature|Property|PropertyDefinition|MethodDefinition|FunctionDeclaration|TSInterfaceDeclaration|ClassDeclaration)$/;

/** The keys of the object that a constant is, and of the objects in it. */
export function keysOfConstant(source: Source, constant: string): ReadonlySet<string> {
  const names = new Set<string>();
  let inside: Node | undefined;
  source.walk((node) => {
    if (node.type === "VariableDeclarator" && nameOf(child(node, "id")) === constant) inside = node;
    if (inside === undefined || node.start < inside.start || node.end > inside.end) return;
    if (node.type !== "Property") return;
    const key = child(node, "key");
    names.add(nameOf(key) ?? String(key?.["value"]));
  });
  return names;
}

/** Each function, with the fields of the types of its parameters and of those that these extend. */
export function functionsIn(sources: readonly Source[]): ReadonlyMap<string, ReadonlySet<string>> {
  const types = new Map<string, { readonly fields: string[]; readonly named: string[] }>();
  const parameters = new Map<string, string[]>();
  for (const source of sources)
    source.walk((node) => {
      const name = nameOf(child(node, "id"));
      if (name === undefined) return;
      if (/^TS(InterfaceDeclaration|TypeAliasDeclaration)$/.test(node.type)) {
        const known = types.get(name) ?? { fields: [], named: [] };
        within(source, node, (inner) => collectType(inner, known));
        types.set(name, known);
      }
      if (/^(TSDeclare)?Function(Declaration)?$/.test(node.type)) {
        const known = parameters.get(name) ?? [];
        for (const parameter of (node["params"] as readonly Node[] | undefined) ?? [])
          within(source, parameter, (inner) => {
            const named = inner.type === "TSTypeReference" ? nameOf(child(inner, "typeName")) : undefined;
            if (named !== undefined) known.push(named);
          });
        parameters.set(name, known);
      }
    });
  const fieldsOf = (name: string, seen: Set<string>): void => {
    if (seen.has(`:${name}`)) return;
    seen.add(`:${name}`);
    for (const field of types.get(name)?.fields ?? []) seen.add(field);
    for (const other of types.get(name)?.named ?? []) fieldsOf(other, seen);
  };
  return new Map(
    [...parameters].map(([name, named]) => {
      const fields = new Set<string>();
      for (const type of named) fieldsOf(type, fields);
      return [name, fields];
    }),
  );
}

function collectType(node: Node, into: { readonly fields: string[]; readonly named: string[] }): void {
  const key = /^TS(Property|Method)Signature$/.test(node.type) ? nameOf(child(node, "key")) : undefined;
  if (key !== undefined) into.fields.push(key);
  const reference = node.type === "TSTypeReference" ? child(node, "typeName") : undefined;
  const base = node.type === "TSInterfaceHeritage" ? child(node, "expression") : undefined;
  const named = nameOf(reference ?? base);
  if (named !== undefined) into.named.push(named);
}

function within(source: Source, { start, end }: Node, visit: (node: Node) => void): void {
  source.walk((node) => {
    if (node.start >= start && node.end <= end) visit(node);
  });
}

/** The names of the fields in a JSON Schema, each with those around it: `holdfast.budget`. */
export function fieldsOfSchema(schema: unknown, path = ""): readonly string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {}, anyOf = [] } = schema as {
    readonly properties?: Readonly<Record<string, unknown>>;
    readonly anyOf?: readonly unknown[];
  };
  return [
    ...Object.entries(properties).flatMap(([name, inner]) => [
      path + name,
      ...fieldsOfSchema(inner, `${path}${name}.`),
    ]),
    ...anyOf.flatMap((one) => fieldsOfSchema(one, path)),
  ];
}
