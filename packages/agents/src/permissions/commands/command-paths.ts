// `comparePaths`: whether a command touches a path that a rule for file tools names. Pure.
//
// Redirections and the arguments of `FILE_COMMANDS` are compared. A path that a line does not show, an
// absolute one, and one after `cd` may match every rule. The same is true of a command that goes through
// folders, and of one of git that shows or restores contents.
//
// Leaky: a program that is not in the table reads and writes what it likes, and links are not followed.

import type { PermissionRule } from "../../record/agent-record.ts";
import { normalizeGlob, normalizePath, isOutside, pathFilter } from "@holdfast/workspace";
import { nameOf, type ReadCommand } from "./command-readings.ts";
import { isOneOf, type Arguments } from "./programs.ts";
import type { Comparison } from "./command-rules.ts";
import type { WordValue } from "./shell-line.ts";

type Access = "read" | "write";

/** Programs by their use of the files among their arguments. */
const READING = (
  "cat head tail less more grep egrep fgrep rg ag wc sort uniq cut awk gawk mawk diff cmp od xxd hexdump strings base64 base32 nl tac rev " +
  "paste join comm jq yq find fd tree ls stat md5sum sha1sum sha256sum sha512sum cksum fold fmt pr source . sh bash dash"
).split(" ");
const WRITING = "rm rmdir unlink touch mkdir tee truncate chmod chown chgrp patch shred mkfifo mktemp".split(
  " ",
);
const BOTH =
  "sed split cp mv ln dd install git tar zip unzip gzip gunzip bzip2 xz zstd rsync scp curl wget nano perl sqlite3 openssl gpg ed ex vi vim".split(
    " ",
  );

const FILE_COMMANDS: ReadonlyMap<string, readonly Access[]> = new Map<string, readonly Access[]>([
  ...READING.map((name) => [name, ["read"]] as const),
  ...WRITING.map((name) => [name, ["write"]] as const),
  ...BOTH.map((name) => [name, ["read", "write"]] as const),
]);

const GOING_THROUGH: ReadonlySet<string> = new Set("rg ag find fd tree tar zip rsync mv git".split(" "));
const RECURSIVE: Arguments = {
  letters: "rRa",
  long: "recursive archive dereference-recursive directories",
  words: /^(-[a-zA-Z]*d)?recurse$/,
};
/** Options with a file that names the files. */
const LISTS: Arguments = { long: "files0-from files-from exclude-from" };
/** The commands of git that name files alone, or none, with options that show no contents. */
const PLAIN_GIT: ReadonlySet<WordValue> = new Set(
  "add branch commit fetch init log ls-files mv push remote rev-parse rm status tag".split(" "),
);
/** The commands of git that touch no file of the folder unless a path names it. */
const NO_FILE_GIT: ReadonlySet<WordValue> = new Set(
  "branch commit fetch init log ls-files push remote rev-parse status tag".split(" "),
);
const PLAIN_GIT_OPTION =
  /^(-[nmabsfdDArq]+|-\d+|-n\d+|--(oneline|stat|shortstat|name-only|name-status|all|graph|decorate|short|branch|porcelain|amend|no-edit|message|format|pretty|since|until|after|before|author|max-count|force-with-lease|set-upstream|tags|prune|quiet|cached|others|exclude-standard|abbrev-commit|abbrev-ref|show-toplevel|show-current|verify|no-verify|no-color|force|delete|allow-empty)(=.*)?|--|-)$/s;

/** The rules that the commands of a shell are compared with. */
export function pathRules(rules: readonly PermissionRule[]): readonly PermissionRule[] {
  return rules.filter(
    ({ decision, tool, pattern }) =>
      decision !== "allow" && pattern !== null && pattern !== "*" && accessOf(tool) !== undefined,
  );
}

function accessOf(tool: string): Access | undefined {
  if (tool === "read_file") return "read";
  return tool === "edit_file" || tool === "write_file" ? "write" : undefined;
}

/** @param hasMoved whether a command of the line changes the folder of the others. */
export function comparePaths(rule: PermissionRule, command: ReadCommand, hasMoved: boolean): Comparison {
  const access = accessOf(rule.tool);
  const glob = normalizeGlob(rule.pattern ?? "");
  const isForbidden = pathFilter([glob]);
  const compare = (path: WordValue, goesThrough: boolean): Comparison => {
    if (path === null) return "may match";
    const plain = normalizePath(path);
    if (isForbidden(plain)) return "matches";
    if (hasMoved || isOutside(plain)) return "may match";
    return goesThrough && mayBeBelow(glob, plain) ? "may match" : "differs";
  };
  const found: Comparison[] = command.files
    .filter(({ path, isWritten }) => path !== "/dev/stdin" && (isWritten ? "write" : "read") === access)
    .map(({ path }) => compare(path, false));
  if (command.isHidden || command.runsFile !== undefined) found.push("may match");
  for (const { words } of command.readings) {
    const [program, ...args] = words;
    if (program === undefined || program === null) continue;
    const name = nameOf(program);
    if (access === undefined || FILE_COMMANDS.get(name)?.includes(access) !== true) continue;
    const has = (options: Arguments): boolean => args.some((arg) => arg !== null && isOneOf(options, arg));
    const goesThrough = GOING_THROUGH.has(name) || has(RECURSIVE);
    if (has(LISTS) || (name === "tar" && has({ letters: "T" })) || (name === "git" && !isPlainGit(args)))
      found.push("may match");
    const named = name === "git" && NO_FILE_GIT.has(args[0] ?? null) ? args.slice(1) : args;
    found.push(...operandsOf(named, goesThrough && name !== "git").map((path) => compare(path, goesThrough)));
    found.push(...attachedTo(args).map((path) => compare(path, false)));
  }
  return found.find((one) => one === "matches") ?? found.find((one) => one === "may match") ?? "differs";
}

function isPlainGit([command = null, ...args]: readonly WordValue[]): boolean {
  if (!PLAIN_GIT.has(command)) return false;
  const isUpdate = command === "add" || command === "push";
  return args.every(
    (arg) => arg?.startsWith("-") !== true || PLAIN_GIT_OPTION.test(arg) || (isUpdate && arg === "-u"),
  );
}

/**
 * Words that are paths, or may be: also the value of an option, the path behind the name of a commit, and
 * that behind `@`.
 */
function operandsOf(args: readonly WordValue[], goesThrough: boolean): readonly WordValue[] {
  const operands = args.filter((arg) => arg?.startsWith("-") !== true);
  const paths = operands.flatMap((arg) => (arg === null ? [null] : [arg, ...valuesIn(arg)]));
  return goesThrough && operands.length < 2 ? [...paths, "."] : paths;
}

/** Values of options in their own words. In a group of letters a value stands behind any of them. */
function attachedTo(args: readonly WordValue[]): readonly string[] {
  return args
    .filter((arg) => arg?.startsWith("-") === true)
    .flatMap((arg) => (/^-[^-]/.test(arg!) ? Array.from(arg!, (_, at) => arg!.slice(at + 2)) : [arg!]))
    .flatMap((value) => [value, ...valuesIn(value)])
    .filter((value) => value !== "" && !value.startsWith("-"));
}

function valuesIn(word: string): readonly string[] {
  const found = [/^-{0,2}[\w-]+=(.+)$/s, /^(?!https?:)[^:]*:(.+)$/s, /[@<](.+)$/s].map(
    (value) => value.exec(word)?.[1],
  );
  return found.filter((value) => value !== undefined);
}

/** Whether a glob may match something below a folder. */
function mayBeBelow(glob: string, folder: string): boolean {
  const fixed = /^[^*?[{]*/.exec(glob)?.[0] ?? "";
  return folder === "." || fixed === "" || fixed.startsWith(`${folder}/`) || `${folder}/`.startsWith(fixed);
}

/** Whether a command changes the folder in which the others of its line begin. */
export function changesFolder({ readings }: ReadCommand): boolean {
  return readings.some(
    ({ words: [program] }) => typeof program === "string" && /^(cd|pushd|popd)$/.test(program),
  );
}
