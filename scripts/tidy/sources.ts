// Rules about what stands in a source file: globals, names, skips, and notes for later.

import { child, nameOf, type Node, type Source, type Tree, type Violation } from "./tree.ts";

/** Core is a pure function of what it is handed: no clock, no randomness, no host. */
const BANNED_IN_CORE = new Set(
  "Date setTimeout setInterval setImmediate performance process crypto fetch console globalThis".split(" "),
);

/** Where `console` and the environment are used, and why. Everything else is told. */
const MAY_USE_THE_WORLD: readonly { readonly files: RegExp; readonly why: string }[] = [
  {
    files: /^packages\/programs\/src\/adapters\/pi\/pi-gate\.ts$/,
    why: "Pi gives its extensions no arguments",
  },
  {
    files: /^packages\/programs\/src\/adapters\/harness\/harness-program\.ts$/,
    why: "a program of its own",
  },
  { files: /^packages\/holdfast\/src\//, why: "the command, which composes" },
  { files: /^packages\/terminal\/src\/frame\/terminal\.ts$/, why: "the world of a command" },
  {
    files: /^packages\/runtime\/src\/node\/node-ports\.ts$/,
    why: "the ports of a Node process: it is their subject",
  },
  {
    files: /^packages\/system\/src\/secrets\/handed-keys\.ts$/,
    why: "it replaces the environment of its process",
  },
  {
    files: /^packages\/simulator\/src\/nemesis\//,
    why: "processes that are started with settings of their own",
  },
];

/**
 * Words that name nothing here (GLOSSARY.md), as whole words inside identifiers that we declare ourselves.
 * Short on purpose: a false alarm costs more than a missed one.
 */
const BANNED_WORDS = new Set(
  "workflow workflows activity activities awakeable bot helper helpers util utils manager managers impl".split(
    " ",
  ),
);

/**
 * Words of our own making inside names, each with the field's word. A pair is two words that stand side by
 * side, as in `letGo`.
 */
const HOME_MADE_WORDS: Readonly<Record<string, string>> = {
  told: "notified, redelivered or the name of the content",
  untold: "not notified",
  tell: "notify or report",
  tells: "notifies or reports",
  hear: "receive",
  hears: "receives",
  heard: "received",
  unheard: "not received",
  heir: "successor",
  heirs: "successors",
  forerunner: "predecessor",
  seat: "poller or slot",
  seats: "pollers or slots",
  mend: "fix or repair",
  mended: "fixed or repaired",
  standing: "status, health or wait",
  standings: "statuses or waits",
  stranger: "other or unrelated",
  whom: "target or the name of the role",
  "goes on": "is active",
  "go on": "continue or resume",
  "let go": "release, evict or abandon",
  "lets go": "releases, evicts or abandons",
  "brought in": "imported",
  "given back": "released",
  "give back": "release",
  "hand back": "release",
  "at hand": "kept or cached",
  "starts over": "restarts",
  "start over": "restart",
  "stands on": "is blocked on",
  "stood on": "was blocked on",
};

/** Names with such a word that are stored or sent, each with the reason. */
const STORED_NAMES: Readonly<Record<string, string>> = {
  TellSession: "the record `tell_session` of stored journals",
};

export function bannedGlobals(tree: Tree): readonly Violation[] {
  return tree.sources
    .filter(({ packageFolder, isTest }) => packageFolder !== undefined && !isTest)
    .flatMap((source) =>
      source.packageFolder === "core" ? globalsInCore(source) : worldOutsideMain(source),
    );
}

export function glossary(tree: Tree): readonly Violation[] {
  return tree.sources.flatMap((source) => {
    const stem = source.file.replace(/^.*\//, "").replace(/\..*$/, "");
    const violations: Violation[] = adviceOn(stem).map((advice) => ({
      file: source.file,
      what: `${advice} in a file's name`,
    }));
    source.walk((node, parent) => {
      const name = declaredName(node, parent);
      for (const advice of name === undefined || Object.hasOwn(STORED_NAMES, name) ? [] : adviceOn(name)) {
        const what = `${advice} in the name ${name}`;
        violations.push({ file: source.file, line: source.lineAt(node.start), what });
      }
    });
    return violations;
  });
}

/** A thrown value may have no text, or may throw when its text is read: `toError` of core reads anything. */
export function thrownIsRead(tree: Tree): readonly Violation[] {
  return tree.sources
    .filter(
      ({ packageFolder, isTest, file }) =>
        packageFolder !== undefined && !isTest && !file.endsWith("core/src/errors/errors.ts"),
    )
    .flatMap((source) => {
      const violations: Violation[] = [];
      source.walk((node) => {
        if (node.type !== "CallExpression" || nameOf(child(node, "callee")) !== "String") return;
        const name = nameOf([node["arguments"]].flat()[0] as Node | undefined) ?? "";
        if (!/^(thrown|error|reason|cause)$/.test(name)) return;
        const what = `String(${name}), which may throw: use toError(${name}).message`;
        violations.push({ file: source.file, line: source.lineAt(node.start), what });
      });
      return violations;
    });
}

/**
 * The only sources that make files for one user alone: each creates them exclusively, or never follows a link
 * (private-file-1).
 */
const MAKES_PRIVATE_FILES: ReadonlySet<string> = new Set([
  "packages/workspace/src/workspace/contained-files.ts",
  "packages/terminal/src/frame/new-file.ts",
  "packages/system/src/files/private-file.ts",
  "packages/runtime/src/tracers/file-tracer.ts",
  "packages/storage/src/sqlite-tracer/index.ts",
  "packages/storage/src/sqlite/file/plain-files.ts",
]);

/**
 * A file that is made with a mode of its user alone holds something that must not be written into what
 * somebody planted there.
 */
export function privateFiles(tree: Tree): readonly Violation[] {
  return tree.sources
    .filter(
      ({ packageFolder, isTest, file }) =>
        packageFolder !== undefined &&
        packageFolder !== "simulator" &&
        !isTest &&
        !MAKES_PRIVATE_FILES.has(file),
    )
    .flatMap((source) => {
      const violations: Violation[] = [];
      source.walk((node) => {
        if (node.type !== "CallExpression") return;
        const name = nameOf(child(node, "callee")) ?? "";
        const text = source.text.slice(node.start, node.end);
        if (/^mkdir(Sync)?$/.test(name) && /\brecursive\b/.test(text)) {
          const what = `${name} with recursive, which never returns below /proc: use makePrivateFolder of runtime's private-file.ts`;
          violations.push({ file: source.file, line: source.lineAt(node.start), what });
        }
        if (!/^(open|openSync|writeFile|writeFileSync|appendFile|appendFileSync)$/.test(name)) return;
        if (!/\b0o600\b/.test(text)) return;
        const what = `${name} with mode 0600: use createPrivate or replacePrivate of runtime's private-file.ts`;
        violations.push({ file: source.file, line: source.lineAt(node.start), what });
      });
      return violations;
    });
}

/** The functions of `node:fs` that open a file, and so close it again. */
const OPENING =
  /^(open|openSync|openAsBlob|(read|write|append|copy|truncate)File(Sync)?|create(Read|Write)Stream|cp|cpSync|promises)$/;
const OPENS_FILES = "packages/storage/src/sqlite/file/plain-files.ts";

/** Closing a descriptor of a file drops SQLite's locks on it: beside SQLite only one file opens any. */
export function sqliteLocks(tree: Tree): readonly Violation[] {
  return tree.sources
    .filter(
      ({ file, isTest }) =>
        file.startsWith("packages/storage/src/sqlite/") && !isTest && file !== OPENS_FILES,
    )
    .flatMap((source) => {
      const violations: Violation[] = [];
      source.walk((node, parent) => {
        if (node.type !== "ImportSpecifier" && node.type !== "ImportNamespaceSpecifier") return;
        const module = parent === undefined ? undefined : child(parent, "source");
        if (!/^(node:)?fs(\/promises)?$/.test(String(module?.["value"]))) return;
        const name = nameOf(child(node, "imported")) ?? "*";
        if (name !== "*" && !OPENING.test(name)) return;
        const what = `${name} of node:fs, which would drop SQLite's locks: see ${OPENS_FILES}`;
        violations.push({ file: source.file, line: source.lineAt(node.start), what });
      });
      return violations;
    });
}

/**
 * A skipped test is a debt, and a debt has a reason. The reason is a comment on its line or the line above,
 * or the argument of `skip` inside the test. The formatter moves comments from the line's end to the line
 * above.
 */
export function skipsHaveReasons(tree: Tree): readonly Violation[] {
  return tree.sources.flatMap((source) => {
    const commented = new Set(
      source.comments.flatMap(({ start, end }) => [source.lineAt(start), source.lineAt(end) + 1]),
    );
    const violations: Violation[] = [];
    source.walk((node, parent) => {
      if (node.type !== "MemberExpression") return;
      const word = nameOf(child(node, "property")) ?? "";
      const owner = nameOf(rootOf(node)) ?? "";
      if (!/^(skip|only|skipIf|runIf|todo|fails)$/.test(word)) return;
      if (!/^(test|it|describe|suite|t|ctx|context)$/.test(owner)) return;
      const line = source.lineAt(node.start);
      if (commented.has(line) || (/^(t|ctx|context)$/.test(owner) && hasTextArgument(parent))) return;
      violations.push({
        file: source.file,
        line,
        what: `${owner}.${word} without a reason, here or on the line above`,
      });
    });
    return violations;
  });
}

/** Work left for later is written down where decisions are, or it is not left. */
export function noUnlinkedTodo(tree: Tree): readonly Violation[] {
  return tree.sources.flatMap((source) =>
    source.comments.flatMap(({ value, start }) =>
      value.split("\n").flatMap((text, index) => {
        const word = /\b(TODO|FIXME)\b/.exec(text)?.[1];
        if (word === undefined || (word === "TODO" && text.includes("docs/decisions/"))) return [];
        const what =
          word === "TODO" ? "TODO without a link to docs/decisions/" : "FIXME: mend it before it goes in";
        return [{ file: source.file, line: source.lineAt(start) + index, what }];
      }),
    ),
  );
}

/** Sources run unbuilt, so what the oldest Node of `engines` cannot parse stops the command: Node 22 has no `using`. */
export function runsOnOldestNode(tree: Tree): readonly Violation[] {
  return tree.sources.flatMap((source) => {
    const violations: Violation[] = [];
    source.walk((node) => {
      if (node.type !== "VariableDeclaration" || !String(node["kind"]).endsWith("using")) return;
      const what = `"${String(node["kind"])}" is no syntax of Node 22: use try and finally`;
      violations.push({ file: source.file, line: source.lineAt(node.start), what });
    });
    return violations;
  });
}

function globalsInCore(source: Source): Violation[] {
  const violations: Violation[] = [];
  source.walk((node, parent) => {
    const name = node.type === "MemberExpression" ? memberPath(node) : nameOf(node);
    const isBanned =
      name === "Math.random" || (name !== undefined && BANNED_IN_CORE.has(name) && isReference(node, parent));
    // Asking whether a value is a Date tells no time.
    if (!isBanned || (parent?.["operator"] === "instanceof" && parent["right"] === node)) return;
    violations.push({
      file: source.file,
      line: source.lineAt(node.start),
      what: `${name} in core, which is pure: take it as an argument`,
    });
  });
  return violations;
}

function worldOutsideMain(source: Source): Violation[] {
  if (MAY_USE_THE_WORLD.some(({ files }) => files.test(source.file))) return [];
  const violations: Violation[] = [];
  source.walk((node, parent) => {
    const isConsole = nameOf(node) === "console" && isReference(node, parent);
    if (!isConsole && !(node.type === "MemberExpression" && memberPath(node) === "process.env")) return;
    const name = isConsole ? "console" : "process.env";
    const what = `${name} outside the command: take an argument, or list the file in tidy with its reason`;
    violations.push({ file: source.file, line: source.lineAt(node.start), what });
  });
  return violations;
}

/** An identifier that stands for a value, not for a property, a key or a type of that name. */
function isReference(node: Node, parent: Node | undefined): boolean {
  if (node.type !== "Identifier" || parent === undefined) return false;
  if (parent.type.startsWith("TS") && !/^TS(As|NonNull|Satisfies|TypeAssertion)/.test(parent.type))
    return false;
  const isNamed = parent["key"] === node || parent["property"] === node || parent["label"] === node;
  if (isNamed && parent["computed"] !== true && parent["shorthand"] !== true) return false;
  return !/^(Import|Export).*Specifier$/.test(parent.type);
}

/** The name that this identifier brings into being, if it does: a binding, a member or a type of ours. */
function declaredName(node: Node, parent: Node | undefined): string | undefined {
  const name = nameOf(node);
  if (name === undefined || parent === undefined) return undefined;
  if (/^(MethodDefinition|PropertyDefinition|TS(Property|Method)Signature)$/.test(parent.type)) {
    return parent["key"] === node ? name : undefined;
  }
  if (/^(VariableDeclarator|ClassDeclaration|TS(Interface|TypeAlias)Declaration)$/.test(parent.type)) {
    return parent["id"] === node ? name : undefined;
  }
  const isFunction = /Function(Declaration|Expression)$/.test(parent.type);
  return isFunction && (parent["id"] === node || [parent["params"]].flat().includes(node)) ? name : undefined;
}

/** The banned and home-made words in a name, each with the word to write. */
function adviceOn(name: string): string[] {
  const words = name
    .split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+/)
    .map((word) => word.toLowerCase())
    .filter((word) => word !== "");
  const pairs = words.slice(1).map((word, index) => `${words[index]} ${word}`);
  return [
    ...words
      .filter((word) => BANNED_WORDS.has(word))
      .map((word) => `"${word}" (GLOSSARY.md has the word we use)`),
    ...[...words, ...pairs].flatMap((word) => {
      const ours = Object.hasOwn(HOME_MADE_WORDS, word) ? HOME_MADE_WORDS[word] : undefined;
      return ours === undefined ? [] : [`"${word}" (write ${ours})`];
    }),
  ];
}

/** `a.b` for a plain member access; what follows an optional chain or brackets is no path. */
function memberPath(node: Node): string | undefined {
  const object = nameOf(child(node, "object"));
  const property = nameOf(child(node, "property"));
  return object === undefined || property === undefined || node["computed"] === true
    ? undefined
    : `${object}.${property}`;
}

function rootOf(node: Node): Node {
  const inner = child(node, "object") ?? child(node, "callee");
  return inner === undefined ? node : rootOf(inner);
}

function hasTextArgument(call: Node | undefined): boolean {
  return [call?.["arguments"]]
    .flat()
    .some((argument) => /^(Literal|TemplateLiteral)$/.test((argument as Node)?.type));
}
