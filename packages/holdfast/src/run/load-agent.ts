// Loads an agent from a user's file. A problem with the file is reported with its place, and never with a
// stack.

import { basename, extname, resolve } from "node:path";
import { clearInterval, clearTimeout, setInterval, setTimeout } from "node:timers";
import { pathToFileURL } from "node:url";
import { defined, HoldfastError, NotFoundError, type GivenEnvironment } from "@holdfast/core";
import { lookAtPath } from "@holdfast/terminal/frame/given-file";
import type { Io } from "@holdfast/terminal/frame/command";
import { agentPlaces, namesAgentFile, type AgentSearch } from "../agents/agent-places.ts";
import { CODE_ENDINGS, programOf, type AgentSource } from "@holdfast/machine/agent-source";
import { externalAgentName } from "@holdfast/machine/external-agent-names";
import type { FileAgent, LoadOptions as LoadOptionsOfFile } from "@holdfast/machine";
import { chosenAgent, refuseFolder } from "./loading/chosen-agent.ts";
import { importError, invalid, NO_EXPORT } from "./loading/load-errors.ts";
import { resolveOurselves } from "./loading/own-packages.ts";
import { compiledAddress, loadTypeScript } from "./loading/typescript-files.ts";
import type { AgentRecord } from "@holdfast/agents";
import {
  type Agent,
  defineAgent,
  importInTaskThreads,
  isAgent,
  type TaskDefinition,
} from "@holdfast/runtime";

const THREAD_LOADING = new URL(
  `./${import.meta.url.endsWith(".ts") ? "loading/thread-loading.ts" : "thread-loading.js"}`,
  import.meta.url,
).href;

export interface LoadedAgent {
  readonly agent: Agent;
  /** Paths in it are absolute. */
  readonly source: AgentSource;
  /** The record of an agent without code. */
  readonly record?: AgentRecord;
  /** Files of the project that its sessions do not use, each with the reason. */
  readonly notes?: readonly string[];
}

/**
 * Load the agent of a file: its default export, or the only agent it exports. With a name, or with
 * `FILE#NAME`, the agent of that name.
 *
 * @param onSlow called when the file takes long to load, so that silence is not mistaken for work.
 * @throws HoldfastError `file_not_found` or `agent_invalid`.
 */
export async function loadAgent(
  fileAndName: string,
  {
    cwd,
    env = {},
    servesOthers = false,
    name,
    recorded,
    given,
    resumesAtReset,
    overrides = {},
    profile,
    machine,
    onSlow = () => {},
    giveUpMs,
  }: {
    readonly cwd: string;
    /** The environment, for agent files: their folders, and the models that they work with. */
    readonly env?: Io["env"];
    readonly servesOthers?: boolean;
    readonly name?: string;
    /** The record that the session of an agent file began with. */
    readonly recorded?: LoadOptionsOfFile["recorded"];
    /** The environments and variables of the call, for an agent file. */
    readonly given?: GivenEnvironment | undefined;
    readonly resumesAtReset?: boolean;
    readonly overrides?: LoadOptionsOfFile["overrides"];
    readonly profile?: string | undefined;
    readonly machine?: AgentSearch["machine"];
    readonly onSlow?: () => void;
    /** Milliseconds after which the file is given up: 60,000 by default. */
    readonly giveUpMs?: number;
  },
): Promise<LoadedAgent> {
  const { path, chosen } = chosenAgent(fileAndName, cwd);
  const external = externalAgentName(path, { cwd, env });
  const ofMachine = machine === undefined ? {} : { machine };
  if (external !== undefined) {
    const { loadNamedExternal } = await import("./loading/load-external.ts");
    const options = { cwd, env, servesOthers, profile, ...ofMachine };
    const agent = await loadNamedExternal(external, options, {
      isMarked: programOf(path) !== undefined,
      isOfSession: name !== undefined,
    });
    return { agent, source: { kind: "program", name: external } };
  }
  const options = {
    isContinued: name !== undefined,
    given,
    ...(resumesAtReset === true ? { resumesAtReset } : {}),
    overrides,
    ...defined({ recorded }),
  };
  const fileAgent = await asFileAgent(path, { cwd, env, ...ofMachine }, options);
  if (fileAgent !== undefined) {
    const { agent, record, notes } = fileAgent;
    const source = { kind: "file", path: record.source.path } as const;
    if (name === undefined || name === agent.name) return { agent, record, notes, source };
    throw invalid(`the file has no agent "${name}"`, record.source.path, {
      got: `agent "${agent.name}"`,
      fix: "give the agent its former name",
    });
  }
  const file = resolve(cwd, path);
  const agent = pick(await load(file, path, onSlow, giveUpMs), file, name ?? chosen);
  return { agent, source: { kind: "code", path: file } };
}

/** @returns the agent of an agent file, `undefined` for a file of code. */
async function asFileAgent(
  path: string,
  io: AgentSearch,
  options: Omit<LoadOptionsOfFile, "root" | "sandbox"> = {},
): Promise<FileAgent | undefined> {
  return namesAgentFile(path, io.cwd) ? agentOfFile(path, io, options) : undefined;
}

/**
 * The agent of an agent file, with the settings of the user.
 *
 * @param file its name or path, or the record that a session has of it.
 */
export async function agentOfFile(
  file: string | AgentRecord,
  io: AgentSearch,
  choices: Omit<LoadOptionsOfFile, "root" | "sandbox">,
): Promise<FileAgent> {
  const { thisMachine, userSettings } = await import("../agents/this-machine.ts");
  const { notes, ...settings } = userSettings(io, io.mode);
  const machine = thisMachine(io);
  const places = agentPlaces(io);
  const options: LoadOptionsOfFile = {
    ...choices,
    ...settings,
    loadTasks: (code) => loadTasks(code, { ...io, onSlow: () => {} }),
  };
  const found =
    typeof file === "string"
      ? await machine.agent(file, places, io.cwd, options)
      : await machine.agentOfRecord(file, places, options);
  return { ...found, notes: [...notes, ...found.notes] };
}

/** All agents that a file exports. @throws HoldfastError as `loadAgent`. */
export async function loadAgents(path: string, options: LoadOptions): Promise<readonly LoadedAgent[]> {
  const { cwd, onSlow } = options;
  if (externalAgentName(path, options) !== undefined) return [await loadAgent(path, options)];
  const fileAgent = await asFileAgent(path, options, { isOffered: true });
  if (fileAgent !== undefined)
    return [{ ...fileAgent, source: { kind: "file", path: fileAgent.record.source.path } }];
  const file = resolve(cwd, path);
  refuseFolder(file);
  const exported = await load(file, path, onSlow);
  const agents = new Set(Object.values(exported).filter((value) => isAgent(value)));
  // A file that has only a default export may export a function, which becomes an agent.
  const all = agents.size > 0 ? [...agents] : [pick(exported, file, undefined)];
  return all.map((agent) => ({ agent, source: { kind: "code", path: file } }));
}

/** All tasks that a file exports. @throws HoldfastError as `loadAgent`. */
export async function loadTasks(
  path: string,
  { cwd, onSlow }: LoadOptions,
): Promise<readonly TaskDefinition[]> {
  const file = resolve(cwd, path);
  const exported = await load(file, path, onSlow);
  const tasks = [...new Set(Object.values(exported).filter((value) => isTask(value)))];
  if (tasks.length > 0) return tasks;
  throw invalid("the file exports no task", file, {
    got: `exports named ${namesOf(exported).join(", ") || "nothing"}`,
    expected: 'export const work = defineTask({ name: "work", run: (input, task) => output })',
    fix: 'import { defineTask } from "holdfast", and export its result',
  });
}

export interface LoadOptions extends AgentSearch {
  readonly onSlow: () => void;
}

function isTask(value: unknown): value is TaskDefinition {
  if (typeof value !== "object" || value === null || isAgent(value)) return false;
  const { name, run } = value as { readonly name?: unknown; readonly run?: unknown };
  return typeof name === "string" && typeof run === "function";
}

/** The exports of a file. */
async function load(
  file: string,
  path: string,
  onSlow: () => void,
  giveUpMs = GIVE_UP_MS,
): Promise<Record<string, unknown>> {
  refuseWrongFile(file, path);
  resolveOurselves();
  loadTypeScript();
  importInTaskThreads(THREAD_LOADING);
  // An import whose top level never settles would end the process without a word; the timers keep it, say so,
  // and give it up.
  const slow = setInterval(onSlow, SLOW_MS);
  const endless = Promise.withResolvers<never>();
  const giveUp = setTimeout(() => endless.reject(neverLoaded(file, path, giveUpMs)), giveUpMs);
  let exported: Record<string, unknown>;
  try {
    exported = await Promise.race([importFile(pathToFileURL(file).href), endless.promise]);
  } catch (thrown) {
    throw thrown instanceof NeverLoaded ? thrown.error : importError(thrown, file);
  } finally {
    clearInterval(slow);
    clearTimeout(giveUp);
  }
  return exported;
}

async function importFile(url: string): Promise<Record<string, unknown>> {
  try {
    return (await import(url)) as Record<string, unknown>;
  } catch (error) {
    // typescript-files-4.
    const compiled = compiledAddress(url);
    if (compiled === url || !(error instanceof SyntaxError) || !NO_EXPORT.test(error.message)) throw error;
    return (await import(compiled)) as Record<string, unknown>;
  }
}

const SLOW_MS = 5_000;
/** Reading and compiling take seconds at most; what waits for longer waits for something outside. */
const GIVE_UP_MS = 60_000;

/** Ours, and no error of the file. */
class NeverLoaded extends Error {
  readonly error: HoldfastError;

  constructor(error: HoldfastError) {
    super(error.message);
    this.error = error;
  }
}

function neverLoaded(file: string, path: string, ms: number): NeverLoaded {
  return new NeverLoaded(
    invalid(
      `${path} was not loaded within ${ms / 1_000} s: an \`await\` at its top level has not settled`,
      file,
      {
        got: "a module, or one of its imports, that still waits",
        expected: "a module that only defines its agents and tasks",
        fix: "move the waiting code into the agent, in a task (`ctx.run`)",
      },
    ),
  );
}

function refuseWrongFile(file: string, path: string): void {
  const stats = lookAtPath(file);
  if (typeof stats === "string") {
    const why = stats === "ENOENT" || stats === "ENOTDIR" ? "" : ` (${stats})`;
    throw new NotFoundError("file_not_found", `there is no file ${path}${why}`, {
      at: file,
      expected: "a TypeScript or JavaScript file that exports an agent",
      fix: "check the path; it is taken from the current folder",
    });
  }
  if (!stats.isFile()) {
    const what = stats.isDirectory() ? "a folder" : "no file";
    throw invalid(`${path} is ${what}`, file, {
      got: what,
      expected: "a file that exports an agent",
      fix: "name the file in it",
    });
  }
  const extension = extname(file);
  if (!CODE_ENDINGS.includes(extension)) {
    throw invalid(`${path} is not a kind of file that can be run`, file, {
      got: extension === "" ? "no extension" : extension,
      expected: CODE_ENDINGS.slice(0, 4).join(", "),
      fix: "name another file; `holdfast agents import` reads agent.yaml of Docker, opencode.json and managed agents",
    });
  }
}

function pick(exported: Record<string, unknown>, file: string, name: string | undefined): Agent {
  const standard = asAgent(exported["default"], file, name);
  const named = Object.entries(exported).filter(([key]) => key !== "default");
  const agents = [
    ...new Set([standard, ...named.map(([, value]) => (isAgent(value) ? value : undefined))]),
  ].filter((agent) => agent !== undefined);
  if (name !== undefined) {
    const agent = findNamed(agents, name);
    if (agent !== undefined) return agent;
    if (agents.length > 0) {
      throw invalid(`the file has no agent named "${name}"`, file, {
        got: listed(agents),
        expected: `an agent named "${name}"`,
        fix: "correct the name. For a session that was started with it, name the right file with --agent FILE, or restore its old name",
      });
    }
  }
  const [first, second] = agents;
  if (standard !== undefined) return standard;
  if (first === undefined) {
    const keys = namesOf(exported);
    throw invalid("the file exports no agent", file, {
      got: keys.length === 0 ? "no exports" : `exports named ${keys.join(", ")}`,
      expected: 'export default defineAgent({ name: "my-agent", run: async (ctx, input) => output })',
      fix: 'import { defineAgent } from "holdfast", and export its result; an async function as default export also works',
    });
  }
  if (second !== undefined) {
    throw invalid("the file exports more than one agent", file, {
      got: listed(agents),
      expected: "one agent, or one that is the default export",
      fix: `choose one by its name, such as ${basename(file)}#${first.name}, or make one of them the default export`,
    });
  }
  return first;
}

/** Among them and the agents they ask for. */
function findNamed(agents: readonly Agent[], name: string, seen = new Set<Agent>()): Agent | undefined {
  for (const agent of agents) {
    if (seen.has(agent)) continue;
    seen.add(agent);
    const found = agent.name === name ? agent : findNamed(agent.agents, name, seen);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * A CommonJS file has one export that is all of them. Node 22 does not say which are CommonJS; an empty one
 * is told here.
 */
function namesOf(exported: Record<string, unknown>): string[] {
  const names = Object.keys("module.exports" in exported ? Object(exported["default"]) : exported);
  return names.length === 1 && isEmptyObject(exported["default"]) ? [] : names;
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function listed(agents: readonly Agent[]): string {
  return agents.map((agent) => `"${agent.name}"`).join(" and ");
}

/** A plain function is an agent that is named after its file. */
function asAgent(value: unknown, file: string, name: string | undefined): Agent | undefined {
  if (isAgent(value)) return value;
  if (typeof value !== "function" || /^class\b/.test(Function.prototype.toString.call(value)))
    return undefined;
  return defineAgent({
    name: name ?? nameOfFile(file),
    run: value as (ctx: unknown, input: unknown) => Promise<unknown>,
  });
}

function nameOfFile(file: string): string {
  const name = basename(file, extname(file))
    .replace(/[^\p{L}\p{N} ._+-]/gu, "-")
    .replace(/^[^\p{L}\p{N}_]+|[^\p{L}\p{N}_]+$/gu, "");
  return name === "" ? "agent" : name.slice(0, 200);
}
