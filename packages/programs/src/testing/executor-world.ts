// A runtime in memory whose sessions are carried out by executors, for tests. Programs are written into a
// folder.

import { createRuntime, MemoryStorage, type Agent, type Runtime } from "@holdfast/runtime";
import { chmod, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Executor, executorAgent, type ExecutorOptions } from "../adapters/executor/executor.ts";
import type { ExecutorProfile } from "../adapters/executor/profile.ts";

/** The beginning of a program for Node: reads the invocation `inv` and reports with `call(method, path, body)`. */
const PREAMBLE = `
import { readFileSync, writeFileSync, existsSync } from "node:fs";
if (process.argv.includes("--schema")) process.exit(1);
const call = async (method, path, body) => {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(process.env.AGENT_ORCHESTRATOR_API_URL + path, {
    method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: await answer.json().catch(() => null) };
};
const event = (event_type, fields) => call("POST", "/events", { event_type, ...fields });
`;
const ONE_SHOT = `
const invocation = () => { try { return JSON.parse(readFileSync(0, "utf8")); } catch { console.error("no JSON"); process.exit(1); } };
const inv = invocation();
`;

export interface World {
  readonly folder: string;
  readonly storage: MemoryStorage;
  /** A profile of a shell script. */
  shell(script: string, changes?: Partial<ExecutorProfile>): Promise<ExecutorProfile>;
  /** A profile of a program for Node; a one-shot program has its invocation in \`inv\`. */
  node(body: string, changes?: Partial<ExecutorProfile>): Promise<ExecutorProfile>;
  /** @param others agents that sessions of the executor may start. */
  open(
    profile: ExecutorProfile,
    options?: Partial<ExecutorOptions>,
    others?: readonly (Agent | ExecutorProfile)[],
  ): Opened;
  /** The ids of the processes that work in the folder, as far as /proc tells them. */
  processes(): readonly string[];
  close(): Promise<void>;
}

export interface Opened {
  readonly runtime: Runtime;
  readonly agent: Agent;
  readonly executor: Executor;
}

export async function openWorld(): Promise<World> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "executors-")));
  const storage = new MemoryStorage();
  const opened: { readonly runtime: Runtime; readonly executors: readonly Executor[] }[] = [];
  let programs = 0;
  const write = async (text: string, changes: Partial<ExecutorProfile>): Promise<ExecutorProfile> => {
    const path = join(folder, `program-${programs++}.mjs`);
    await writeFile(path, text);
    await chmod(path, 0o755);
    const command = text.startsWith("#!") ? ([path] as const) : ([process.execPath, path] as const);
    return {
      name: "tried",
      command,
      lifecycle: "one_shot",
      config: {},
      secrets: [],
      providers: {},
      conversationTtlMs: 0,
      ...changes,
    };
  };
  return {
    folder,
    storage,
    shell: (script, changes = {}) => write(`#!/bin/sh\n${script}\n`, changes),
    node: (body, changes = {}) =>
      write(PREAMBLE + (changes.lifecycle === "persistent" ? "" : ONE_SHOT) + body, changes),
    open: (profile, options = {}, others = []) => {
      const made = (of: ExecutorProfile): Executor =>
        new Executor({
          profile: of,
          environment: process.env,
          projectDir: folder,
          stopStepMs: 500,
          ...options,
        });
      const executor = made(profile);
      const agent = executorAgent(executor) as Agent;
      const more = others.map((other) => ("command" in other ? made(other) : other));
      const agents = [
        agent,
        ...more.map((other) => (other instanceof Executor ? (executorAgent(other) as Agent) : other)),
      ];
      const runtime = createRuntime({ storage, agents, development: false, warmMs: 10 });
      const executors = [executor, ...more.filter((other) => other instanceof Executor)];
      opened.push({ runtime, executors });
      return { runtime, agent, executor };
    },
    processes: () => processesIn(folder),
    close: async () => {
      for (const { runtime, executors } of opened) {
        await runtime.close();
        for (const executor of executors) await executor.close();
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function processesIn(path: string): readonly string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return (
        readlinkSync(`/proc/${name}/cwd`) === path &&
        !/\) [ZX] /.test(readFileSync(`/proc/${name}/stat`, "latin1"))
      );
    } catch {
      return false; // It has ended meanwhile.
    }
  });
}
