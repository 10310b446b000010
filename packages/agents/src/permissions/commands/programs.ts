// Programs that start other programs: `WRAPPERS`, `HIDING_PROGRAMS`, `INTERPRETERS` and `CAREFUL_PROGRAMS`.
// `sed` has its own file, `sed-script.ts`.
//
// A program that is not here is taken as one that starts no other. The tables are complete for the usual
// programs of a system, and no table can be complete: a sandbox is the boundary.

/** A program whose arguments are another command. */
export interface Wrapper {
  /** Letters of options without a value. */
  readonly flags?: string;
  /** Letters of options with a value. */
  readonly values?: string;
  readonly longFlags?: readonly string[];
  readonly longValues?: readonly string[];
  /** The number of arguments before the command. */
  readonly operands?: number;
  /** `NAME=value` may stand before the command. */
  readonly takesAssignments?: true;
  /** It adds arguments that the line does not show. */
  readonly addsArguments?: true;
  /** A rule that allows the command behind it allows both. `plain`: only without options of the wrapper. */
  readonly isHarmless?: "plain" | "always";
}

export const WRAPPERS: Readonly<Record<string, Wrapper>> = {
  builtin: {},
  busybox: {},
  caffeinate: { flags: "disum", values: "tw" },
  command: { flags: "p", isHarmless: "always" },
  doas: { flags: "Lns", values: "aCu" },
  env: {
    flags: "i0v",
    values: "uC",
    longFlags: ["ignore-environment", "null", "debug"],
    longValues: ["unset", "chdir"],
    takesAssignments: true,
  },
  exec: { flags: "cl", values: "a" },
  ionice: { flags: "t", values: "cn", longFlags: ["ignore"], longValues: ["class", "classdata"] },
  nice: { flags: "0123456789", values: "n", longValues: ["adjustment"], isHarmless: "always" },
  nohup: { isHarmless: "plain" },
  npx: { flags: "yq", longFlags: ["yes", "no", "quiet"] },
  setsid: { flags: "cfw", longFlags: ["ctty", "fork", "wait"] },
  stdbuf: { values: "ioe", longValues: ["input", "output", "error"], isHarmless: "always" },
  sudo: {
    flags: "AbEeHiKklnPSsVv",
    values: "CDghpRrTtUu",
    longFlags: [
      "askpass",
      "background",
      "login",
      "non-interactive",
      "preserve-env",
      "set-home",
      "shell",
      "stdin",
    ],
    longValues: ["chdir", "chroot", "close-from", "group", "host", "prompt", "user"],
    takesAssignments: true,
  },
  time: {
    flags: "apqvV",
    values: "fo",
    longFlags: ["append", "portability", "quiet", "verbose"],
    longValues: ["format", "output"],
    isHarmless: "plain",
  },
  timeout: {
    flags: "fpv",
    values: "ks",
    longFlags: ["foreground", "preserve-status", "verbose"],
    longValues: ["kill-after", "signal"],
    operands: 1,
    isHarmless: "always",
  },
  toybox: {},
  xargs: {
    flags: "0oprtx",
    values: "adEILnPs",
    longFlags: ["exit", "interactive", "no-run-if-empty", "null", "open-tty", "verbose"],
    longValues: ["arg-file", "delimiter", "eof", "max-args", "max-chars", "max-lines", "max-procs"],
    addsArguments: true,
  },
};

/** Programs that run what no line shows, or that change what later words of the line mean. */
export const HIDING_PROGRAMS: ReadonlySet<string> = new Set(
  (
    "eval source . alias unalias trap hash enable bind complete fc ssh mosh su runuser script " +
    "parallel watch at batch crontab expect entr unshare nsenter chroot systemd-run strace ltrace " +
    "gdb flock taskset chrt setpriv prlimit screen tmux fish zsh ksh mksh csh tcsh vim vi ex ed nvim view vimdiff " +
    "rview rvim emacs nano setarch linux32 linux64 i386 x86_64 uname26 choom capsh sg newgrp pkexec runcon " +
    "start-stop-daemon daemon fakeroot proot firejail bwrap socat nc ncat"
  ).split(" "),
);

/** Shells whose `-c` is read as a line. */
export const SHELLS: ReadonlySet<string> = new Set(["sh", "bash", "dash", "ash", "rbash"]);

/** The letters of options that give a program text as its script, by the name of an interpreter without its version. */
export const INTERPRETERS: Readonly<Record<string, string>> = {
  bun: "ep",
  deno: "",
  elixir: "e",
  groovy: "e",
  julia: "eE",
  lua: "e",
  luajit: "e",
  node: "ep",
  nodejs: "ep",
  osascript: "e",
  perl: "eE",
  php: "rBRE",
  pwsh: "cCeE",
  pypy: "c",
  python: "c",
  rscript: "e",
  ruby: "e",
  tclsh: "c",
};

/** Options and other arguments of a program. */
export interface Arguments {
  /** Letters of options, also within a group of letters such as `-cI`. */
  readonly letters?: string;
  /** Long options. Programs take the beginning of one for the whole. */
  readonly long?: string;
  readonly words?: RegExp;
}

export interface CarefulProgram {
  /** With one of these it may start another command. */
  readonly hiding?: Arguments;
  /** With one of these no pattern `PROGRAM …:*` covers it: it writes a file, or reads any file of the machine. */
  readonly uncovered?: Arguments;
}

const AWK: CarefulProgram = {
  hiding: { letters: "filE", long: "file include load exec", words: /system|\||getline|@/ },
  uncovered: { words: />/ },
};
const MAKE: CarefulProgram = {
  hiding: { letters: "fE", long: "file makefile eval", words: /^-$|^\.?(SHELL|SHELLFLAGS|MAKEFLAGS)=/ },
};
const PACKAGES: CarefulProgram = {
  hiding: { letters: "c", long: "call script-shell shell node-options", words: /^(explore|create|init)$/ },
};

export const CAREFUL_PROGRAMS: Readonly<Record<string, CarefulProgram>> = {
  ag: { hiding: { long: "pager" } },
  awk: AWK,
  gawk: AWK,
  mawk: AWK,
  nawk: AWK,
  compgen: { hiding: { letters: "CF" } },
  curl: {
    uncovered: {
      letters: "oOKDcT",
      long:
        "output remote-name remote-name-all config create-dirs dump-header cookie-jar trace trace-ascii stderr " +
        "output-dir etag-save etag-compare hsts alt-svc libcurl upload-file netrc-file cert key cacert",
      words: /@|^-F.*<|^\w+=</,
    },
  },
  find: {
    hiding: { words: /^-(exec|execdir|ok|okdir)$/ },
    uncovered: { words: /^-(delete|fprint0?|fprintf|fls)$/ },
  },
  fd: { hiding: { letters: "xX", long: "exec exec-batch" } },
  git: {
    hiding: {
      long:
        "config-env config exec exec-path open-files-in-pager upload-pack receive-pack ext-diff extcmd textconv " +
        "upload-archive strategy editor",
      words: /^(foreach|filter-branch|bisect|difftool|mergetool|config)$/,
    },
    // Two paths of which one is outside of the folder are read like `--no-index`.
    uncovered: {
      letters: "coF",
      long: "output output-directory no-index config contents file pathspec-from-file template ignore-revs-file",
      words: /^(-{1,2}[\w-]*=?)?([/~]|\.\.(\/|$))|\/\.\.(\/|$)/,
    },
  },
  jobs: { hiding: { letters: "x" } },
  less: { hiding: { letters: "kKoO", long: "lesskey-file lesskey-src log-file LOG-FILE", words: /^\+/ } },
  make: MAKE,
  gmake: MAKE,
  man: { hiding: { letters: "PHC", long: "pager html config-file" } },
  mapfile: { hiding: { letters: "C" } },
  more: { hiding: { words: /^\+/ } },
  npm: PACKAGES,
  pnpm: PACKAGES,
  yarn: PACKAGES,
  readarray: { hiding: { letters: "C" } },
  rg: { hiding: { long: "pre hostname-bin" }, uncovered: { letters: "f", long: "file ignore-file" } },
  rsync: { hiding: { letters: "e", long: "rsh rsync-path" } },
  scp: { hiding: { letters: "SoJFD" } },
  sftp: { hiding: { letters: "SoJFDb" } },
  sort: {
    hiding: { long: "compress-program" },
    uncovered: { letters: "oT", long: "output files0-from temporary-directory" },
  },
  split: { hiding: { long: "filter" } },
  sqlite3: {
    hiding: { words: /(^|\n)\s*\.|^--?(init|cmd)|load_extension|writefile|readfile|edit\s*\(/i },
  },
  tar: {
    // Its first argument may be letters without a dash.
    hiding: {
      letters: "IF",
      long:
        "to-command checkpoint-action use-compress-program rsh-command rmt-command info-script " +
        "new-volume-script",
      words: /^[a-zA-Z]*[IF][a-zA-Z]*$/,
    },
    uncovered: { letters: "T", long: "files-from index-file" },
  },
  uniq: { uncovered: { words: /^[^-+]/ } },
  wc: { uncovered: { long: "files0-from" } },
  zip: { hiding: { letters: "T", long: "unzip-command" } },
};

/** The letters of options with which a command of git starts a program. */
export const GIT_LETTERS: Readonly<Record<string, string>> = { clone: "cu", grep: "O", rebase: "x" };

/** Builtins of shells that read some of their arguments as arithmetic, in which `$(…)` is a command. */
export const ARITHMETIC_BUILTINS: ReadonlySet<string> = new Set(
  "[ test let read unset printf declare typeset local export readonly wait getopts mapfile readarray".split(
    " ",
  ),
);

/** Variables by which a program starts another one, or finds its programs or its settings elsewhere. */
export const DECISIVE_VARIABLE =
  /^(GIT_|LD_|DYLD_|BASH|ENV\b|PS4\b|PROMPT_COMMAND\b|PATH\b|IFS\b|SHELL|\w*(PAGER|EDITOR|OPTIONS|OPTS?)\b|VISUAL\b|BROWSER\b|LESS|MAN|RSYNC_|NODE_|PYTHON|PERL|RUBY|MAKE|npm_config_|SSH_|SUDO_|HOME\b|XDG_)/i;

/** The programs that start a command as `npx` does, after one of these words. */
export const PACKAGE_RUNNERS: Readonly<Record<string, RegExp>> = {
  bun: /^x$/,
  npm: /^(exec|x)$/,
  pnpm: /^(exec|dlx)$/,
  yarn: /^(exec|dlx)$/,
};

/** Whether an argument is one of these. */
export function isOneOf({ letters = "", long = "", words }: Arguments, arg: string): boolean {
  if (words?.test(arg) === true) return true;
  if (arg.startsWith("--")) {
    const [name = ""] = arg.slice(2).split("=");
    return name !== "" && long.split(" ").some((one) => one !== "" && one.startsWith(name));
  }
  return /^-[^-]/.test(arg) && letters.split("").some((letter) => arg.includes(letter, 1));
}
