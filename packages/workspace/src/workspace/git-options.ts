// How Holdfast calls git (`gitOptions`): never interactive, and without the programs that a repository may
// name.
//
//   - A repository may come from an agent. No call runs its hooks, pager, editor, file monitor or signing
//     program.
//   - Filters stay on, because they belong to the content of files (such as that of Git LFS). Where a
//     repository may be an agent's, `programsOf` finds the filters that its own configuration names, and
//     `withoutPrograms` switches them off for one call.
//   git-options-3. No call enters a repository inside of another one, whose configuration an agent may have
//       written. Calls that compare files have `SHALLOW`, and `stage.ts` stages files. `git add` has no such
//       option.

export type GitEnvironment = Readonly<Record<string, string>>;

/** Options of every call, and with `runHooks` without the last ones. */
export function gitOptions(runHooks: boolean): readonly string[] {
  return ["--no-pager", ...QUIET.flatMap((setting) => ["-c", setting]), ...(runHooks ? [] : NO_HOOKS)];
}

const QUIET = [
  "core.fsmonitor=false",
  "core.quotePath=false",
  "commit.gpgSign=false",
  "log.showSignature=false",
  "submodule.recurse=false",
  // Its upkeep outlives the call.
  "gc.auto=0",
  "maintenance.auto=false",
  // A folder that looks like a bare repository would otherwise give git a configuration, and with it programs
  // to run.
  "safe.bareRepository=explicit",
];
const NO_HOOKS = ["-c", "core.hooksPath=/dev/null"];

/** The commit of a repository inside is compared, and nothing else of it (git-options-3). */
export const SHALLOW = "--ignore-submodules=dirty";
/** A difference without programs, and without the differences inside of other repositories. */
export const PLAIN_DIFF = ["--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", SHALLOW];

/**
 * Git's output is read here, so it must not be translated. The first variable sets git's own locale, and the
 * second overrides all others.
 */
const UNTRANSLATED = { LC_MESSAGES: "C", LANGUAGE: "C" };
/** The variables of every call. */
export const GIT_ENVIRONMENT: GitEnvironment = {
  // Objects and parents as they are stored. A ref or a file could show others in their place.
  GIT_NO_REPLACE_OBJECTS: "1",
  // A file that cannot be: for an empty one, git prints an advice with each call.
  GIT_GRAFT_FILE: "/dev/null/none",
  GIT_TERMINAL_PROMPT: "0",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_EDITOR: "true",
  ...UNTRANSLATED,
};

/** The command of git, behind the options that go before it. */
export function commandOf(args: readonly string[]): string {
  return args.find((arg, at) => !arg.startsWith("-") && args[at - 1] !== "-c") ?? "";
}

/** A call that lists the keys of all settings with their scopes, and runs nothing. */
export const LIST_SETTINGS = ["config", "--list", "--show-scope", "--name-only", "-z"];
/** The scopes of the repository itself. The others are the user's and the system's. */
const OWN_SCOPES: readonly string[] = ["local", "worktree"];
const PROGRAM = /^(filter\..+\.(clean|smudge|process)|hook\..+\.command)$/s;

/** The settings of the repository itself that name programs which a call may run. */
export function programsOf(listed: string): readonly string[] {
  const parts = listed.split("\0");
  const keys = parts.filter(
    (key, at) => at % 2 === 1 && OWN_SCOPES.includes(parts[at - 1] ?? "") && PROGRAM.test(key),
  );
  return [...new Set(keys)];
}

/**
 * Variables that set the keys to nothing. Variables and not options, because the name of a filter may contain
 * `=`. A call with them starts no transport either: a repository can name the program of one.
 */
export function withoutPrograms(keys: readonly string[]): GitEnvironment {
  const off = keys.flatMap((key) => {
    const [driver] = /^filter\..+(?=\.)/s.exec(key) ?? [];
    return driver === undefined
      ? [[key, ""]]
      : [
          [key, ""],
          [`${driver}.required`, "false"],
        ];
  });
  const settings = off.flatMap(([key = "", value = ""], at) => [
    [`GIT_CONFIG_KEY_${at}`, key],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ]);
  return {
    GIT_ALLOW_PROTOCOL: "none",
    GIT_CONFIG_COUNT: String(off.length),
    ...(Object.fromEntries(settings) as Record<string, string>),
  };
}
