// The command as a real process, for tests.
//
// It goes through the launcher, like a user's call, and is bundled as users have it
// (`scripts/installed-command.ts`). Output is gathered as it comes, so that a test can wait for a line
// instead of for a time.
//
//   holdfast-process-1. Each process has the secret of the suite in its environment
//       (`scripts/canary-suite.ts`). After each test the outputs and arguments of processes and all files of
//       the project, also core files, are searched for it (X15). Databases and logs are searched for tokens
//       as well (X11).
//   - `start` starts a process. `run`, `json` and `finish` call a command without a process of its own
//     (`command-calls.ts`), which costs a fifth. Processes of their own have commands that start others
//     (`KINDS`) and commands that wait for others. In a project with `eachAsProcess` all commands have one
//     that do more than look or send. A campaign starts a process for these, too (`HOLDFAST_CAMPAIGN`).

import { isCampaign } from "@holdfast/testkit/campaign";
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { CanaryScan, entriesBelow } from "@holdfast/testkit";
import type { CommandName } from "../commands/index.ts";
import { callCommand, type Finished } from "./command-calls.ts";

export type { Finished };

const SOURCES_BIN = fileURLToPath(new URL("../../../../node_modules/.bin", import.meta.url));
const INSTALLED_BIN = process.env["HOLDFAST_TEST_COMMAND_FOLDER"] ?? SOURCES_BIN;
export const LAUNCHER = join(INSTALLED_BIN, "holdfast");
/** The folder of the packages, for programs of tests that import them. */
export const PACKAGES = join(INSTALLED_BIN, "..");
const MAIN = join(PACKAGES, "holdfast/dist/main.js");

/**
 * A command *starts* processes that outlive it, or stays until it is stopped. Or it *passes*: it asks a
 * database or a coordinator, or sends it something, and ends. All others *work*.
 */
const KINDS: Readonly<Record<CommandName, "starts" | "passes" | "works">> = {
  run: "works",
  init: "works",
  chat: "works",
  resume: "works",
  attach: "works",
  schedule: "works",
  ui: "starts",
  top: "works",
  inbox: "passes",
  list: "passes",
  show: "passes",
  result: "passes",
  logs: "passes",
  trace: "works",
  replay: "works",
  signal: "passes",
  message: "passes",
  approve: "passes",
  answer: "passes",
  pause: "passes",
  unpause: "passes",
  title: "passes",
  budget: "passes",
  cancel: "passes",
  delete: "works",
  fork: "works",
  worktrees: "works",
  diff: "works",
  merge: "works",
  export: "works",
  import: "works",
  push: "works",
  pull: "works",
  local: "starts",
  up: "starts",
  down: "starts",
  coordinator: "starts",
  runner: "starts",
  runners: "passes",
  runs: "passes",
  token: "passes",
  agents: "works",
  models: "works",
  rules: "works",
  mcp: "works",
  skill: "works",
  script: "works",
  env: "works",
  secret: "works",
  config: "works",
  docs: "passes",
  completion: "works",
  upgrade: "works",
  doctor: "passes",
};
/** Options with which a command waits for others. */
const WAITING = /^(-f|--follow|--watch|--wait)$/;

/** Files that may hold the hash of a token, and never a token. */
const TOKENLESS = /\.(db|db-wal|log)(\.\d+)?$/;
const TOKEN = /hf_(adm|usr|reg|rnr|job|met)_[0-9a-f]{16}/;

export interface ProjectOptions {
  /**
   * Whether the command runs from the sources of this checkout. Agents of the checkout import these sources,
   * and an agent and its command share their modules.
   */
  readonly fromSources?: boolean;
  /** Whether `run` starts a process for every command that does work: where processes are what the tests are about. */
  readonly eachAsProcess?: boolean;
  /** Variables of every command. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface ProcessOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The text on standard input, which then ends. Without it standard input stays open, and silent. */
  readonly stdin?: string;
  /** A folder of the project to be in. */
  readonly folder?: string;
  /** The launcher of another version of the command. */
  readonly launcher?: string;
}

/** A folder of its own, with a project of its own, and the processes started there. */
export class Project {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-cli-")));
  readonly #running = new Set<HoldfastProcess>();
  readonly #started: { readonly stdout: string; readonly stderr: string }[] = [];
  readonly #canary = new CanaryScan(process.env["HOLDFAST_TEST_SECRET"]);
  /** On the PATH: commands are printed as they were called. */
  readonly #bin: string;
  readonly #eachAsProcess: boolean;
  readonly #env: Readonly<Record<string, string | undefined>>;
  /** When each file with code was last changed, as of the last call (command-calls-2). */
  readonly #code = new Map<string, number>();

  constructor({ fromSources = false, eachAsProcess = false, env = {} }: ProjectOptions = {}) {
    this.#env = env;
    this.#bin = fromSources ? SOURCES_BIN : INSTALLED_BIN;
    this.#eachAsProcess = eachAsProcess;
  }

  /** Start `holdfast` with these arguments. */
  start(args: readonly string[], options: ProcessOptions = {}): HoldfastProcess {
    return this.#spawn(process.execPath, [options.launcher ?? this.#launcher, ...args], options);
  }

  /** Start a program of this folder without the command. */
  startNode(file: string): HoldfastProcess {
    return this.#spawn(process.execPath, ["--no-warnings", file], {});
  }

  /** Start `holdfast` on a terminal of its own, which `script` makes; what it writes is all on standard output. */
  startOnTerminal(args: readonly string[]): HoldfastProcess {
    return this.shellOnTerminal(
      [process.execPath, this.#launcher, ...args].map((word) => `'${word}'`).join(" "),
    );
  }

  /** Run a line of a shell on a terminal of its own, as `startOnTerminal` does. */
  shellOnTerminal(line: string, env: ProcessOptions["env"] = {}): HoldfastProcess {
    return this.#spawn("script", ["-qefc", line, "/dev/null"], {
      env: { TERM: "xterm", NO_COLOR: "1", ...env },
    });
  }

  get #launcher(): string {
    return join(this.#bin, "holdfast");
  }

  #spawn(
    command: string,
    args: readonly string[],
    { env = {}, stdin, folder = "." }: ProcessOptions,
  ): HoldfastProcess {
    const child = spawn(command, args, {
      cwd: this.path(folder),
      env: this.#environment(env),
    });
    const started = new HoldfastProcess(child);
    this.#running.add(started);
    this.#started.push(started);
    void started.finished.then(() => this.#running.delete(started));
    if (stdin !== undefined) child.stdin.end(stdin);
    return started;
  }

  /** Nothing of the caller's settings: a test on one machine is the same on another. */
  #environment(env: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
    return {
      PATH: `${this.#bin}${delimiter}${process.env["PATH"] ?? ""}`,
      HOME: this.folder,
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
      LANG: "C.UTF-8",
      HOLDFAST_TEST_SECRET: this.#canary.secret,
      ...plantedMutant(),
      ...this.#env,
      ...env,
    };
  }

  /** Run `holdfast` to its end. */
  run(...args: string[]): Promise<Finished> {
    return this.finish(args);
  }

  /** Run `holdfast` to its end. */
  async finish(args: readonly string[], options: ProcessOptions = {}): Promise<Finished> {
    const { env = {}, stdin = "", folder = "." } = options;
    if (options.launcher !== undefined || this.#needsProcess(args))
      return this.start(args, { ...options, stdin }).finished;
    const finished = await callCommand(MAIN, this.folder, this.#code, {
      launcher: this.#launcher,
      args,
      folder: this.path(folder),
      env: this.#environment(env),
      stdin,
    });
    this.#started.push(finished);
    return finished;
  }

  #needsProcess(args: readonly string[]): boolean {
    const [command = "", action] = args;
    // The process that calls commands has the bundled ones.
    if (this.#bin === SOURCES_BIN) return true;
    if (args.some((arg) => WAITING.test(arg))) return true;
    const kind = command === "local" && action === "status" ? "passes" : kindOf(command);
    if (kind === "passes") return this.#eachAsProcess && isCampaign;
    return this.#eachAsProcess || kind === "starts";
  }

  /** Run a line that the command has printed, as a person who copies it does. */
  shell(line: string, options: ProcessOptions = {}): Promise<Finished> {
    return this.#spawn("sh", ["-c", line], { stdin: "", ...options }).finished;
  }

  /** Start lines of a shell in a network namespace of their own, which has nothing but its loopback. Needs root. */
  startOnLoopback(lines: string): HoldfastProcess {
    return this.#spawn("unshare", ["-n", "sh", "-ec", `ip link set lo up\n${lines}`], {});
  }

  /** Run it with `--json` and give what its only line of output says. */
  async json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
    const { stdout, stderr, code } = await this.run(...args, "--json");
    try {
      return JSON.parse(stdout) as T;
    } catch {
      throw new Error(
        `holdfast ${args.join(" ")} --json gave no JSON document (exit ${code}): ${stdout}${stderr}`,
      );
    }
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Writes a file of the project, and makes its folder. */
  write(name: string, text: string): void {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), text);
  }

  /** End what still runs, search what is left for secrets, and remove the folder. @throws Error when one was found. */
  async dispose(): Promise<void> {
    if (!existsSync(this.folder)) return; // It was disposed already.
    this.#canary.searchArguments();
    const running = [...this.#running];
    for (const started of running) started.kill("SIGKILL");
    await Promise.all(running.map((started) => started.finished));
    const found = this.#leaks();
    rmSync(this.folder, { recursive: true, force: true });
    if (found.length > 0) throw new Error(`a secret or a token is in ${found.join(", ")}`);
  }

  /** holdfast-process-1. */
  #leaks(): readonly string[] {
    for (const { stdout, stderr } of this.#started) {
      this.#canary.search("standard output", stdout);
      this.#canary.search("standard error", stderr);
    }
    this.#canary.searchFolder(this.folder);
    const withTokens = [...entriesBelow(this.folder)]
      .filter((entry) => entry.isFile() && TOKENLESS.test(entry.name))
      .map(({ parentPath, name }) => join(parentPath, name))
      .filter((path) => TOKEN.test(readFileSync(path, "latin1")))
      .map((path) => relative(this.folder, path));
    return [...this.#canary.found, ...withTokens];
  }
}

/** An option and a word that is no command have no kind. */
function kindOf(command: string): (typeof KINDS)[CommandName] | undefined {
  return Object.hasOwn(KINDS, command) ? KINDS[command as CommandName] : undefined;
}

/** A mutant of `scripts/mutants.ts` is planted in the command as well. */
function plantedMutant(): Record<string, string | undefined> {
  const { HOLDFAST_MUTANT, NODE_OPTIONS } = process.env;
  return HOLDFAST_MUTANT === undefined ? {} : { HOLDFAST_MUTANT, NODE_OPTIONS };
}

export class HoldfastProcess {
  readonly child: ChildProcessWithoutNullStreams;
  readonly finished: Promise<Finished>;
  stdout = "";
  stderr = "";
  #changed = Promise.withResolvers<void>();
  #isOver = false;

  constructor(child: ChildProcessWithoutNullStreams) {
    this.child = child;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
      this.#change();
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
      this.#change();
    });
    // Text written to a process that has ended is lost, and a test that needs it fails.
    child.stdin.on("error", () => {});
    this.finished = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code, signal) => {
        this.#isOver = true;
        this.#change();
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  /** Resolves when standard output and error together hold this text. */
  async says(text: string | RegExp): Promise<void> {
    const isSaid = (): boolean => {
      const said = this.stdout + this.stderr;
      return typeof text === "string" ? said.includes(text) : text.test(said);
    };
    await this.until(isSaid, String(text));
  }

  /** Resolves when something is true of what it has said. */
  async until(isTrue: () => boolean, what: string): Promise<void> {
    while (!isTrue()) {
      if (this.#isOver) throw new Error(`it ended without saying ${what}:\n${this.stdout}${this.stderr}`);
      await this.#changed.promise;
    }
  }

  /** The id of the session it runs. */
  async sessionId(): Promise<string> {
    await this.says(/ses_[0-9a-f-]{36}/);
    return /ses_[0-9a-f-]{36}/.exec(this.stdout + this.stderr)![0];
  }

  type(line: string): void {
    this.child.stdin.write(`${line}\n`);
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}
