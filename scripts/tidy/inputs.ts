// A rule about inputs: each variable of the environment and each path of a project has a row with the trust
// that it needs.

import { child, nameOf, type Node, type Source, type Tree, type Violation } from "./tree.ts";

const TABLE = "packages/agents/src/places/project-inputs.ts";
/** The packages whose code runs on the machine of a user. */
const READING =
  /^packages\/(agents|client|coordinator|core|holdfast|machine|mcp|place|programs|runner|runtime|storage|system|terminal|workspace)\/src\//;
const ENVIRONMENT = /^(env|hostEnvironment|io)$/;
/** Functions that read the variable whose name they are given. */
const READERS = /^(variable|nonEmpty)$/;
const VARIABLE = /^([A-Z][A-Z0-9_]+|npm_[a-z_]+)$/;
/** Variables that Holdfast sets for programs that it starts itself. */
export const FOR_OWN_PROGRAMS = new Set([
  "HOLDFAST_MODEL_URLS",
  "HOLDFAST_SESSION_TOOLS",
  "HOLDFAST_WAY_BACK_PORT",
  "HOLDFAST_WAY_BACK_TOKEN",
  "HOLDFAST_JOB",
  "HOLDFAST_EXECUTION",
  "HOLDFAST_TAG",
]);

export function inputsHaveRows(tree: Tree): readonly Violation[] {
  const table = tree.sources.find(({ file }) => file === TABLE);
  if (table === undefined) return [];
  const [files, variables] = [keysOf(table, "PROJECT_FILES"), keysOf(table, "VARIABLES")];
  return tree.sources
    .filter(({ file, isTest }) => READING.test(file) && !isTest && file !== TABLE)
    .flatMap((source) => {
      const violations: Violation[] = [];
      const missing = (node: Node, what: string): void =>
        void violations.push({ file: source.file, line: source.lineAt(node.start), what });
      const constants = constantsOf(source);
      source.walk((node) => {
        for (const name of variablesIn(node, constants))
          if (!variables.has(name) && !FOR_OWN_PROGRAMS.has(name))
            missing(node, `the variable ${name} has no row in VARIABLES of ${TABLE}`);
        const path = projectPathIn(node);
        if (path !== undefined && ![...files].some((row) => covers(row, path)))
          missing(node, `the path "${path}" of a project has no row in PROJECT_FILES of ${TABLE}`);
      });
      return violations;
    });
}

/** The variables that a piece of code reads by a name that it shows. */
function variablesIn(node: Node, constants: ReadonlyMap<string, string>): readonly string[] {
  switch (node.type) {
    case "Literal": {
      const text = node["value"];
      return typeof text === "string" && /^HOLDFAST_[A-Z_]+$/.test(text) ? [text] : [];
    }
    case "MemberExpression":
      return isEnvironment(child(node, "object"))
        ? named(child(node, "property"), constants, node["computed"] !== true)
        : [];
    case "VariableDeclarator": {
      const pattern = child(node, "id");
      if (pattern?.type !== "ObjectPattern" || !isEnvironment(child(node, "init"))) return [];
      return list(pattern, "properties").flatMap((property) => named(child(property, "key"), constants));
    }
    case "CallExpression": {
      const given = list(node, "arguments");
      const isReader = READERS.test(nameOf(child(node, "callee")) ?? "");
      if (!isReader && !given.some((one) => isEnvironment(one))) return [];
      return given.flatMap((one) => named(one, constants, false));
    }
    default:
      return [];
  }
}

/** `env`, `io.env`, `process.env`, `hostEnvironment`, or the `io` of a command. */
function isEnvironment(node: Node | undefined): boolean {
  const name =
    nameOf(node) ?? (node?.type === "MemberExpression" ? nameOf(child(node, "property")) : undefined);
  return name !== undefined && ENVIRONMENT.test(name);
}

function named(
  node: Node | undefined,
  constants: ReadonlyMap<string, string>,
  takesIdentifiers = true,
): readonly string[] {
  const identifier = nameOf(node);
  const text =
    identifier === undefined
      ? node?.["value"]
      : (constants.get(identifier) ?? (takesIdentifiers ? identifier : undefined));
  return typeof text === "string" && VARIABLE.test(text) && !constants.has(text) ? [text] : [];
}

/** The constants of a file that are texts. */
function constantsOf(source: Source): ReadonlyMap<string, string> {
  const constants = new Map<string, string>();
  source.walk((node) => {
    if (node.type !== "VariableDeclarator") return;
    const [name, value] = [nameOf(child(node, "id")), child(node, "init")?.["value"]];
    if (name !== undefined && typeof value === "string") constants.set(name, value);
  });
  return constants;
}

/** The path in `join(project, "a", "b")`, as far as it is shown. */
function projectPathIn(node: Node): string | undefined {
  if (node.type !== "CallExpression" || nameOf(child(node, "callee")) !== "join") return undefined;
  const [folder, ...steps] = list(node, "arguments");
  const name =
    nameOf(folder) ?? (folder?.type === "MemberExpression" ? nameOf(child(folder, "property")) : undefined);
  if (name !== "project") return undefined;
  const shown: string[] = [];
  for (const step of steps) {
    if (typeof step["value"] !== "string") break;
    shown.push(step["value"]);
  }
  return shown.length === 0 ? undefined : shown.join("/");
}

function covers(row: string, path: string): boolean {
  return row === path || path.startsWith(`${row}/`) || row.startsWith(`${path}/`);
}

function keysOf(source: Source, name: string): ReadonlySet<string> {
  const keys = new Set<string>();
  source.walk((node) => {
    if (node.type !== "VariableDeclarator" || nameOf(child(node, "id")) !== name) return;
    for (const property of list(objectIn(child(node, "init")) ?? node, "properties")) {
      const key = child(property, "key");
      keys.add(nameOf(key) ?? String(key?.["value"]));
    }
  });
  return keys;
}

/** The object behind `as const satisfies …`. */
function objectIn(node: Node | undefined): Node | undefined {
  return node === undefined || node.type === "ObjectExpression" ? node : objectIn(child(node, "expression"));
}

function list(node: Node, key: string): readonly Node[] {
  return [node[key] ?? []].flat() as unknown as readonly Node[];
}
