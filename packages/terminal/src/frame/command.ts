// The type of a command (`Command`): data for the help, and one function. The function cannot see `process`.
// It receives `Io` instead, so tests can call it.

import type { Readable } from "node:stream";
import type { OwnKeys } from "@holdfast/system";

/**
 * The words that a command line may have. Usage, help, errors, completion and `docs/commands.md` are all made
 * of it (`help.ts`), so nothing of it is written a second time.
 */
export type Syntax = (WithArguments | WithActions) & {
  readonly name: string;
  /** The options that the command has beside the common ones; with actions, those of all of them. */
  readonly options: Options;
  /** The common options that it does not have, each with what to do instead. */
  readonly lacks?: Readonly<Record<string, string>>;
};

interface WithArguments {
  /** The arguments, in their order; without them there are none. */
  readonly takes?: readonly Argument[];
  readonly actions?: never;
  readonly defaultAction?: never;
}

/** A command whose first word is an action. Its arguments are those of its actions. */
interface WithActions {
  readonly takes?: never;
  readonly actions: Readonly<Record<string, Action>>;
  /**
   * The action of a command line that names none. It takes no arguments, because the first word of the line is
   * always read as an action.
   */
  readonly defaultAction?: string;
}

export interface Argument {
  /** As a usage line shows it: `FILE`, `NAME|PATH`, and in small letters what is written as it is. */
  readonly name: string;
  /** Its name in the error when it is missing, such as "the session's id". */
  readonly is: string;
  /** How to mend it when it is missing. */
  readonly ifMissing?: string;
  /** How to mend it when one more word follows, such as by quotes. */
  readonly ifMore?: string;
  readonly optional?: true;
  readonly repeats?: true;
  /** The option that stands in its place. */
  readonly orOption?: string;
  /** Stands behind `--`, because it holds options of another program. */
  readonly afterDashes?: true;
  /** A word behind it may be a secret in the wrong place. The command refuses it itself, without repeating it. */
  readonly leavesRest?: true;
}

/** One action of a command, such as `list`. */
export interface Action {
  readonly does: string;
  readonly takes?: readonly Argument[];
  /** The names of the options that it has; without them there are none. */
  readonly options?: readonly string[];
}

export type Command = Syntax & {
  /** A paragraph for the command's own help, where its line in the list of commands is not enough. */
  readonly description?: string;
  readonly options: Options;
  /** Command lines after `holdfast`, each with its effect. */
  readonly examples: readonly (readonly [commandLine: string, does: string])[];
  readonly run: (args: Arguments, io: Io) => Promise<number>;
};

export type Options = Readonly<Record<string, Option>>;

export interface Option {
  readonly help: string;
  /** The name of the value in the help; an option without it is a switch. */
  readonly value?: string;
  /** One letter. */
  readonly short?: string;
  /** May be given more than once; `texts` has all of them. */
  readonly repeats?: true;
  /** Takes all words up to the next option, as a shell writes them for `*.md`. */
  readonly takesMore?: true;
  /** Options that cannot be given together with this one. */
  readonly excludes?: readonly string[];
  /** Needed by the actions that have it, or one of those that exclude each other. */
  readonly required?: true;
}

/** A command line that was checked against the options of its command. */
export interface Arguments {
  /** The action, for a command that has actions. */
  readonly action: string | undefined;
  /** The arguments, without the action. There are as many as the command, or its action, takes. */
  readonly positionals: readonly string[];
  /** The usage line of the command, or of its action, for errors. */
  readonly usage: string;
  has(option: string): boolean;
  text(option: string): string | undefined;
  texts(option: string): readonly string[];
}

/** Options that every command has; where one means something else, its own goes before. */
export const COMMON_OPTIONS: Options = {
  json: { help: "write JSON for programs instead of text for people" },
  db: { help: "the database to use (default: .holdfast/holdfast.db in the project)", value: "PATH" },
  url: {
    help: "a coordinator to ask instead of a database (default: HOLDFAST_URL, if it is set)",
    value: "URL",
    excludes: ["db"],
  },
  "token-file": {
    help: "a file with the token for a coordinator (default: HOLDFAST_TOKEN, or the file a coordinator made here)",
    value: "FILE",
  },
  debug: { help: "show where errors come from" },
  help: { help: "show this help", short: "h" },
};

/** The argument of the actions that are about one thing with a name. */
export const NAME_ARGUMENT: Argument = { name: "NAME", is: "the name" };

/** The argument of the commands that are about one session. */
export const SESSION_ARGUMENT: Argument = {
  name: "ID",
  is: "the session's id",
  ifMissing: "run `holdfast list` to see all sessions",
};

/** The same where `--last` may stand in its place. */
export const SESSION_OR_LAST: Argument = {
  ...SESSION_ARGUMENT,
  is: "the session (its id, or --last)",
  orOption: "last",
};

/** The option of the commands that move a session; `--db` names the other end. */
export const OTHER_END_OPTION: Option = {
  help: "the coordinator (default: HOLDFAST_URL, or http://127.0.0.1:8765)",
  value: "URL",
};

/** The option `--trace` of the commands that run a session. */
export const ENV_OPTION: Option = {
  help: "a variable for the commands and MCP servers of an agent file that names it; may be given more than once, not for secrets",
  value: "KEY=VALUE",
  repeats: true,
};

export const ENV_REF_OPTION: Option = {
  help: "an environment, after those that the agent file names; may be given more than once (`holdfast env list`)",
  value: "NAME",
  repeats: true,
};

export const TRACE_OPTION: Option = {
  help: "trace to stdout, file:PATH, sqlite:PATH or otlp[:URL]; may be given more than once",
  value: "WHERE",
  repeats: true,
};

/** The option of the commands that run sessions of loaded agents. */
export const SECRET_STDIN_OPTION: Option = {
  help: "read the value of this declared secret from standard input",
  value: "NAME",
};

/** The options of the commands that start a runner. */
export const EXECUTOR_OPTIONS: Options = {
  executor: {
    help: "run sessions of this executor: executors/NAME/ with one program ao-*-exec, profiles/NAME.json, or an included program such as claude-code",
    value: "NAME",
    short: "x",
    excludes: ["executor-path"],
  },
  "executor-path": {
    help: "run sessions of the executor at this path (default: AGENT_EXECUTOR_PATH)",
    value: "PATH",
    short: "e",
  },
  policy: {
    help: "a JSON file with what this runner may do, whatever its coordinator asks for (default: holdfast/runner-policy.json in your configuration folder)",
    value: "FILE",
  },
};

/** The option `--mode` of the commands of a fleet. */
export const MODE_OPTION: Option = {
  help: "local or cloud, which chooses defaults (default: HOLDFAST_MODE, MODE, or local)",
  value: "local|cloud",
};

/** The option `--supervised` of the processes of the local stack. */
export const SUPERVISED_OPTION: Option = {
  help: "run as a process of `holdfast local`, which hands over what it needs, and end with it",
};

/** The option `--for-trials` of the processes that a runner starts. */
export const FOR_TRIALS_OPTION: Option = {
  help: "run as a process of another runner, which hands over what it needs, for sessions that were lost repeatedly",
};

/** The option `--verbose` of the commands that show a session at work. */
export const VERBOSE_OPTION: Option = {
  help: "show every recorded event of the session, and not only its work",
  short: "v",
};

/** The option `--detach` of the commands that run a session. */
export const DETACH_OPTION: Option = {
  help: "run it in the background: print the session's id and return (`holdfast attach ID`)",
  short: "d",
};

/** The option `--grace` of the commands that run sessions. */
export const GRACE_OPTION: Option = {
  help: "how long running steps may take to end when the process is stopped, such as 2m (default: 25s)",
  value: "DURATION",
};

/**
 * The world of a command. Results go to standard output and everything else to standard error.
 *
 * With `--json` a command writes one value on one line. A command that follows something writes one for each
 * event, whose `type` says what it is.
 *
 *   - A list is an array with an object for each row, and an empty one is `[]`. A list that says more is an
 *     object with the rows in one field: that of the inbox has `next` beside `items`.
 *   - One thing is an object. Its fields have the names that they have elsewhere, such as `sessionId`.
 *   - A change is an object with the id of what was changed and its `status`, where it has one.
 */
export interface Io {
  readonly isJson: boolean;
  readonly cwd: string;
  /** The variables of this process, and the secrets that `supply` was given. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The keys in the environment of this process. */
  readonly keys: OwnKeys;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  /** How notes look, and how results do: they may go to different places. */
  readonly notes: Look;
  readonly results: Look;
  /** The present size of the terminal that notes go to; `undefined` when it is none, or tells no size. */
  terminalSize(): { readonly columns: number; readonly rows: number } | undefined;
  /** Whether nobody reads standard output any more. */
  readonly isOutputClosed: boolean;

  /** A result that is the user's data, such as an id: the value as one line of JSON, or the text as it is. */
  result(value: unknown, text: string): void;
  /** A result that is our own text, with whatever colours it has. */
  show(value: unknown, text: string): void;
  /**
   * Data of the user's as it is, piece by piece, as fast as it is read. Resolves when all is written, or
   * nobody reads any more.
   */
  stream(pieces: AsyncIterable<string>): Promise<void>;
  /** A line for people, on standard error; not written with `--json`. */
  note(line: string): void;
  /**
   * Shows a line below everything else while work goes on, and draws it again and again. Only on a terminal.
   *
   * @param line the line at this moment; an empty one is not drawn. `undefined` ends it.
   */
  status(line: (() => string) | undefined): void;
  /** A piece of text for people, on standard error, without a line break of its own. */
  write(text: string): void;
  /** An error, on standard error. Answers the exit code that goes with it. */
  complain(error: unknown): number;
  /** Sets the text that is shown if the process must end without warning. */
  lastWords(text: string | undefined): void;
  /** Adds secrets to `env`. The environment of the process itself stays without them. */
  supply(secrets: ReadonlyMap<string, string>): void;
  /** Passes everything that this process writes from now on through a function, also what agents print. */
  filterOutput(filter: (text: string) => string): void;
  /** Whether these functions change a text: most likely it holds a secret. */
  hides(text: string): boolean;
  /**
   * How to call us: `holdfast resume ID`, with what this call was told about where sessions are, or with
   * `where` in its place.
   */
  call(commandLine: string, where?: string): string;
  /** Hear of Ctrl-C and of requests to end; until the returned function is called they do not end the process. */
  onStop(listener: (signal: StopSignal) => void): () => void;
  /** End the process now, as a program that the signal ended. */
  stopNow(signal: StopSignal): never;
}

export type StopSignal = "SIGINT" | "SIGTERM" | "SIGHUP";

/** Exit codes of process signals, as shells give them. */
export const STOP_EXIT = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** The capabilities of the terminal or file that text goes to. */
export interface Look {
  readonly paint: Paint;
  readonly symbols: Symbols;
  /** Characters in a line of the terminal; `Infinity` where lines are not cut. */
  readonly columns: number;
}

/** Colours; without colour the text as it is. */
export interface Paint {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

/** Marks at the beginning of lines, in what the locale can show. */
export interface Symbols {
  readonly begin: string;
  readonly done: string;
  readonly failed: string;
  readonly again: string;
  readonly wait: string;
  readonly ask: string;
  readonly arrived: string;
  readonly warn: string;
  readonly cut: string;
}
