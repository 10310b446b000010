// A workspace: the folder an agent works in, its files and its commands.
//
// File tools cannot leave the root, with any path or link. Commands run with a scrubbed environment and
// limits. A `CommandRunner` starts them; by default on this machine, NOT isolated. Such commands may read and
// write whatever the user may. `describe()` says so. The backends of `sandboxes/` bring runners that isolate.

import { hash } from "node:crypto";
import { basename, delimiter, join } from "node:path";
import { defined, HoldfastError } from "@holdfast/core";
import { scrubEnvironment, type Environment } from "@holdfast/system";

import { PROTECTED_PLACES, WRITTEN_FOLDERS } from "../granting-places.ts";
import type { WorkspaceCapabilities } from "./capabilities.ts";
import { hostCommands, type CommandRunner } from "./command-runner.ts";
import { containedRoot, OWN_FOLDER, type ContainedRoot } from "./contained-directory.ts";
import {
  isTemporaryName,
  listContained,
  readContained,
  removeOthers,
  resolveDirectory,
  writeContained,
  type Fate,
  type FileContent,
  type FileListing,
  type ListedEntry,
  type WrittenFile,
} from "./contained-files.ts";
import { parseCommand, type Command, type ExecuteOptions, type Execution, type Launch } from "./execute.ts";
import { gitOptions } from "./git-options.ts";
import { hostEnvironment } from "./host-environment.ts";
import { WORKSPACE_LIMITS, type WorkspaceLimits } from "./limits.ts";
import { pathOutside } from "./program-on-path.ts";
import { searchFiles, type SearchQuery, type SearchResult } from "./search.ts";

/** Options of `openWorkspace`. */
export interface WorkspaceOptions {
  /** An existing directory. */
  readonly root: string;
  /** Variables for commands, besides PATH, HOME, LANG, TERM and TMPDIR. Keys and secrets only if a command needs them. */
  readonly env?: Environment;
  /** Where those five come from; the environment of this process by default. */
  readonly inherit?: Environment;
  readonly limits?: Partial<WorkspaceLimits>;
  /** Starts the commands; on this machine and without isolation by default. */
  readonly commands?: CommandRunner;
}

/** A folder in which an agent works: its files, search and commands. */
export interface Workspace {
  /** Absolute, without symbolic links. */
  readonly root: string;
  /** The name of the sandbox that the commands run in. */
  readonly sandbox: string;
  readonly capabilities: WorkspaceCapabilities;
  readonly limits: WorkspaceLimits;
  /** One line for people that says what the workspace contains and what it does not. */
  describe(): string;
  readFile(path: string): Promise<FileContent>;
  /** Replace a file as a whole, or make it; directories on the way are made. */
  writeFile(path: string, content: string | Uint8Array, options?: WriteOptions): Promise<WrittenFile>;
  /**
   * Read a text file, change it and write it back, with no other change of this workspace in between.
   * `change` returns `undefined` to leave the file alone; what it throws is thrown.
   */
  updateFile(
    path: string,
    change: (text: string) => string | undefined,
    options?: WriteOptions,
  ): Promise<WrittenFile | undefined>;
  /**
   * Remove what one of Holdfast's folders should not hold, also links and whole folders. A folder that is not
   * there stays so.
   *
   * @param fateOf is called with paths from the folder.
   */
  removeOthers(folder: string, fateOf: (path: string, isFolder: boolean) => Fate): Promise<void>;
  /** The entries of a directory. */
  list(path?: string): Promise<readonly ListedEntry[]>;
  /** All files below a directory; in a git repository those that it does not ignore. */
  listFiles(path?: string, options?: { readonly signal?: AbortSignal }): Promise<FileListing>;
  search(query: SearchQuery, options?: { readonly signal?: AbortSignal }): Promise<SearchResult>;
  /** Run a command. How it ends is a value; only a call that cannot be right throws. */
  execute(command: Command, options?: ExecuteOptions): Promise<Execution>;
  /** End what runs under this tag: left over from an attempt whose process was killed. Without /proc it finds nothing. */
  endTagged(tag: string): Promise<void>;
  /** End what still runs. The workspace cannot be used afterwards; its files stay. */
  dispose(): Promise<void>;
}

/** Options of the writing of a file. */
export interface WriteOptions {
  /** An earlier attempt may have died while writing: remove what it left beside the file. */
  readonly isRetry?: boolean;
  /** Permission bits. Without them those of the file that is there, or 0644. */
  readonly mode?: number;
  /** Holdfast writes an approved file into one of its folders, which agents cannot change. */
  readonly isOwn?: boolean;
}

/** @throws HoldfastError `file_not_found` when the root is not a directory. */
export async function openWorkspace(options: WorkspaceOptions): Promise<Workspace> {
  const root = await containedRoot(options.root);
  return new FolderWorkspace(root, options);
}

/** A workspace whose files lie in a folder of this machine. */
class FolderWorkspace implements Workspace {
  readonly limits: WorkspaceLimits;
  readonly #root: ContainedRoot;
  readonly #env: Record<string, string>;
  readonly #commands: CommandRunner;
  readonly #running = new Set<Promise<unknown>>();
  readonly #disposal = new AbortController();
  /** The last change asked for: changes happen one after the other. */
  #lastChange: Promise<unknown> = Promise.resolve();

  constructor(root: ContainedRoot, options: WorkspaceOptions) {
    this.#root = root;
    this.limits = { ...WORKSPACE_LIMITS, ...options.limits };
    this.#env = scrubEnvironment(options.inherit ?? hostEnvironment, options.env ?? {});
    this.#commands = options.commands ?? hostCommands({ seesProcesses: false });
  }

  get root(): string {
    return this.#root.path;
  }

  get sandbox(): string {
    return this.#commands.sandbox;
  }

  get capabilities(): WorkspaceCapabilities {
    return this.#commands.capabilities;
  }

  describe(): string {
    return `${this.#root.path} (${this.#commands.containment})`;
  }

  readFile(path: string): Promise<FileContent> {
    return readContained(this.#root, path, this.limits.fileBytes);
  }

  writeFile(path: string, content: string | Uint8Array, options: WriteOptions = {}): Promise<WrittenFile> {
    return this.#change(() => this.#write(path, content, options));
  }

  updateFile(
    path: string,
    change: (text: string) => string | undefined,
    options: WriteOptions = {},
  ): Promise<WrittenFile | undefined> {
    return this.#change(async () => {
      const file = await this.readFile(path);
      if (file.isBinary)
        throw new HoldfastError("invalid_input", `"${path}" is a binary file and cannot be changed as text`);
      const changed = change(file.text);
      return changed === undefined ? undefined : this.#write(path, changed, options);
    });
  }

  removeOthers(folder: string, fateOf: (path: string, isFolder: boolean) => Fate): Promise<void> {
    return this.#change(() => removeOthers(this.#root, folder, fateOf, { protectedPlaces: OWN_PROTECTED }));
  }

  list(path = "."): Promise<readonly ListedEntry[]> {
    return listContained(this.#root, path);
  }

  async listFiles(path = ".", options: { readonly signal?: AbortSignal } = {}): Promise<FileListing> {
    const directory = await resolveDirectory(this.#root, path);
    const found =
      (await this.#listByGit(directory, options.signal)) ??
      (await this.#listByWalk(directory, options.signal));
    const files = found.filter(
      (name) => !isTemporaryName(basename(name)) && !name.split("/").includes(OWN_FOLDER),
    );
    return { files: files.slice(0, this.limits.entries), isCut: files.length > this.limits.entries };
  }

  async search(query: SearchQuery, options: { readonly signal?: AbortSignal } = {}): Promise<SearchResult> {
    const { files, isCut } = await this.listFiles(query.path, options);
    const read = (path: string): Promise<FileContent> =>
      readContained(this.#root, path, this.limits.searchFileBytes);
    return searchFiles(query, { files, isCut }, read, this.limits, options.signal);
  }

  async execute(command: Command, options: ExecuteOptions = {}): Promise<Execution> {
    if (this.#disposal.signal.aborted) throw new HoldfastError("usage", "the workspace was disposed of");
    const timeoutMs = options.timeoutMs ?? this.limits.timeoutMs;
    if (!(timeoutMs > 0 && timeoutMs <= this.limits.timeoutMaxMs)) {
      throw new HoldfastError("invalid_input", `a time-out of ${timeoutMs} ms cannot be`, {
        expected: `more than 0 and at most ${this.limits.timeoutMaxMs} ms (limit "timeoutMaxMs")`,
      });
    }
    const parsed = parseCommand(command);
    const isOwn = options.isOwn === true;
    const env = { ...this.#env, ...scrubEnvironment({}, options.env ?? {}) };
    const request: Launch = {
      ...parsed,
      cwd: await resolveDirectory(this.#root, options.cwd ?? "."),
      env: isOwn
        ? { ...env, PATH: pathOutside(env["PATH"] ?? SYSTEM_PATH, this.#root.path) }
        : withPath(
            env,
            (options.pathFolders ?? []).map((folder) => join(this.#root.path, folder)),
          ),
      timeoutMs,
      killGraceMs: this.limits.killGraceMs,
      outputBytes: Math.min(options.outputBytes ?? this.limits.outputBytes, this.limits.outputBytes),
      input: options.input,
      signal: AbortSignal.any([
        this.#disposal.signal,
        ...(options.signal === undefined ? [] : [options.signal]),
      ]),
      onOutput: options.onOutput,
      tag: options.tag === undefined ? undefined : this.#ownTag(options.tag),
      mask: options.mask,
    };
    const running = this.#commands.run(request, isOwn);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async endTagged(tag: string): Promise<void> {
    await this.#commands.endTagged(this.#ownTag(tag));
  }

  /** Two projects of a machine may have sessions of one id, whose commands have the same tags. */
  #ownTag(tag: string): string {
    return `${hash("sha256", this.root).slice(0, 16)}/${tag}`;
  }

  async dispose(): Promise<void> {
    this.#disposal.abort();
    await Promise.allSettled(this.#running);
    await this.#commands.close();
  }

  #write(
    path: string,
    content: string | Uint8Array,
    { isRetry = false, mode, isOwn = false }: WriteOptions,
  ): Promise<WrittenFile> {
    return writeContained(this.#root, path, content, {
      mode,
      bytesMax: this.limits.fileBytes,
      protectedPlaces: isOwn ? OWN_PROTECTED : PROTECTED_PLACES,
      removeLeftovers: isRetry,
    });
  }

  /** Parallel edits of one file would otherwise lose one of them. */
  #change<T>(change: () => Promise<T>): Promise<T> {
    const changed = this.#lastChange.then(change, change);
    this.#lastChange = changed.catch(() => {});
    return changed;
  }

  /** `undefined` when it is no git repository, or git is not there. */
  async #listByGit(
    directory: string,
    signal: AbortSignal | undefined,
  ): Promise<readonly string[] | undefined> {
    const selection = ["-z", "--cached", "--others", "--exclude-standard", "--", directory];
    const found = await this.execute(
      ["git", ...gitOptions(false), "--literal-pathspecs", "ls-files", ...selection],
      {
        ...defined({ signal }),
        timeoutMs: this.limits.searchMs,
        isOwn: true,
      },
    );
    // Nothing: no file yet, or a directory that is ignored as a whole and was asked for by name.
    const isAnswer =
      found.end.type === "exit" && found.end.exitCode === 0 && !found.isCut && found.stdout !== "";
    if (!isAnswer) return undefined;
    return [...new Set(found.stdout.split("\0").filter((name) => name !== ""))].toSorted();
  }

  async #listByWalk(directory: string, signal: AbortSignal | undefined): Promise<readonly string[]> {
    const files: string[] = [];
    const ahead = [directory];
    while (ahead.length > 0 && files.length <= this.limits.entries) {
      signal?.throwIfAborted();
      for (const entry of await this.list(ahead.shift())) {
        if (entry.type === "file") files.push(entry.path);
        // Links are not followed: they could make a circle, and what they lead to is listed in its own place.
        else if (entry.type === "directory" && !SKIPPED_DIRECTORIES.has(basename(entry.path)))
          ahead.push(entry.path);
      }
    }
    return files.toSorted();
  }
}

/** The places that Holdfast itself does not write, either. */
const OWN_PROTECTED = PROTECTED_PLACES.filter((place) => !WRITTEN_FOLDERS.some((own) => own === place));

const SYSTEM_PATH = "/usr/bin:/bin";

/** Behind the other folders: no file of a workspace takes the place of a program of the machine. */
function withPath(env: Record<string, string>, folders: readonly string[]): Record<string, string> {
  if (folders.length === 0) return env;
  const { PATH: path = SYSTEM_PATH } = env;
  return { ...env, PATH: [path, ...folders].join(delimiter) };
}

const SKIPPED_DIRECTORIES: ReadonlySet<string> = new Set([".git", "node_modules", OWN_FOLDER]);
