// A runtime in memory whose sessions are carried out by executors, for tests. Programs are written into a folder.

import { createRuntime, MemoryStorage, type Agent, type Runtime } from "@holdfast/runtime";
import { chmod, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { executorAgent } from "../executors/executor-agent.ts";
import { ExecutorHost, type ExecutorHostOptions } from "../executors/executor-host.ts";
import type { ExecutorProfile } from "../executors/profile.ts";

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
const ONE_SHOT = 'const inv = JSON.parse(readFileSync(0, "utf8"));\n';

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
    options?: Partial<ExecutorHostOptions>,
    others?: readonly (Agent | ExecutorProfile)[],
  ): Opened;
  /** The ids of the processes that work in the folder, as far as /proc tells them. */
  processes(): readonly string[];
  close(): Promise<void>;
}

export interface Opened {
  readonly runtime: Runtime;
  readonly agent: Agent;
  readonly host: ExecutorHost;
}

export async function openWorld(): Promise<World> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "executors-")));
  const storage = new MemoryStorage();
  const opened: Opened[] = [];
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
      const host = new ExecutorHost({
        environment: process.env,
        projectDir: folder,
        stopStepMs: 500,
        ...options,
      });
      const agent = executorAgent(profile, host) as Agent;
      const more = others.map((other) =>
        "command" in other ? (executorAgent(other, host) as Agent) : other,
      );
      const runtime = createRuntime({ storage, agents: [agent, ...more], development: false, warmMs: 10 });
      const each = { runtime, agent, host };
      opened.push(each);
      return each;
    },
    processes: () => processesIn(folder),
    close: async () => {
      for (const { runtime, host } of opened) {
        await runtime.close();
        await host.close();
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
