// Programs that start other programs: `WRAPPERS`, `HIDING_PROGRAMS`, `INTERPRETERS` and `CAREFUL_PROGRAMS`.
//
// A program that is not here is taken as one that starts no other. The tables are complete for the usual programs of a system, and
// no table can be complete: a sandbox is the boundary.

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
    "gdb flock taskset chrt setpriv prlimit screen tmux fish zsh ksh mksh csh tcsh vim vi ex ed"
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

export interface CarefulProgram {
  /** An argument with which it may start another command. */
  readonly hiding?: RegExp;
  /** An argument that no pattern `PROGRAM …:*` covers: the program writes a file with it, or reads any file of the machine. */
  readonly uncovered?: RegExp;
}

const AWK: CarefulProgram = { hiding: /system|\||getline|@|^-(f|i|l|E)|^--(file|include|load|exec)/ };

export const CAREFUL_PROGRAMS: Readonly<Record<string, CarefulProgram>> = {
  awk: AWK,
  gawk: AWK,
  mawk: AWK,
  nawk: AWK,
  find: { hiding: /^-(exec|execdir|ok|okdir)$/, uncovered: /^-(delete|fprint0?|fprintf|fls)$/ },
  fd: { hiding: /^(-[a-zA-Z]*[xX]|--exec.*)$/ },
  git: {
    hiding:
      /^(-c.*|--config-env.*|--exec.*|-x.*|-O.*|--open.*|--upload-p.*|--receive-p.*|--ext.*|--extcmd.*|foreach|filter-branch|bisect|difftool|mergetool|config)$/,
    // Git takes the beginning of an option for the option. Two paths of which one is outside of the folder are read like `--no-index`.
    uncovered:
      /^(--o(u(t(p(u(t)?)?)?)?)?(=.*)?|--no-(i(n(d(e(x)?)?)?)?)?|-c|-o.*|--config.*)$|^([/~]|\.\.(\/|$))|\/\.\.(\/|$)/,
  },
  rsync: { hiding: /^(-[a-zA-Z]*e.*|--rsh.*|--rsync-path.*)$/ },
  scp: { hiding: /^-(S|o|J).*/ },
  sed: {
    hiding: /(^|[;{}\s\d$/])e(\s|$|;)|\/[gpimIM0-9]*e[gpimIM0-9w]*\s*(;|\}|$)/,
    uncovered: /^(-[a-zA-Z]*i.*|--in.*)$|(^|[;{}\s\d$/])w\s/,
  },
  sort: { hiding: /^--compress.*/, uncovered: /^(-[a-zA-Z]*o.*|--o.*)$/ },
  tar: {
    hiding: /^(--to-command|--checkpoint-action|--use-compress|--rsh|--info-script|--new-volume|-I|-F).*/,
  },
};
